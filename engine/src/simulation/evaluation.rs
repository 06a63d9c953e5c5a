//! The evaluations of a scenario.
//!
//! The transcript decides three kinds. The fourth, `judge`, requires a model: [`Evaluation::assess`] then returns the
//! question, and [`Evaluation::ruled`] turns the model's [`Verdict`] into a result.
use std::cell::OnceCell;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::base::text::casefold;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::models::{JudgeTurn, Verdict};

/// The maximum length of `Evaluation::includes`, in characters.
pub const EVALUATION_INCLUDES_CHARS_MAX: usize = 2_000;
/// The maximum number of evaluations in a scenario.
pub const EVALUATIONS_PER_SCENARIO_MAX: usize = 64;

/// The kind of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationKind {
    /// Passes when a turn of `role` contains `includes`, ignoring case and the amount of white space.
    Transcript,
    /// Passes when no turn of `role` contains `includes`.
    TranscriptExcludes,
    /// Passes when a tool named `includes` was called, whatever its result. `role` is not used.
    ToolCall,
    /// Passes when a model decides that the turns of `role` meet `includes`, a criterion in plain words.
    Judge,
}

/// The turns that an evaluation reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationRole {
    /// The assistant's lines, as far as they were heard.
    Assistant,
    /// The lines of the user or simulated caller, and the keys they pressed.
    User,
    /// Tool calls (name and arguments) and tool results.
    Tool,
    /// Every row of the transcript.
    #[default]
    Any,
}

/// A criterion of a scenario, checked after the simulated conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// The kind of the evaluation.
    pub kind: EvaluationKind,
    /// The turns to read.
    #[serde(default)]
    pub role: EvaluationRole,
    /// The text to find (`transcript`, `transcript_excludes`), the tool's name (`tool_call`) or the criterion in plain
    /// words (`judge`). Must contain more than white space.
    #[serde(deserialize_with = "parse_includes")]
    #[schemars(length(min = 1, max = EVALUATION_INCLUDES_CHARS_MAX))]
    pub includes: String,
}

/// The result of one evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationResult {
    /// The `kind` of the evaluation.
    pub kind: EvaluationKind,
    /// The `role` of the evaluation.
    pub role: EvaluationRole,
    /// The `includes` of the evaluation.
    pub includes: String,
    /// Whether the evaluation passed.
    pub passed: bool,
    /// The index of the deciding transcript row, from 0: the row that matched, or for `transcript_excludes` the row
    /// that should not be there. Null when no single row decides.
    pub matched_index: Option<usize>,
    /// The reason, in one sentence.
    pub reason: String,
}

/// The state of an evaluation after reading the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assessment<'a> {
    /// Decided by the transcript.
    Decided(EvaluationResult),
    /// A model has to decide; pass its verdict to [`Evaluation::ruled`].
    AskJudge(JudgeQuestion<'a>),
}

/// The question for a judge, with the turns to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeQuestion<'a> {
    /// The criterion.
    pub criterion: &'a str,
    /// The turns, as `(index in the transcript, text)`; never empty.
    pub turns: Vec<(usize, &'a str)>,
}

impl JudgeQuestion<'_> {
    /// The question in the form that models take.
    #[must_use]
    pub fn turn(&self) -> JudgeTurn<'_> {
        JudgeTurn { criterion: self.criterion, turns: &self.turns }
    }
}

/// A transcript prepared for many evaluations: each row is casefolded once, at its first use.
#[derive(Debug)]
pub struct ReadTranscript<'a> {
    rows: &'a [TranscriptRow],
    folded: Vec<OnceCell<String>>,
}

impl<'a> ReadTranscript<'a> {
    /// Reads the rows.
    #[must_use]
    pub fn new(rows: &'a [TranscriptRow]) -> Self {
        Self { rows, folded: rows.iter().map(|_| OnceCell::new()).collect() }
    }

    /// The first row of the role that contains the text.
    fn first_match(&self, role: EvaluationRole, text: &str) -> Option<&'a TranscriptRow> {
        let wanted = casefold(text);
        let mut rows = self.rows.iter().zip(&self.folded).filter(|(row, _)| role.covers(row.role));
        rows.find(|(row, text)| text.get_or_init(|| casefold(&row.text)).contains(&wanted))
            .map(|(row, _)| row)
    }
}

impl Evaluation {
    /// Decides the evaluation from the transcript, or returns the question for a judge. For several evaluations of a
    /// transcript, use [`assess_read`](Self::assess_read).
    #[must_use]
    pub fn assess<'a>(&'a self, transcript: &'a [TranscriptRow]) -> Assessment<'a> {
        self.assess_read(&ReadTranscript::new(transcript))
    }

    /// The same as [`assess`](Self::assess), for a prepared transcript.
    #[must_use]
    pub fn assess_read<'a>(&'a self, transcript: &ReadTranscript<'a>) -> Assessment<'a> {
        match self.kind {
            EvaluationKind::Transcript => Assessment::Decided(self.contained(transcript)),
            EvaluationKind::TranscriptExcludes => Assessment::Decided(self.excluded(transcript)),
            EvaluationKind::ToolCall => Assessment::Decided(self.called(transcript.rows)),
            EvaluationKind::Judge => self.judged(transcript.rows),
        }
    }

    /// The result of a `judge` evaluation. A row outside of the question is ignored.
    #[must_use]
    pub fn ruled(&self, ruling: Verdict, transcript: &[TranscriptRow]) -> EvaluationResult {
        let known = |index: &usize| self.rows(transcript).any(|row| row.index == *index);
        let reason = match (ruling.reason.trim(), ruling.passed) {
            ("", true) => "The judge ruled that the criterion holds and gave no reason.".into(),
            ("", false) => "The judge ruled that it does not hold and gave no reason.".into(),
            (reason, _) => reason.to_owned(),
        };
        self.result(ruling.passed, ruling.matched_index.filter(known), reason)
    }

    fn contained(&self, transcript: &ReadTranscript<'_>) -> EvaluationResult {
        match transcript.first_match(self.role, &self.includes) {
            Some(row) => self.result(true, Some(row.index), format!("Found in {}.", kind_of(row.role))),
            None => self.result(false, None, self.no_match(transcript.rows)),
        }
    }

    fn excluded(&self, transcript: &ReadTranscript<'_>) -> EvaluationResult {
        match transcript.first_match(self.role, &self.includes) {
            Some(row) => self.result(
                false,
                Some(row.index),
                format!("Found in {}, and should not be there.", kind_of(row.role)),
            ),
            None => self.result(true, None, self.no_match(transcript.rows)),
        }
    }

    fn called(&self, transcript: &[TranscriptRow]) -> EvaluationResult {
        let name = self.includes.trim();
        let named = |row: &&TranscriptRow| {
            row.role == TranscriptRole::ToolCall && row.tool_name.as_deref() == Some(name)
        };
        let mut refused = None;
        for row in transcript.iter().filter(named) {
            if row.is_error == Some(true) {
                refused.get_or_insert(row.index);
                continue;
            }
            return self.result(true, Some(row.index), "The tool was called.".to_owned());
        }
        if let Some(index) = refused {
            let reason = "The model asked for it, but the call was refused.".to_owned();
            return self.result(false, Some(index), reason);
        }
        let is_made =
            |row: &&TranscriptRow| row.role == TranscriptRole::ToolCall && row.is_error != Some(true);
        let others = transcript.iter().filter(is_made).count();
        let reason = match others {
            0 => "No tool was called.".to_owned(),
            1 => "1 tool call was made, none of this tool.".to_owned(),
            n => format!("{n} tool calls were made, none of this tool."),
        };
        self.result(false, None, reason)
    }

    fn judged<'a>(&'a self, transcript: &'a [TranscriptRow]) -> Assessment<'a> {
        let turns: Vec<_> = self.rows(transcript).map(|row| (row.index, row.text.as_str())).collect();
        if turns.is_empty() {
            let reason = format!("There is no {} to rule on.", self.role.turn());
            return Assessment::Decided(self.result(false, None, reason));
        }
        Assessment::AskJudge(JudgeQuestion { criterion: &self.includes, turns })
    }

    fn no_match(&self, transcript: &[TranscriptRow]) -> String {
        match self.rows(transcript).count() {
            0 => format!("There is no {} in the transcript.", self.role.turn()),
            1 => format!("The only {} does not contain the text.", self.role.turn()),
            n => format!("None of the {n} {} contains the text.", self.role.turns()),
        }
    }

    fn rows<'a>(&self, transcript: &'a [TranscriptRow]) -> impl Iterator<Item = &'a TranscriptRow> {
        let role = self.role;
        transcript.iter().filter(move |row| role.covers(row.role))
    }

    fn result(&self, passed: bool, index: Option<usize>, reason: String) -> EvaluationResult {
        EvaluationResult {
            kind: self.kind,
            role: self.role,
            includes: self.includes.clone(),
            passed,
            matched_index: index,
            reason,
        }
    }
}

impl EvaluationRole {
    const fn covers(self, role: TranscriptRole) -> bool {
        match self {
            Self::Assistant => matches!(role, TranscriptRole::Assistant),
            Self::User => matches!(role, TranscriptRole::User | TranscriptRole::Dtmf),
            Self::Tool => matches!(role, TranscriptRole::ToolCall | TranscriptRole::ToolResult),
            Self::Any => true,
        }
    }

    const fn turn(self) -> &'static str {
        match self {
            Self::Assistant => "turn of the assistant",
            Self::User => "turn of the user",
            Self::Tool => "tool call or result",
            Self::Any => "turn",
        }
    }

    const fn turns(self) -> &'static str {
        match self {
            Self::Assistant => "turns of the assistant",
            Self::User => "turns of the user",
            Self::Tool => "tool calls and results",
            Self::Any => "turns",
        }
    }
}

/// What a row is, in a reason. Which one it is, `matched_index` says: people know rows by their time, programs by their index.
const fn kind_of(role: TranscriptRole) -> &'static str {
    match role {
        TranscriptRole::User => "a line of the user",
        TranscriptRole::Assistant => "a line of the assistant",
        TranscriptRole::ToolCall => "a tool call",
        TranscriptRole::ToolResult => "a tool result",
        TranscriptRole::Dtmf => "keys that the user pressed",
        TranscriptRole::System => "a line of the service",
    }
}

fn parse_includes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() {
        return Err(de::Error::custom("includes must not be empty or only white space"));
    }
    if text.chars().count() > EVALUATION_INCLUDES_CHARS_MAX {
        return Err(de::Error::custom(format_args!(
            "includes must have at most {EVALUATION_INCLUDES_CHARS_MAX} characters"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_turn_of_the_role_contains_the_text() {
        let result = decided("transcript", "assistant", "NINE\n to Five", &rows());
        assert!(result.passed);
        assert_eq!(result.matched_index, Some(4));
        assert_eq!(result.reason, "Found in a line of the assistant.");
        assert!(!decided("transcript", "user", "nine to five", &rows()).passed);
        assert!(decided("transcript", "any", "nine to five", &rows()).passed);
    }

    #[test]
    fn case_and_white_space_are_ignored() {
        let rows = [row(0, TranscriptRole::User, "Die  Stra\u{df}e beim Cafe\u{301}")];
        assert!(decided("transcript", "user", "STRASSE BEIM CAFÉ", &rows).passed);
    }

    #[test]
    fn an_excluded_text_reports_its_row() {
        let result = decided("transcript_excludes", "any", "refund", &rows());
        assert!(!result.passed);
        assert_eq!(result.matched_index, Some(1));
        let result = decided("transcript_excludes", "assistant", "refund", &rows());
        assert!(result.passed);
        assert_eq!(result.matched_index, None);
        assert_eq!(result.reason, "None of the 2 turns of the assistant contains the text.");
    }

    #[test]
    fn an_empty_transcript_contains_no_text() {
        assert!(!decided("transcript", "any", "x", &[]).passed);
        let result = decided("transcript_excludes", "user", "x", &[]);
        assert!(result.passed);
        assert_eq!(result.reason, "There is no turn of the user in the transcript.");
    }

    #[test]
    fn a_tool_call_is_found_by_its_exact_name() {
        let result = decided("tool_call", "user", " hours_of ", &rows());
        assert!(result.passed, "role does not matter: {result:?}");
        assert_eq!(result.matched_index, Some(2));
        let result = decided("tool_call", "any", "Hours_of", &rows());
        assert!(!result.passed);
        assert_eq!(result.reason, "1 tool call was made, none of this tool.");
        assert_eq!(decided("tool_call", "any", "x", &[]).reason, "No tool was called.");
    }

    #[test]
    fn a_rejected_tool_call_does_not_count() {
        let mut rows = rows();
        rows[2].is_error = Some(true);
        let result = decided("tool_call", "any", "hours_of", &rows);
        assert!(!result.passed);
        assert_eq!(result.matched_index, Some(2));
    }

    #[test]
    fn a_judge_is_asked_about_the_turns_of_the_role() {
        let evaluation = evaluation("judge", "assistant", "states the hours");
        let rows = rows();
        let Assessment::AskJudge(question) = evaluation.assess(&rows) else { panic!("not asked") };
        assert_eq!(question.turn().criterion, "states the hours");
        assert_eq!(question.turn().turns, [(0, "Hello."), (4, "We are open nine  to five.")]);
        let ruling = Verdict { passed: true, matched_index: Some(4), reason: "Said.".into() };
        let result = evaluation.ruled(ruling, &rows);
        assert_eq!((result.passed, result.matched_index), (true, Some(4)));
        assert_eq!(result.reason, "Said.");
    }

    #[test]
    fn a_verdict_cannot_name_rows_outside_the_question() {
        for index in [1, 99] {
            let ruling = Verdict { passed: false, matched_index: Some(index), reason: " ".into() };
            let result = evaluation("judge", "assistant", "x").ruled(ruling, &rows());
            assert_eq!(result.matched_index, None);
            assert!(result.reason.contains("gave no reason"));
        }
    }

    #[test]
    fn a_judge_is_not_asked_about_an_empty_transcript() {
        let result = decided("judge", "tool", "x", &rows()[..2]);
        assert!(!result.passed);
        assert_eq!(result.reason, "There is no tool call or result to rule on.");
    }

    #[test]
    fn keys_belong_to_the_user_and_system_rows_to_no_role() {
        let rows = [row(0, TranscriptRole::Dtmf, "42#"), row(1, TranscriptRole::System, "moved")];
        assert!(decided("transcript", "user", "42", &rows).passed);
        assert!(!decided("transcript", "tool", "moved", &rows).passed);
        assert!(decided("transcript", "any", "moved", &rows).passed);
    }

    #[test]
    fn only_the_role_has_a_default() {
        let parsed: Evaluation =
            serde_json::from_value(json!({"kind": "tool_call", "includes": "x"})).unwrap();
        assert_eq!(parsed.role, EvaluationRole::Any);
        for bad in [
            json!({"kind": "tool_call"}),
            json!({"includes": "x"}),
            json!({"kind": "regex", "includes": "x"}),
            json!({"kind": "judge", "includes": "x", "role": "caller"}),
            json!({"kind": "judge", "includes": "x", "weight": 1}),
            json!({"kind": "judge", "includes": null}),
            json!({"kind": "judge", "includes": ""}),
            json!({"kind": "judge", "includes": " \u{2003}\n"}),
            json!({"kind": "judge", "includes": "é".repeat(EVALUATION_INCLUDES_CHARS_MAX + 1)}),
        ] {
            assert!(serde_json::from_value::<Evaluation>(bad.clone()).is_err(), "{bad}");
        }
        let longest = json!({"kind": "judge", "includes": "é".repeat(EVALUATION_INCLUDES_CHARS_MAX)});
        assert!(serde_json::from_value::<Evaluation>(longest).is_ok());
    }

    #[test]
    fn the_schema_agrees_with_deserialization() {
        let schema = serde_json::to_value(schemars::schema_for!(Evaluation)).unwrap();
        assert_eq!(schema["required"], json!(["kind", "includes"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["properties"]["includes"]["minLength"], json!(1));
        assert_eq!(schema["properties"]["includes"]["maxLength"], json!(2000));
        assert_eq!(schema["properties"]["role"]["default"], json!("any"));
    }

    fn decided(kind: &str, role: &str, includes: &str, transcript: &[TranscriptRow]) -> EvaluationResult {
        let evaluation = evaluation(kind, role, includes);
        match evaluation.assess(transcript) {
            Assessment::Decided(result) => result,
            Assessment::AskJudge(question) => panic!("asked: {question:?}"),
        }
    }

    fn evaluation(kind: &str, role: &str, includes: &str) -> Evaluation {
        serde_json::from_value(json!({"kind": kind, "role": role, "includes": includes})).unwrap()
    }

    fn rows() -> Vec<TranscriptRow> {
        let mut rows = vec![
            row(0, TranscriptRole::Assistant, "Hello."),
            row(1, TranscriptRole::User, "Do I get a REFUND? When are you open?"),
            row(2, TranscriptRole::ToolCall, "hours_of({\"day\":\"today\"})"),
            row(3, TranscriptRole::ToolResult, "nine to five"),
            row(4, TranscriptRole::Assistant, "We are open nine  to five."),
        ];
        rows[2].tool_name = Some("hours_of".into());
        rows
    }

    fn row(index: usize, role: TranscriptRole, text: &str) -> TranscriptRow {
        TranscriptRow::new(index, role, text.into(), 0, 0)
    }
}

//! The evaluations of a scenario.
//!
//! The transcript decides all kinds but one. `judge` requires a model: [`Evaluation::assess`] then returns the question, and
//! [`Evaluation::ruled`] turns the model's [`Verdict`]s into a result.
pub(in crate::simulation) mod tools;

use std::cell::OnceCell;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use crate::base::look_alikes::{Hidden, Looks, Wanted};
use crate::base::text::casefold;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::models::{JudgeTurn, Verdict};

/// The maximum length of `Evaluation::includes`, in characters.
pub const EVALUATION_INCLUDES_CHARS_MAX: usize = 2_000;
/// The maximum size of `Evaluation::arguments`, as JSON.
pub const EVALUATION_ARGUMENTS_BYTES_MAX: usize = 4_096;
/// The maximum of `Evaluation::times`.
pub const EVALUATION_TIMES_MAX: u32 = 100;
/// The maximum number of evaluations in a scenario.
pub const EVALUATIONS_PER_SCENARIO_MAX: usize = 64;

/// The kind of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationKind {
    /// Passes when a turn of `role` contains `includes`, ignoring case and the amount of white space. Typography
    /// does not matter either.
    Transcript,
    /// Passes when no turn of `role` contains `includes`. Null if there is no turn of `role`.
    TranscriptExcludes,
    /// Passes when the tool named `includes` was called and its result is no error. `arguments` and `times` may restrict it.
    /// `role` is not used.
    ToolCall,
    /// Passes when the tool named `includes` was not called, or with `*` no tool at all. Null if the assistant has no tool
    /// of this name. `role` is not used.
    ToolNotCalled,
    /// Passes when no call of the tool named `includes` was refused or failed, or with `*` of any tool. Null if there was
    /// no call. `role` is not used.
    NoToolError,
    /// Passes when a model decides that the turns of `role` meet `includes`; `builtin/rules` knows who says, asks or gives what:
    /// sidetone://guides/testing.
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
    /// By `kind`: the text to find, the name of the tool (`*`: any tool), or the criterion in plain words.
    #[serde(deserialize_with = "parse_includes")]
    #[schemars(length(min = 1, max = EVALUATION_INCLUDES_CHARS_MAX))]
    pub includes: String,
    /// Of `tool_call`: arguments that the call must have, among others. Objects are compared by their fields, everything
    /// else by type and value: `1` is not `"1"`. At most 4,096 bytes as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// Of `tool_call`: how many calls there must be that meet the other conditions, exactly. By default, one or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = EVALUATION_TIMES_MAX))]
    pub times: Option<u32>,
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
    /// The `arguments` of the evaluation, if it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// The `times` of the evaluation, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Whether the evaluation passed; null when that cannot be decided, for the reason in `reason`.
    pub passed: Option<bool>,
    /// The index of the deciding transcript row, from 0: the row that matched, or for `transcript_excludes` the row
    /// that should not be there; for `transcript` also the row that was cut off before it could say the text. Null when
    /// no single row decides.
    pub matched_index: Option<usize>,
    /// The reason.
    pub reason: String,
    /// How the judge's rulings were split, if it was asked several times (`judge_votes`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<Votes>,
}

/// How a judge ruled that was asked several times. More than half of all decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "JudgeVotes")]
pub struct Votes {
    /// The criterion holds.
    pub passed: u32,
    /// It does not hold.
    pub failed: u32,
    /// The judge could not tell.
    pub undecided: u32,
}

impl Votes {
    fn of(rulings: &[Verdict]) -> Self {
        let mut votes = Self::default();
        for ruling in rulings {
            *match ruling.passed {
                Some(true) => &mut votes.passed,
                Some(false) => &mut votes.failed,
                None => &mut votes.undecided,
            } += 1;
        }
        votes
    }

    const fn decision(self) -> Option<bool> {
        let all = self.passed + self.failed + self.undecided;
        if self.passed * 2 > all {
            Some(true)
        } else if self.failed * 2 > all {
            Some(false)
        } else {
            None
        }
    }
}

/// The state of an evaluation after reading the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Assessment<'a> {
    /// Decided by the transcript.
    Decided(EvaluationResult),
    /// A model has to decide; pass its verdict to [`Evaluation::ruled`].
    AskJudge(JudgeQuestion<'a>),
}

/// The question for a judge, with the turns to read.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeQuestion<'a> {
    /// The criterion.
    pub criterion: &'a str,
    /// The only role whose turns there are; `None` for all.
    pub only: Option<TranscriptRole>,
    /// The turns; never empty.
    pub turns: Vec<&'a TranscriptRow>,
    /// How often the judge has ruled on it before.
    pub vote: u64,
}

impl JudgeQuestion<'_> {
    /// The question in the form that models take.
    #[must_use]
    pub fn turn(&self) -> JudgeTurn<'_> {
        JudgeTurn { criterion: self.criterion, only: self.only, turns: &self.turns, vote: self.vote }
    }
}

/// Whether a run passed: when all of its evaluations did, and there are some. One that failed decides; else one that is open
/// leaves it open.
#[must_use]
pub fn all_passed(evaluations: &[EvaluationResult]) -> Option<bool> {
    if evaluations.iter().any(|one| one.passed == Some(false)) {
        return Some(false);
    }
    (!evaluations.is_empty() && evaluations.iter().all(|one| one.passed.is_some())).then_some(true)
}

/// A transcript prepared for many evaluations: each row is casefolded once, at its first use.
#[derive(Debug)]
pub struct ReadTranscript<'a> {
    rows: &'a [TranscriptRow],
    folded: Vec<OnceCell<String>>,
    /// What the rows look like, for texts that must not be there.
    looks: Vec<OnceCell<Looks>>,
    /// The names of the assistant's tools, if they are known.
    tools: Option<Vec<&'a str>>,
}

impl<'a> ReadTranscript<'a> {
    /// Reads the rows.
    #[must_use]
    pub fn new(rows: &'a [TranscriptRow]) -> Self {
        Self {
            rows,
            folded: rows.iter().map(|_| OnceCell::new()).collect(),
            looks: rows.iter().map(|_| OnceCell::new()).collect(),
            tools: None,
        }
    }

    /// The same, of an assistant with tools of these names.
    #[must_use]
    pub fn with_tools(mut self, names: Vec<&'a str>) -> Self {
        self.tools = Some(names);
        self
    }

    /// The first row of the role that contains the text.
    fn first_match(&self, role: EvaluationRole, text: &str) -> Option<&'a TranscriptRow> {
        let wanted = casefold(text);
        let mut rows = self.rows.iter().zip(&self.folded).filter(|(row, _)| role.covers(row.role));
        rows.find(|(row, text)| text.get_or_init(|| casefold(&row.text)).contains(&wanted))
            .map(|(row, _)| row)
    }

    /// The first row of the role that hides the text in other letters, or else the first that may.
    fn first_hidden(&self, role: EvaluationRole, text: &str) -> Option<(&'a TranscriptRow, Hidden)> {
        let (wanted, mut perhaps) = (Wanted::of(text), None);
        for (row, looks) in self.rows.iter().zip(&self.looks).filter(|(row, _)| role.covers(row.role)) {
            match looks.get_or_init(|| Looks::of(&row.text)).hides(&wanted) {
                Hidden::Yes => return Some((row, Hidden::Yes)),
                Hidden::Perhaps => perhaps = perhaps.or(Some((row, Hidden::Perhaps))),
                Hidden::No => {}
            }
        }
        perhaps
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
            EvaluationKind::ToolCall => Assessment::Decided(self.called(transcript)),
            EvaluationKind::ToolNotCalled => Assessment::Decided(self.not_called(transcript)),
            EvaluationKind::NoToolError => Assessment::Decided(self.without_error(transcript)),
            EvaluationKind::Judge => self.judged(transcript.rows),
        }
    }

    /// The result of a `judge` evaluation, ruled on once or several times. A row outside of the question is ignored.
    #[must_use]
    pub fn ruled(&self, rulings: &[Verdict], transcript: &[TranscriptRow]) -> EvaluationResult {
        let known = |index: &usize| self.rows(transcript).any(|row| row.index == *index);
        let votes = Votes::of(rulings);
        let passed = votes.decision();
        // The first that ruled as the majority did speaks for it.
        let ruling = rulings.iter().find(|ruling| ruling.passed == passed);
        let reason = match (ruling.map_or("", |ruling| ruling.reason.trim()), passed) {
            ("", Some(true)) => "The judge ruled that the criterion holds and gave no reason.".into(),
            ("", Some(false)) => "The judge ruled that it does not hold and gave no reason.".into(),
            ("", None) if ruling.is_some() => "The judge could not tell and gave no reason.".into(),
            ("", None) => "No more than half of the judge's rulings agree.".into(),
            (reason, _) => reason.to_owned(),
        };
        let index = ruling.and_then(|ruling| ruling.matched_index).filter(known);
        let votes = (rulings.len() > 1).then_some(votes);
        EvaluationResult { votes, ..self.result(passed, index, reason) }
    }

    fn contained(&self, transcript: &ReadTranscript<'_>) -> EvaluationResult {
        match transcript.first_match(self.role, &self.includes) {
            Some(row) => self.result(Some(true), Some(row.index), format!("Found in {}.", kind_of(row.role))),
            None => self.result(Some(false), self.cut_off(transcript.rows), self.no_match(transcript.rows)),
        }
    }

    fn excluded(&self, transcript: &ReadTranscript<'_>) -> EvaluationResult {
        match transcript.first_match(self.role, &self.includes) {
            Some(row) => self.result(
                Some(false),
                Some(row.index),
                format!("Found in {}, and should not be there.", kind_of(row.role)),
            ),
            None => self.hidden(transcript),
        }
    }

    /// The result for a text that no row has as it is.
    fn hidden(&self, transcript: &ReadTranscript<'_>) -> EvaluationResult {
        match transcript.first_hidden(self.role, &self.includes) {
            Some((row, Hidden::Yes)) => self.result(
                Some(false),
                Some(row.index),
                format!(
                    "Found in {}, in letters that look like it or with hyphens, and should not be there.",
                    kind_of(row.role)
                ),
            ),
            Some((row, _)) => self.result(
                None,
                Some(row.index),
                format!("It may be in {}: there it has other accents.", kind_of(row.role)),
            ),
            // Who said nothing has not kept from saying it.
            None => {
                let passed = self.rows(transcript.rows).next().map(|_| true);
                self.result(passed, None, self.no_match(transcript.rows))
            }
        }
    }

    /// The first line that was going to say the text and was cut off before.
    fn cut_off(&self, transcript: &[TranscriptRow]) -> Option<usize> {
        let wanted = casefold(&self.includes);
        let intended = |row: &&TranscriptRow| {
            row.interrupted
                && row.intended_text.as_deref().is_some_and(|text| casefold(text).contains(&wanted))
        };
        self.rows(transcript).find(intended).map(|row| row.index)
    }

    fn judged<'a>(&'a self, transcript: &'a [TranscriptRow]) -> Assessment<'a> {
        let turns: Vec<_> = self.rows(transcript).collect();
        if turns.is_empty() {
            let reason = format!("There is no {} to rule on.", self.role.turn());
            return Assessment::Decided(self.result(None, None, reason));
        }
        Assessment::AskJudge(JudgeQuestion {
            criterion: &self.includes,
            only: self.role.only(),
            turns,
            vote: 0,
        })
    }

    fn no_match(&self, transcript: &[TranscriptRow]) -> String {
        let cut_off = match self.cut_off(transcript) {
            Some(_) => " One was going to say it, but was cut off before.",
            None => "",
        };
        let none = match self.rows(transcript).count() {
            0 => format!("There is no {} in the transcript.", self.role.turn()),
            1 => format!("The only {} does not contain the text.", self.role.turn()),
            n => format!("None of the {n} {} contains the text.", self.role.turns()),
        };
        none + cut_off
    }

    fn rows<'a>(&self, transcript: &'a [TranscriptRow]) -> impl Iterator<Item = &'a TranscriptRow> {
        let role = self.role;
        transcript.iter().filter(move |row| role.covers(row.role))
    }

    fn result(&self, passed: Option<bool>, index: Option<usize>, reason: String) -> EvaluationResult {
        EvaluationResult {
            kind: self.kind,
            role: self.role,
            includes: self.includes.clone(),
            arguments: self.arguments.clone(),
            times: self.times,
            passed,
            matched_index: index,
            reason,
            votes: None,
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

    const fn only(self) -> Option<TranscriptRole> {
        match self {
            Self::Assistant => Some(TranscriptRole::Assistant),
            Self::User => Some(TranscriptRole::User),
            Self::Tool => Some(TranscriptRole::ToolResult),
            Self::Any => None,
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
    // Nor only characters that nobody sees: these match everything.
    if casefold(&text).is_empty() {
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
mod tests;

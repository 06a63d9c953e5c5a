//! Forms, made from the schemas of the operations that they send to: labels, help, limits and choices are theirs.
use maud::{Markup, html};
use serde_json::Value;

use crate::base::dollars;
use crate::dashboard::forms::{ONCE, READ};
use crate::dashboard::frame::{Frame, Role};
use crate::dashboard::pages::parts::{at, grouped, here, list, prose, size, text, words};
use crate::dashboard::pages::rows;
use crate::dashboard::pages::saved_meanwhile::saved_meanwhile;
use crate::dashboard::pages::shown::Shown;
use crate::dashboard::paths;
use crate::operations::by_id;
use crate::operations::operation::Operation;
use crate::operations::schema::MAX_BYTES;

/// Texts that may be longer than this have a field of several lines.
const ONE_LINE_MAX: u64 = 300;

/// How somebody who is invited signs in where no mail is set up.
pub const WITHOUT_MAIL: &str = "To sign in, they open the link and ask for a code. The code is written to the server's log: \
    whoever runs this server reads it there, and passes it on.";

/// Problems that are told at one field.
const WRONG_MAX: usize = 5;

/// What is wrong with a field.
struct Wrong {
    told: String,
    /// The parts of the field that it is about, such as `evaluations[1].includes`.
    within: String,
}

/// A form for one operation, filled with what was typed, else with the current values.
pub struct Form<'a> {
    frame: &'a Frame,
    operation: &'a str,
    schema: &'a Value,
    current: &'a Value,
    typed: &'a [(String, String)],
}

impl<'a> Form<'a> {
    /// For an operation in [`crate::dashboard::frame::Page::forms`].
    pub fn new(frame: &'a Frame, operation: &'a str, current: &'a Value) -> Self {
        let schema = frame.schemas.iter().find(|(id, _)| *id == operation).map_or(&Value::Null, |(_, s)| s);
        Self { frame, operation, schema, current, typed: &frame.typed }
    }

    /// With other texts than those that were typed: after a merge.
    pub fn with_typed(self, typed: &'a [(String, String)]) -> Self {
        Self { typed, ..self }
    }

    /// Whether it holds what was typed and not saved.
    fn is_unsaved(&self) -> bool {
        let first = |name: &str| {
            name.split('.').next().is_some_and(|first| self.schema["properties"].get(first).is_some())
        };
        // The test of a tool gives back what was typed, too, and there is nothing in it to save.
        let is_test = self.frame.problem.is_none() && self.frame.secret_once.is_some();
        !is_test && self.frame.typed.iter().any(|(name, _)| first(name))
    }

    /// The revision that the form changes: what was typed into it belongs to the one that was read then. After a
    /// conflict the person has seen the current one.
    pub fn revision(&self, field: &str) -> String {
        let read = typed_of(self.frame, "_revision")
            .filter(|_| typed_of(self.frame, field).is_some() && refused(self.frame) != "revision_conflict");
        read.map_or_else(|| self.current["revision"].to_string(), str::to_owned)
    }

    /// The form around `content`. After success the browser goes to `then`. Who may not send it is told who can.
    pub fn wrap(&self, hidden: &[(&str, &str)], then: &str, content: Markup) -> Markup {
        if !allowed(self.frame, self.operation) {
            return html! {
                p { "Only admins of " strong dir="auto" { (self.frame.workspace_name) } " can do this. " a href="/dashboard/people" { "People" } " says who they are." }
            };
        }
        let read = self.read();
        html! {
            @if read.is_some() { (saved_meanwhile(self.frame, self.current)) }
            form.edit id=(form_id(self.operation)) method="post" action={ "/dashboard/do/" (self.operation) } data-unsaved[self.is_unsaved()] {
                (carried(self.frame, then))
                (once(self.frame, self.operation))
                @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
                @if let Some(read) = read { input type="hidden" name=(READ) value=(read); }
                (content)
            }
        }
    }

    /// When what a form changes was last changed, as its person read it. `None` for what has revisions, which are told
    /// apart by those, and for what is new.
    fn read(&self) -> Option<&str> {
        let typed = typed_of(self.frame, READ).filter(|_| refused(self.frame) != "revision_conflict");
        let is_change = self.operation.starts_with("update_") && self.current.get("revision").is_none();
        is_change.then(|| typed.or_else(|| self.current["updated_at"].as_str())).flatten()
    }

    /// A field, by its name in the body (`speech.filler`).
    pub fn field(&self, name: &str) -> Markup {
        let schema = self.schema_of(name);
        field(schema, name, &self.value(name), self.problem(name).as_ref(), self.is_required(name))
    }

    /// Whether a field has this text; where the server has a default, an empty field has that.
    pub fn holds(&self, name: &str, text: &str) -> bool {
        let value = self.value(name);
        let default =
            || self.frame.provided.defaults.iter().any(|(known, value)| *known == name && value == text);
        if value.first().is_empty() { default() } else { value.first() == text }
    }

    /// Whether a list of objects has any.
    pub fn has_rows(&self, name: &str) -> bool {
        self.value(name).json() != "[]"
    }

    /// A field that holds JSON, read; null when it is none.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(self.value(name).first()).unwrap_or_default()
    }

    /// Whether an empty field is refused: it may not be empty, and what is new needs it. In a change, where nothing needs
    /// to be sent, a field that is sent empty is refused, too.
    fn is_required(&self, name: &str) -> bool {
        let schema = self.schema_of(name);
        let needed =
            self.schema["required"].as_array().is_none_or(|names| names.iter().any(|other| other == name));
        needed && schema["type"] == "string" && schema["minLength"].as_u64() > Some(0)
    }

    /// A field whose choices are known: the model, an assistant. Choices are values with what they are called.
    pub fn choice(&self, name: &str, choices: &[(String, String)]) -> Markup {
        let (schema, value) = (self.schema_of(name), self.value(name));
        let value = value.first();
        let known = choices.iter().any(|(choice, _)| choice == value);
        let control = html! {
            select id=(control_id(name)) name=(name) aria-describedby=[described(schema, name, self.problem(name).as_ref())] {
                @if !known && value.is_empty() { option value="" { "Choose" } }
                @if !known && !value.is_empty() { option value=(value) selected { (value) } }
                @for (choice, called) in choices { option value=(choice) selected[choice == value] { (called) } }
            }
        };
        around(schema, name, self.problem(name).as_ref(), control)
    }

    /// A text of the form `provider/name`, with what the server knows as suggestions.
    pub fn suggested(&self, name: &str, choices: &[&str]) -> Markup {
        let (schema, value, problem) = (self.schema_of(name), self.value(name), self.problem(name));
        let problem = problem.as_ref();
        let suggestions = format!("{}-known", control_id(name));
        let control = html! {
            input.mono id=(control_id(name)) name=(name) value=(value.first()) list=(suggestions) autocomplete="off" spellcheck="false"
                maxlength=[schema["maxLength"].as_u64()] aria-required=[self.is_required(name).then_some("true")]
                aria-describedby=[described(schema, name, problem)] aria-invalid=[problem.map(|_| "true")];
            // A name of `*` stands for any, and is none.
            datalist id=(suggestions) { @for choice in choices.iter().filter(|choice| !choice.ends_with("/*")) { option value=(choice) {} } }
        };
        let default =
            self.frame.provided.defaults.iter().find(|(known, value)| *known == name && !value.is_empty());
        let mut schema = schema.clone();
        if let Some((_, default)) = default {
            schema["description"] = text(&schema, "description")
                .replace("Default: the server's", &format!("Default: `{default}`"))
                .into();
        }
        around(&schema, name, problem, control)
    }

    /// Which of the workspace's resources are attached, as check boxes with the resource's name. They may stand outside of
    /// the form.
    pub fn attached(&self, name: &str, resources: &Value) -> Markup {
        let (chosen, form) = (self.value(name), form_id(self.operation));
        html! {
            // A list without a tick is a list, too.
            input type="hidden" name=(name) value="" form=(form);
            div.checks {
                @for resource in list(resources, "") {
                    @let bytes = at(resource, "size_bytes").as_i64();
                    label.check {
                        input type="checkbox" name=(name) value=(text(resource, "id")) form=(form) checked[chosen.has(text(resource, "id"))] data-bytes=[bytes];
                        span dir="auto" { (text(resource, "name")) }
                        @if let Some(bytes) = bytes { span.dim { (size(bytes)) } }
                    }
                }
                // Beyond what could be listed: without their boxes, saving would detach them.
                @for id in chosen.0.iter().filter(|id| !id.is_empty() && list(resources, "").iter().all(|known| text(known, "id") != **id)) {
                    label.check {
                        input type="checkbox" name=(name) value=(id) form=(form) checked;
                        code { (id) }
                    }
                }
            }
        }
    }

    /// Whether one of the fields below this name has a problem, so that what hides them has to be open.
    pub fn has_problem(&self, name: &str) -> bool {
        problems(self.frame).any(|(field, _)| field == name || under(field, name))
    }

    fn schema_of(&self, name: &str) -> &'a Value {
        name.split('.')
            .try_fold(self.schema, |schema, part| schema.get("properties")?.get(part))
            .unwrap_or(&Value::Null)
    }

    /// What was typed, else the current value, else the schema's default.
    fn value(&self, name: &str) -> Shown {
        let typed: Vec<String> =
            self.typed.iter().filter(|(other, _)| other == name).map(|(_, value)| value.clone()).collect();
        if !typed.is_empty() {
            return Shown(typed);
        }
        let path = name.replace('.', "/");
        let current = self.current.pointer(&format!("/{path}"));
        if let Some(microusd) = current.and_then(Value::as_i64).filter(|_| name.ends_with(dollars::SUFFIX)) {
            return Shown(vec![dollars::shown(microusd)]);
        }
        Shown::of(current.or_else(|| self.schema_of(name).get("default")).unwrap_or(&Value::Null))
    }

    /// What is wrong with a field, and with what is within it.
    fn problem(&self, name: &str) -> Option<Wrong> {
        let here: Vec<_> = problems(self.frame)
            .filter(|(field, _)| *field == name || under(field, name))
            .take(WRONG_MAX)
            .collect();
        let told = here.iter().map(|(field, message)| match (in_json(self.frame, field), row(field)) {
            (Some(_), _) => format!("`{field}`: {}", sentence(message)),
            (None, Some((_, row, part))) => {
                format!("Row {row}, {}: {}", label(part).to_lowercase(), sentence(message))
            }
            (None, None) => sentence(message),
        });
        let told: Vec<String> = told.collect();
        let within = here.iter().map(|(field, _)| *field).filter(|field| *field != name);
        let within = within.collect::<Vec<_>>().join(" ");
        (!told.is_empty()).then(|| Wrong { told: told.join(" "), within })
    }
}

/// Whether the person may do this. The operation itself refuses it, too.
pub fn allowed(frame: &Frame, operation: &str) -> bool {
    frame.role == Role::Admin || by_id(operation).is_none_or(|operation| !operation.for_admins)
}

/// What every form carries: the token that proves it is ours, the page it is on, as it was asked for, and where success
/// leads; the same page without a word.
pub fn carried(frame: &Frame, then: &str) -> Markup {
    let here = here(frame);
    // A query of any length can be asked for, but not returned to.
    let back = paths::safe(&here).unwrap_or(&frame.path);
    html! {
        input type="hidden" name="_csrf" value=(frame.csrf);
        input type="hidden" name="_back" value=(back);
        @if !then.is_empty() && then != frame.path { input type="hidden" name="_then" value=(then); }
    }
}

/// What makes a form that is sent twice do its work once.
fn once(frame: &Frame, operation: &str) -> Markup {
    let repeats = by_id(operation).is_some_and(Operation::takes_idempotency_key);
    html! { @if repeats { input type="hidden" name=(ONCE) value=(frame.once); } }
}

/// A button that sends an operation at once, such as a test or a redelivery.
pub fn act(frame: &Frame, operation: &str, hidden: &[(&str, &str)], then: &str, button: Markup) -> Markup {
    html! {
        form.act method="post" action={ "/dashboard/do/" (operation) } {
            (carried(frame, then))
            (once(frame, operation))
            @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
            (button)
        }
    }
}

/// A button that asks first, in a dialog that needs no script. `what` names what will happen, with its number.
pub fn destroy(
    frame: &Frame,
    operation: &str,
    hidden: &[(&str, &str)],
    then: &str,
    label: &str,
    what: &str,
    warning: &str,
) -> Markup {
    let name = hidden.iter().map(|(_, value)| *value).collect::<Vec<_>>().join("-");
    let id =
        format!("ask-{operation}-{}", name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-"));
    html! {
        @if allowed(frame, operation) {
            button.quiet type="button" popovertarget=(id) { (label) }
            // Without a script it is a popover; with one, nothing else can be reached meanwhile.
            dialog popover closedby="any" id=(id) aria-label=(what) {
                h2 { (what) }
                p { (warning) }
                div.row {
                    // First, so that the Tab key leads on to the other answer.
                    button type="button" popovertarget=(id) popovertargetaction="hide" autofocus { "Keep" }
                    (act(frame, operation, hidden, then, html! { button.bad { (what) } }))
                }
            }
        }
    }
}

/// What a deletion does to the assistants that use what is deleted.
pub fn used(what: &str, assistants: usize) -> String {
    match assistants {
        0 => "No assistant uses it.".to_owned(),
        1 => format!("1 assistant has it, and would {what}."),
        many => format!("{many} assistants have it, and would {what}."),
    }
}

/// What a button does to something with this name.
pub fn named(verb: &str, name: &str) -> String {
    format!("{verb} “{name}”")
}

/// The error of the form that failed.
fn error(frame: &Frame) -> &Value {
    frame.problem.as_ref().map_or(&Value::Null, |problem| problem.get("error").unwrap_or(problem))
}

/// Its code; empty when none failed.
pub fn refused(frame: &Frame) -> &str {
    text(error(frame), "code")
}

/// What was typed into a field of the form that failed.
pub fn typed_of<'f>(frame: &'f Frame, name: &str) -> Option<&'f str> {
    paths::value(&frame.typed, name)
}

/// The problems of the form that failed: field and message.
pub fn problems(frame: &Frame) -> impl Iterator<Item = (&str, &str)> {
    let error = error(frame);
    list(error, "details/fields").iter().map(|problem| (text(problem, "field"), text(problem, "message")))
}

/// A field made from its schema: label above, control, help below, problem in words.
fn field(schema: &Value, name: &str, value: &Shown, problem: Option<&Wrong>, required: bool) -> Markup {
    let (id, about) = (control_id(name), described(schema, name, problem));
    let (invalid, required) = (problem.map(|_| "true"), required.then_some("true"));
    let most = schema["maxLength"].as_u64();
    let items = &schema["items"];
    let control = match kind(schema) {
        "boolean" => {
            return html! {
                div.field {
                    label.check {
                        input type="hidden" name=(name) value="false";
                        input type="checkbox" id=(id) name=(name) value="true" checked[value.has("true")] aria-describedby=[about.as_deref()];
                        span { (label(name)) }
                    }
                    (help(schema, name)) (told(name, problem))
                }
            };
        }
        "integer" if name.ends_with(dollars::SUFFIX) => html! {
            input.number type="number" id=(id) name=(name) value=(value.first()) step="any" min="0" aria-describedby=[about.as_deref()] aria-invalid=[invalid];
        },
        "integer" | "number" => html! {
            input.number type="number" id=(id) name=(name) value=(value.first()) step=[(kind(schema) == "number").then_some("any")]
                min=[schema["minimum"].as_number()] max=[schema["maximum"].as_number()] aria-describedby=[about.as_deref()] aria-invalid=[invalid];
        },
        "array" if items.get("enum").is_some() => {
            return html! {
                fieldset.field aria-describedby=[about.as_deref()] {
                    legend { (label(name)) }
                    div.checks {
                        @for choice in list(items, "enum").iter().filter_map(Value::as_str) {
                            label.check { input type="checkbox" name=(name) value=(choice) checked[value.has(choice)]; code { (choice) } }
                        }
                    }
                    (help(schema, name)) (told(name, problem))
                }
            };
        }
        "array" if items["type"] == "object" => {
            return html! {
                fieldset.field aria-describedby=[about.as_deref()] {
                    legend { (label(name)) }
                    (rows::rows(items, name, value, problem.map_or("", |wrong| &wrong.within)))
                    (help(schema, name)) (told(name, problem))
                }
            };
        }
        "array" => html! {
            textarea id=(id) name=(name) rows="3" data-items=[schema["maxItems"].as_u64()] aria-describedby=[about.as_deref()] aria-invalid=[invalid] dir="auto" { "\n" (value.lines()) }
        },
        "object" | "any" => html! {
            textarea.mono id=(id) name=(name) rows="10" spellcheck="false" data-json aria-describedby=[about.as_deref()] aria-invalid=[invalid] { "\n" (value.first()) }
        },
        _ if schema.get("enum").is_some() => html! {
            select id=(id) name=(name) aria-describedby=[about.as_deref()] aria-invalid=[invalid] {
                @for choice in list(schema, "enum").iter().filter_map(Value::as_str) {
                    option value=(choice) selected[value.has(choice)] title=[choice_label(choice).map(|_| choice)] { (choice_label(choice).map_or_else(|| words(choice), str::to_owned)) }
                }
            }
        },
        _ if most.is_some_and(|most| most > ONE_LINE_MAX) && name != "url" => html! {
            textarea id=(id) name=(name) rows=(rows(value.first(), most)) dir="auto"
                aria-required=[required] aria-describedby=[about.as_deref()] aria-invalid=[invalid] { "\n" (value.first()) }
        },
        _ => html! {
            input id=(id) name=(name) value=(value.first()) dir="auto" autocomplete="off" maxlength=[most]
                aria-required=[required] aria-describedby=[about.as_deref()] aria-invalid=[invalid];
        },
    };
    around(schema, name, problem, control)
}

fn around(schema: &Value, name: &str, problem: Option<&Wrong>, control: Markup) -> Markup {
    let limit = schema["maxLength"].as_u64().filter(|most| *most >= 120);
    html! {
        div.field {
            div.above {
                label for=(control_id(name)) { (label(name)) }
                @if let Some(most) = limit {
                    small.count data-for=(control_id(name)) data-most=(most) data-bytes[schema.get(MAX_BYTES).is_some()] { "at most " (grouped(most.cast_signed())) @if schema.get(MAX_BYTES).is_some() { " bytes" } }
                }
            }
            (control) (help(schema, name)) (told(name, problem))
        }
    }
}

fn help(schema: &Value, name: &str) -> Markup {
    // An empty field sends null where the field may be null.
    let mut note = text(schema, "description").replace("; null ", "; empty ");
    if name.ends_with(dollars::SUFFIX) {
        note = note.replace(", in millionths of a US dollar", "");
    }
    html! { @if !note.is_empty() { p.help id={ (control_id(name)) "-help" } { (prose(&note)) } } }
}

fn told(name: &str, problem: Option<&Wrong>) -> Markup {
    html! { @if let Some(Wrong { told, .. }) = problem {
        p.wrong id={ (control_id(name)) "-wrong" } { (prose(told)) }
    } }
}

/// `must not be empty` → `Must not be empty.`
pub fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    let mut text: String = first.chain(chars).collect();
    if !text.ends_with(['.', '?']) {
        text.push('.');
    }
    text
}

fn described(schema: &Value, name: &str, problem: Option<&Wrong>) -> Option<String> {
    let id = control_id(name);
    let help = schema.get("description").is_some().then(|| format!("{id}-help"));
    let wrong = problem.map(|_| format!("{id}-wrong"));
    Some([wrong, help].into_iter().flatten().collect::<Vec<_>>().join(" ")).filter(|ids| !ids.is_empty())
}

/// The id of an operation's form, for controls that stand outside of it.
pub fn form_id(operation: &str) -> String {
    format!("form-{operation}")
}

/// The id of a field's control, for labels and the summary of problems.
pub fn control_id(name: &str) -> String {
    format!("f-{}", name.split('[').next().unwrap_or(name).replace('.', "-"))
}

/// Fields whose names say little to people who do not write code.
const LABELS: &[(&str, &str)] = &[
    ("url", "URL"),
    ("interruption_words_min", "Words that interrupt, at least"),
    ("end_of_turn_min_ms", "Shortest pause that ends a turn (ms)"),
    ("end_of_turn_max_ms", "Longest pause within a turn (ms)"),
    ("think_early", "Ask the model early"),
    ("keys", "Press telephone keys"),
    ("action", "When a machine answers"),
    ("knowledge_ids", "Knowledge"),
    ("judge_votes", "Rulings of the judge on each criterion"),
];

/// Choices whose names in the API say little to people who do not write code.
const CHOICES: &[(&str, &str)] = &[
    ("transcript", "Says a text"),
    ("transcript_excludes", "Never says a text"),
    ("tool_call", "Calls a tool, and it works"),
    ("tool_not_called", "Does not call a tool"),
    ("no_tool_error", "No error in calls of a tool"),
    ("judge", "Meets a criterion, judged by a model"),
    ("assistant", "Assistant"),
    ("user", "Caller"),
    ("tool", "Tool"),
    ("any", "Anybody"),
];

/// What a choice is called, where not simply by its words.
pub fn choice_label(choice: &str) -> Option<&'static str> {
    CHOICES.iter().find(|(known, _)| *known == choice).map(|(_, label)| *label)
}

/// `first_message` → `First message`.
pub fn label(name: &str) -> String {
    let name = name.rsplit('.').next().unwrap_or(name);
    if let Some((_, label)) = LABELS.iter().find(|(known, _)| *known == name) {
        return (*label).to_owned();
    }
    let units =
        [("_ms", " (ms)"), (dollars::SUFFIX, " (US dollars)"), ("_db", " (dB)"), ("_ids", "s"), ("_id", "")];
    for (end, unit) in units {
        if let Some(stem) = name.strip_suffix(end) {
            return format!("{}{unit}", words(stem));
        }
    }
    words(name)
}

/// What a problem is about: `evaluations[1].includes` → `Evaluations, row 2: includes`; within JSON that somebody typed, the
/// whole path.
pub fn about(frame: &Frame, field: &str) -> String {
    match (in_json(frame, field), row(field)) {
        (Some((name, _)), _) => format!("{}, `{field}`", label(name)),
        (None, Some((list, row, part))) => {
            format!("{}, row {row}: {}", label(list), label(part).to_lowercase())
        }
        (None, None) => label(field),
    }
}

/// The field of a form that holds JSON, and the path in it, of a problem such as `parameters.properties.date.type`.
pub fn in_json<'f>(frame: &Frame, field: &'f str) -> Option<(&'f str, &'f str)> {
    let end = field.find(['.', '['])?;
    let (name, path) = field.split_at(end);
    let is_json = |schema: &Value| {
        let property = &schema["properties"][name];
        kind(property) == "object" && property.get("properties").is_none() && property.get("anyOf").is_none()
    };
    frame.schemas.iter().any(|(_, schema)| is_json(schema)).then_some((name, path))
}

/// The list, the number of the row and the part of it that a field such as `evaluations[1].includes` names.
fn row(field: &str) -> Option<(&str, usize, &str)> {
    let (list, rest) = field.split_once('[')?;
    let (number, part) = rest.split_once("].")?;
    Some((list, number.parse::<usize>().ok()? + 1, part))
}

/// As many lines as the text has, within reason.
fn rows(value: &str, most: Option<u64>) -> usize {
    let lines: usize = value.lines().map(|line| line.chars().count() / 90 + 1).sum();
    if most > Some(4000) { lines.clamp(5, 16) } else { lines.clamp(2, 5) }
}

fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("any")
        }
        _ if schema.get("enum").is_some() => "string",
        _ => "any",
    }
}

fn under(field: &str, name: &str) -> bool {
    field.strip_prefix(name).is_some_and(|rest| rest.starts_with(['[', '.']))
}

//! A list of objects in a form: a row for each object, with a control for each of its fields. The controls of a column have
//! one name, such as `evaluations[].kind`; `fields::folded` makes the list of them again.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::fields::LEFT_OUT;
use crate::dashboard::pages::form::{choice_label, control_id};
use crate::dashboard::pages::parts::{list, text, words};
use crate::dashboard::pages::shown::Shown;

/// Empty rows for whoever has no script to add some: the page that saved a row has another.
const SPARE: usize = 1;

/// What the text of an evaluation is, by its kind; of any other, the first. The stylesheet shows the one of the kind that is
/// chosen, and hides the role where it is not used, with and without a script.
const BY_KIND: [(&str, &str); 3] = [("transcript", "Text"), ("tool_call", "Tool"), ("judge", "Criterion")];

/// The rows of a field. `within` names the parts of it that are wrong, such as `evaluations[1].includes`.
pub fn rows(items: &Value, name: &str, value: &Shown, within: &str) -> Markup {
    let values: Vec<Value> = serde_json::from_str(&value.json()).unwrap_or_default();
    let wrong =
        |at: usize, field: &str| within.split(' ').any(|part| part == format!("{name}[{at}].{field}"));
    html! {
        // A list without rows is a list, too: this row is left out.
        @if let Some(first) = items["properties"].as_object().and_then(|fields| fields.keys().next()) {
            input type="hidden" name={ (name) "[]." (first) } value="";
        }
        div.rows id=(control_id(name)) tabindex="-1" data-rows {
            @for (at, value) in values.iter().enumerate() { (row(items, name, Some(value), |field| wrong(at, field))) }
        }
        button.add type="button" { "Add one" }
        template { (row(items, name, Some(&json!({"role": "assistant"})), |_| false)) }
        noscript { div.rows { @for _ in 0..SPARE { (row(items, name, None, |_| false)) } } }
    }
}

/// A text as it is, anything else as JSON.
fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A row with the values of an object, else with the defaults; `None`: a spare one, which is left out as it stands.
fn row(items: &Value, name: &str, value: Option<&Value>, is_wrong: impl Fn(&str) -> bool) -> Markup {
    html! {
        div.rowform {
            @for (at, (field, schema)) in items["properties"].as_object().into_iter().flatten().enumerate() {
                @let given = value.map_or_else(String::new, |value| written(value.get(field).unwrap_or(&schema["default"])));
                @let title = Some(text(schema, "title")).filter(|title| !title.is_empty()).map_or_else(|| words(field), str::to_owned);
                @let invalid = is_wrong(field).then_some("true");
                label {
                    @if field == "includes" { @for (kind, called) in BY_KIND { span class={ "by " (kind) } { (called) } } }
                    @else { span { (title) } }
                    @if schema.get("enum").is_some() {
                        select name={ (name) "[]." (field) } data-name=(field) aria-invalid=[invalid] {
                            @for choice in list(schema, "enum").iter().filter_map(Value::as_str) {
                                @let called = choice_label(choice);
                                // What it is called in the API.
                                option value=(choice) selected[choice == given.as_str()] title=[called.map(|_| choice)] { (called.map_or_else(|| words(choice), str::to_owned)) }
                            }
                            // The first column decides: without a script, nothing else removes a row.
                            @if at == 0 { option.without value=(LEFT_OUT) selected[value.is_none()] { "Leave this row out" } }
                        }
                    } @else {
                        // An input would take the line breaks out of what the API was given.
                        textarea rows=(given.chars().count() / 90 + 1) name={ (name) "[]." (field) } data-name=(field) maxlength=[schema["maxLength"].as_u64()] dir="auto" autocomplete="off" aria-invalid=[invalid] { "\n" (given) }
                    }
                }
            }
            @if value.is_some() { button.quiet.remove type="button" { "Remove" } }
        }
    }
}

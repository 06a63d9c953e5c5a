//! Two people changed the same assistant: field by field, what each of them changed since the revision that both had read.
//! Fields that one of them changed need no decision; fields that both changed are shown side by side, with a choice.
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::forms::{MET, THEIRS, USE};
use crate::dashboard::frame::Frame;
use crate::dashboard::pages::form::{control_id, form_id, label, refused, typed_of};
use crate::dashboard::pages::parts::{at, number, section};
use crate::dashboard::pages::shown::{Shown, differing};

/// A field in three versions, of which at least two differ.
struct Field {
    name: String,
    /// As it is saved now.
    theirs: String,
    /// As it was typed.
    mine: String,
    by: By,
}

/// Who changed a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Them,
    Me,
    Both,
}

/// What a conflict leaves to decide, and what the forms hold meanwhile.
pub struct Conflict {
    fields: Vec<Field>,
    /// The revision that was read; 0 where it is kept no more.
    read: i64,
    /// The same, as the form named it.
    met: String,
    /// The fields of the forms after the merge: what only they changed has given way to what is saved.
    pub typed: Vec<(String, String)>,
}

impl Conflict {
    /// Of the form that failed. `None`: it failed for another reason, or not at all.
    pub fn of(frame: &Frame, saved: &Value) -> Option<Self> {
        (refused(frame) == "revision_conflict").then(|| {
            let (fields, typed) = merge(&frame.base, saved, &frame.typed);
            let met = typed_of(frame, "_revision").unwrap_or_default().to_owned();
            Self { fields, read: number(&frame.base, "revision"), met, typed }
        })
    }

    /// What is told above the form, and the choices, which belong to it.
    pub fn told(&self, operation: &str, saved: &Value) -> Markup {
        let by = |who: By| self.fields.iter().filter(move |field| field.by == who);
        let links = |who: By| {
            html! { @for (n, field) in by(who).enumerate() { @if n > 0 { ", " } a href={ "#" (control_id(&field.name)) } { (label(&field.name)) } } }
        };
        let both = by(By::Both).count();
        section(
            "It was changed meanwhile",
            html! {
                p {
                    "Revision " (number(saved, "revision")) " was saved while you edited"
                    @if self.read > 0 { " revision " (self.read) } @else { " a revision that is kept no more" } ". "
                    @if both == 0 { "No field was changed in both. Read the form below, and save it." }
                    @else { "Choose between the versions of what was changed in both, and save the form below." }
                }
                @if both > 0 { input type="hidden" name=(MET) value=(self.met) form=(form_id(operation)); }
                @for field in by(By::Both) { (choice(field, operation)) }
                @if by(By::Them).count() > 0 { p.help { "Changed meanwhile, and taken over below: " (links(By::Them)) } }
                @if by(By::Me).count() > 0 { p.help { "Changed by you: " (links(By::Me)) } }
            },
        )
    }
}

/// Both versions of a field, as far as they differ. Nothing is chosen beforehand, and the browser asks for a choice.
fn choice(field: &Field, operation: &str) -> Markup {
    let name = format!("{USE}{}", field.name);
    let (theirs, mine): (Vec<&str>, Vec<&str>) =
        (field.theirs.lines().collect(), field.mine.lines().collect());
    let (their_part, my_part) = differing(&theirs, &mine);
    let is_part = their_part.len() < theirs.len() || my_part.len() < mine.len();
    let versions =
        [(THEIRS, "As saved", &field.theirs, their_part), ("mine", "As you typed it", &field.mine, my_part)];
    html! {
        fieldset.part {
            // A form without a choice says so.
            input type="hidden" name=(name) value="" form=(form_id(operation));
            legend { (label(&field.name)) @if is_part { span.dim { " – the lines that differ" } } }
            div.half {
                @for (value, called, content, part) in versions {
                    div.version {
                        label.check { input type="radio" name=(name) value=(value) form=(form_id(operation)) required data-take=(control_id(&field.name)) data-value=(content); (called) }
                        pre.text dir="auto" tabindex="0" aria-label=(called) { @if part.is_empty() { span.none { "nothing" } } @else { (part.join("\n")) } }
                    }
                }
            }
        }
    }
}

/// The fields that differ, and what the forms hold: of what is attached, what both of them attached and neither detached.
fn merge(base: &Value, saved: &Value, typed: &[(String, String)]) -> (Vec<Field>, Vec<(String, String)>) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in typed {
        if !name.starts_with('_') && name != "id" && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let (mut fields, mut merged) = (Vec::new(), Vec::new());
    for name in names {
        let path = name.replace('.', "/");
        let values: Vec<&str> =
            typed.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect();
        let before = (!base.is_null()).then(|| Shown::of(at(base, &path)).lines());
        let theirs = Shown::of(at(saved, &path)).lines();
        if name.ends_with("_ids") {
            let ids = attached(before.as_deref().unwrap_or_default(), &theirs, &values);
            // The empty one says that the form has such a field, also when nothing is attached.
            merged.extend([""].into_iter().chain(ids).map(|id| (name.to_owned(), id.to_owned())));
            continue;
        }
        // Of several the last counts where there is one value: a box to tick stands after its absence.
        let mine = match theirs.as_str() {
            "true" | "false" => values.last().copied().unwrap_or_default().to_owned(),
            _ => values.join("\n").replace("\r\n", "\n"),
        };
        let same = |one: &str, other: &str| one.trim_end() == other.trim_end();
        let by = match before.as_deref() {
            _ if same(&theirs, &mine) => None,
            Some(before) if same(before, &mine) => Some(By::Them),
            Some(before) if same(before, &theirs) => Some(By::Me),
            _ => Some(By::Both),
        };
        if by != Some(By::Them) {
            merged.extend(values.iter().map(|value| (name.to_owned(), (*value).to_owned())));
        }
        fields.extend(by.map(|by| Field { name: name.to_owned(), theirs, mine, by }));
    }
    (fields, merged)
}

/// Ids as both of them want them: a change of one is no change of the other, so there is nothing to choose.
fn attached<'a>(before: &str, theirs: &'a str, mine: &[&'a str]) -> Vec<&'a str> {
    let was = |id: &str| before.lines().any(|other| other == id);
    let kept = theirs.lines().filter(|id| mine.contains(id) || !was(id));
    let added = mine.iter().copied().filter(|id| !id.is_empty() && !was(id));
    let added = added.filter(|id| theirs.lines().all(|other| other != *id));
    kept.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    type Texts = Vec<(String, String)>;

    fn merged(base: &Value, saved: &Value, typed: &[(&str, &str)]) -> (Vec<(String, By)>, Texts) {
        let typed: Vec<_> =
            typed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (fields, forms) = merge(base, saved, &typed);
        (fields.into_iter().map(|field| (field.name, field.by)).collect(), forms)
    }

    #[test]
    fn each_change_of_one_person_stands_and_changes_of_both_are_asked_for() {
        let base = json!({"name": "A", "first_message": "Hi", "instructions": "One\nTwo", "speech": {"speed": 1.0},
            "record": true, "language": null});
        let saved = json!({"name": "B", "first_message": "Hi", "instructions": "One\n2", "speech": {"speed": 1.5},
            "record": false, "language": "de"});
        let typed = [
            ("name", "A"),
            ("first_message", "Hello"),
            ("instructions", "1\r\nTwo"),
            ("speech.speed", "1.5"),
            ("record", "false"),
            ("record", "true"),
            ("language", ""),
        ];
        let (fields, forms) = merged(&base, &saved, &typed);
        let by = |name: &str, who| (name.to_owned(), who);
        let expected = [
            by("name", By::Them),
            by("first_message", By::Me),
            by("instructions", By::Both),
            by("record", By::Them),
            by("language", By::Them),
        ];
        assert_eq!(fields, expected);
        let names: Vec<&str> = forms.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["first_message", "instructions", "speech.speed"]);
    }

    #[test]
    fn without_the_revision_that_was_read_everything_that_differs_is_asked_for() {
        let (fields, _) =
            merged(&Value::Null, &json!({"name": "B", "model": "m"}), &[("name", "A"), ("model", "m")]);
        assert_eq!(fields, [("name".to_owned(), By::Both)]);
    }

    #[test]
    fn what_is_attached_keeps_the_changes_of_both() {
        let base = json!({"tool_ids": ["kept", "mine_out", "their_out"]});
        let saved = json!({"tool_ids": ["kept", "mine_out", "their_new"]});
        let typed =
            [("tool_ids", ""), ("tool_ids", "my_new"), ("tool_ids", "kept"), ("tool_ids", "their_out")];
        let (fields, forms) = merged(&base, &saved, &typed);
        let ids: Vec<&str> = forms.iter().map(|(_, id)| id.as_str()).collect();
        assert_eq!((fields.len(), ids), (0, vec!["", "kept", "their_new", "my_new"]));
    }
}

//! Values in TOML. A file keeps its comments and its order when some of its values change.
use serde_json::{Map, Number, Value};
use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table, Value as Toml};

use super::kind::has_parts;

/// Objects that are no longer than this stand on one line.
const LINE_CHARS_MAX: usize = 72;

/// The JSON of an item. `Err` says what JSON does not have.
pub fn to_json(item: &Item) -> Result<Value, &'static str> {
    match item {
        Item::None => Ok(Value::Null),
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => entries(table.iter()),
        Item::ArrayOfTables(tables) => {
            tables.iter().map(|table| entries(table.iter())).collect::<Result<_, _>>().map(Value::Array)
        }
    }
}

fn entries<'a>(entries: impl Iterator<Item = (&'a str, &'a Item)>) -> Result<Value, &'static str> {
    let map = entries.map(|(key, item)| Ok((key.to_owned(), to_json(item)?)));
    map.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn value_to_json(value: &Toml) -> Result<Value, &'static str> {
    Ok(match value {
        Toml::String(text) => Value::String(text.value().clone()),
        Toml::Integer(number) => Value::from(*number.value()),
        Toml::Float(number) => {
            Number::from_f64(*number.value()).map(Value::Number).ok_or("is not a finite number")?
        }
        Toml::Boolean(value) => Value::Bool(*value.value()),
        Toml::Datetime(_) => return Err("is a date; write it as text, in quotation marks"),
        Toml::Array(items) => Value::Array(items.iter().map(value_to_json).collect::<Result<_, _>>()?),
        Toml::InlineTable(table) => {
            let map = table.iter().map(|(key, value)| Ok((key.to_owned(), value_to_json(value)?)));
            Value::Object(map.collect::<Result<_, &'static str>>()?)
        }
    })
}

/// Reads a field: an object or a list may be written as JSON in a text, since TOML has no null.
pub fn field_to_json(item: &Item, schema: &Value) -> Result<Value, String> {
    match to_json(item)? {
        Value::String(text) if has_parts(schema) => serde_json::from_str(&text)
            .map_err(|error| format!("is a text, so it has to be JSON, which it is not: {error}")),
        value => Ok(value),
    }
}

/// Sets a field of a file, if it differs. What did not change in it stays to the byte. JSON in a text stays that.
pub fn set_field(table: &mut Table, name: &str, value: &Value) {
    let is_in_a_text = (value.is_object() || value.is_array()) && table.get(name).is_some_and(Item::is_str);
    // TOML has no null, and its integers have 63 bits.
    let text;
    let value = if is_toml(value) && !is_in_a_text {
        value
    } else {
        text = Value::String(serde_json::to_string_pretty(value).unwrap_or_default());
        &text
    };
    set(table, name, value);
}

fn set(table: &mut Table, name: &str, value: &Value) {
    match table.get_mut(name) {
        Some(item) => change(item, value),
        None => drop(table.insert(name, item(value))),
    }
}

fn change(old: &mut Item, value: &Value) {
    if to_json(old).as_ref() == Ok(value) {
        return;
    }
    match (old, value) {
        (Item::Table(table), Value::Object(map)) => {
            let gone: Vec<String> =
                table.iter().map(|(key, _)| key.to_owned()).filter(|key| !map.contains_key(key)).collect();
            gone.iter().for_each(|key| drop(table.remove(key)));
            map.iter().for_each(|(key, value)| set(table, key, value));
        }
        (Item::ArrayOfTables(tables), Value::Array(items)) if are_objects(items) => {
            while tables.len() > items.len() {
                tables.remove(tables.len() - 1);
            }
            for (place, item) in items.iter().enumerate() {
                let map = item.as_object().cloned().unwrap_or_default();
                match tables.get_mut(place) {
                    Some(table) => {
                        let mut old = Item::Table(std::mem::take(table));
                        change(&mut old, item);
                        if let Item::Table(changed) = old {
                            *table = changed;
                        }
                    }
                    None => tables.push(table_of(&map)),
                }
            }
        }
        (Item::Value(old), value) => {
            let mut new = inline(value);
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (old, value) => *old = item(value),
    }
}

fn are_objects(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(Value::is_object)
}

/// The value as it is written where nothing stands yet.
fn item(value: &Value) -> Item {
    match value {
        Value::Object(map) if !map.is_empty() => Item::Table(table_of(map)),
        Value::Array(items) if are_objects(items) => {
            let mut tables = ArrayOfTables::new();
            items.iter().filter_map(Value::as_object).for_each(|map| tables.push(table_of(map)));
            Item::ArrayOfTables(tables)
        }
        other => Item::Value(inline(other)),
    }
}

fn table_of(map: &Map<String, Value>) -> Table {
    let mut table = Table::new();
    for (key, value) in map {
        let line = Item::Value(inline(value));
        let is_short = line.to_string().chars().count() <= LINE_CHARS_MAX;
        table.insert(key, if is_short { line } else { item(value) });
    }
    // A header only where it has values of its own.
    let has_none = table.iter().all(|(_, item)| !item.is_value());
    table.set_implicit(has_none);
    table
}

fn inline(value: &Value) -> Toml {
    match value {
        Value::Null => Toml::from(""),
        Value::Bool(value) => Toml::from(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Toml::from(number),
            None => Toml::from(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => string(text),
        Value::Array(items) => Toml::Array(items.iter().map(inline).collect::<Array>()),
        Value::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map {
                table.insert(key, inline(value));
            }
            Toml::InlineTable(table)
        }
    }
}

/// A text of several lines stands on several lines.
fn string(text: &str) -> Toml {
    let plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    if text.contains('\n') && text.chars().all(plain) {
        let escaped = text.replace('\\', "\\\\").replace("\"\"\"", "\"\"\\\"");
        // A quotation mark at the end would run into the closing ones.
        let escaped = match escaped.strip_suffix('"') {
            Some(rest) if !rest.ends_with('\\') => format!("{rest}\\\""),
            _ => escaped,
        };
        if let Ok(value) = format!("\"\"\"\n{escaped}\"\"\"").parse::<Toml>()
            && value.as_str() == Some(text)
        {
            return value;
        }
    }
    Toml::from(text)
}

fn is_toml(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Number(number) => number.as_i64().is_some() || number.is_f64(),
        Value::Array(items) => items.iter().all(is_toml),
        Value::Object(map) => map.values().all(is_toml),
        Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toml_edit::DocumentMut;

    use super::*;

    fn again(value: &Value, schema: &Value) -> (String, Value) {
        let mut document = DocumentMut::new();
        set_field(&mut document, "field", value);
        let text = document.to_string();
        let read: DocumentMut = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let value = field_to_json(&read["field"], schema).unwrap();
        (text, value)
    }

    #[test]
    fn every_value_is_read_as_it_was_written() {
        let object = json!({"type": "object"});
        for text in [
            "",
            "a",
            "a\nb",
            "a\n",
            "\na",
            "\n",
            "a\"\"\"\nb\"",
            "\\\n\\",
            "\r\n",
            "tab\t\n",
            "\u{7f}\n",
            "'''\n",
            "a\n\"\"\"\"\"\"",
        ] {
            assert_eq!(again(&json!(text), &json!({"type": "string"})).1, json!(text), "{text:?}");
        }
        for value in [
            json!({"a": null}),
            json!({"a": {"b": [{"c": 1}, {"d": {"e": "x".repeat(100)}}]}, "f": 1.0, "g": 2}),
            json!({"a": [], "b": {}, "c": [[1], [{"d": u64::MAX}]]}),
            json!({"find slot": [{"when": {"day": "Monday"}, "result": {"free": false}}, {"error": "x\ny"}]}),
        ] {
            assert_eq!(again(&value, &object).1, value);
        }
    }

    #[test]
    fn a_change_keeps_what_stands_around_it() {
        let before = "# The front desk.\nname = \"A\" # short\n\n# How it speaks.\n[speech]\n# Slowly.\nspeed = 0.9 # of 1\nfiller = \"Hm.\"\n\n[[evaluations]] # first\nkind = \"a\"\n\n[[evaluations]] # second\nkind = \"b\"\n";
        let mut document: DocumentMut = before.parse().unwrap();
        set_field(&mut document, "name", &json!("A"));
        set_field(&mut document, "speech", &json!({"speed": 0.8, "filler": "Hm."}));
        set_field(&mut document, "evaluations", &json!([{"kind": "a"}, {"kind": "c"}, {"kind": "d"}]));
        let after = before
            .replace("0.9", "0.8")
            .replace("kind = \"b\"\n", "kind = \"c\"\n\n[[evaluations]]\nkind = \"d\"\n");
        assert_eq!(document.to_string(), after);
    }
}

use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn a_booking_is_filled() {
    let schema = json!({"type": "object", "properties": {
        "date": {"type": "string", "format": "date"},
        "time": {"type": "string"},
        "party_size": {"type": "integer", "description": "Number of people"},
        "email": {"type": "string"},
        "area": {"enum": ["inside", "outside"]}
    }, "required": ["date", "party_size"]});
    let text = "Book a table outside on 12 March 2027 at 7pm for 4 people, bob@example.com";
    assert_eq!(
        filled(&schema, text),
        json!({"date": "2027-03-12", "time": "19:00", "party_size": 4,
               "email": "bob@example.com", "area": "outside"})
    );
    assert_eq!(filled(&schema, "Book a table on March 12"), json!({"date": "March 12"}));
}

#[test]
fn a_number_next_to_a_propertys_word_fills_it() {
    let schema = object(json!({
        "quantity": {"type": "integer"}, "order_id": {"type": "string"}
    }));
    assert_eq!(filled(&schema, "order 1234, quantity 2"), json!({"quantity": 2, "order_id": "1234"}));
    assert_eq!(filled(&schema, "2 pieces for order A-77"), json!({"quantity": 2, "order_id": "A-77"}));
}

#[test]
fn numbers_fit_their_type_and_bounds() {
    let schema = object(json!({
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "price": {"type": "number"}
    }));
    assert_eq!(filled(&schema, "12.50 for 3"), json!({"count": 3, "price": 12.5}));
    assert_eq!(filled(&schema, "for two"), json!({"count": 2}));
    assert_eq!(filled(&schema, "99999999999999999999"), json!({"price": 1e20}));
    assert_eq!(filled(&schema, "nothing"), json!({}));
}

#[test]
fn phones_and_addresses_are_recognised_by_name_or_format() {
    let schema = object(json!({
        "phone_number": {"type": "string"}, "contact": {"type": "string", "format": "email"},
        "link": {"type": "string", "format": "uri"}
    }));
    assert_eq!(
        filled(&schema, "Reach me at +44 20 7946 0958 or a@b.example, https://b.example/x"),
        json!({"phone_number": "+442079460958", "contact": "a@b.example", "link": "https://b.example/x"})
    );
}

#[test]
fn quoted_words_and_cues_fill_strings() {
    let schema = object(json!({"note": {"type": "string"}}));
    assert_eq!(filled(&schema, "Leave “call me back” there"), json!({"note": "call me back"}));
    let schema = object(json!({"customer_name": {"type": "string"}, "city": {"type": "string"}}));
    assert_eq!(
        filled(&schema, "Hi, I'm Bob van Dyk and I live in New York."),
        json!({"customer_name": "Bob", "city": "New York"})
    );
    assert_eq!(
        filled(&schema, "my name is Zoë Müller, the city is paris"),
        json!({"customer_name": "Zoë Müller", "city": "paris"})
    );
}

#[test]
fn a_required_string_gets_the_remaining_text() {
    let schema = json!({"type": "object", "required": ["message", "count"], "properties": {
        "message": {"type": "string"}, "count": {"type": "integer"}}});
    assert_eq!(
        filled(&schema, "Tell them we are late by 5"),
        json!({"message": "Tell them we are late", "count": 5})
    );
    assert_eq!(filled(&schema, "7"), json!({"message": "7", "count": 7}));
    assert_eq!(filled(&schema, " "), json!({}));
    let optional = object(json!({"message": {"type": "string"}}));
    assert_eq!(filled(&optional, "Tell them we are late"), json!({}));
    let short = json!({"required": ["m"], "properties": {"m": {"type": "string", "maxLength": 4}}});
    assert_eq!(filled(&short, "ééééé"), json!({"m": "éééé"}));
}

#[test]
fn a_format_is_never_filled_with_something_else() {
    let schema = json!({"required": ["mail"], "properties": {
        "mail": {"type": "string", "format": "email"}}});
    assert_eq!(filled(&schema, "Write to me"), json!({}));
}

#[test]
fn enums_are_matched_word_by_word() {
    let schema = object(json!({"size": {"type": "string", "enum": ["large", "extra_large", "S"]}}));
    assert_eq!(filled(&schema, "an Extra Large one"), json!({"size": "extra_large"}));
    assert_eq!(filled(&schema, "the large"), json!({"size": "large"}));
    assert_eq!(filled(&schema, "enlarged"), json!({}));
    let mixed = object(json!({"x": {"enum": [1, 2.5, true, null, {"a": 1}, ["b"], "zwölf"]}}));
    assert_eq!(filled(&mixed, "take 2.5"), json!({"x": 2.5}));
    assert_eq!(filled(&mixed, "ZWÖLF!"), json!({"x": "zwölf"}));
    assert_eq!(filled(&mixed, "null a b"), json!({}));
    let one = json!({"required": ["k"], "properties": {"k": {"const": "fixed", "default": "fixed"}}});
    assert_eq!(filled(&one, "x"), json!({"k": "fixed"}));
}

#[test]
fn booleans_understand_negation() {
    let schema = json!({"required": ["confirmed"], "properties": {
        "gift_wrap": {"type": "boolean"}, "confirmed": {"type": "boolean"}}});
    assert_eq!(filled(&schema, "Yes, with gift wrap"), json!({"gift_wrap": true, "confirmed": true}));
    assert_eq!(filled(&schema, "No, don't gift wrap it"), json!({"gift_wrap": false, "confirmed": false}));
    assert_eq!(filled(&schema, "a hat"), json!({}));
}

#[test]
fn arrays_and_objects_are_filled() {
    let schema = object(json!({
        "toppings": {"type": "array", "items": {"enum": ["cheese", "ham", "olives"]}},
        "when": {"type": "object", "properties": {"date": {"type": "string", "format": "date"}}},
        "rows": {"type": "array", "items": {"type": "integer"}}
    }));
    assert_eq!(
        filled(&schema, "olives and ham, rows 3 and 4 on 2027-01-02"),
        json!({"toppings": ["ham", "olives"], "when": {"date": "2027-01-02"}, "rows": [3, 4]})
    );
    let words = json!({"required": ["tags"], "properties": {
        "tags": {"type": "array", "items": {"type": "string"}}}});
    assert_eq!(filled(&words, "\"a b\" and \"c\""), json!({"tags": ["a b", "c"]}));
    assert_eq!(filled(&words, "green"), json!({"tags": ["green"]}));
}

#[test]
fn references_and_unions_are_followed() {
    let schema = json!({"$defs": {"n": {"type": "integer"}}, "properties": {
        "a": {"$ref": "#/$defs/n"},
        "b": {"anyOf": [{"type": "null"}, {"type": "string", "format": "email"}]},
        "c": {"type": ["null", "integer"]}}});
    assert_eq!(filled(&schema, "1 and 2 for a@b.example"), json!({"a": 1, "b": "a@b.example", "c": 2}));
}

#[test]
fn malformed_schemas_do_not_panic() {
    for schema in [
        json!(null),
        json!(true),
        json!([]),
        json!("object"),
        json!({"properties": []}),
        json!({"properties": {"a": 1, "b": null, "c": []}}),
        json!({"required": "a", "properties": {"a": {"type": 7}}}),
        json!({"required": [1, null], "properties": {"a": {"enum": "x"}}}),
        json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
        json!({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        json!({"properties": {"a": {"$ref": "https://a.example"}}}),
        json!({"properties": {"a": {"anyOf": [{"anyOf": [{"anyOf": []}]}]}}}),
        json!({"properties": {"a": {"type": "integer", "minimum": "x", "maximum": {}}}}),
        json!({"properties": {"a": {"type": "array", "items": {"type": "array"}}}}),
        json!({"properties": {"a": {"type": "array", "items": [{}, {}]}}}),
        json!({"properties": {"a": {"type": "string", "maxLength": -1, "format": 5}}}),
        json!({"properties": {"": {"type": "boolean"}, "-": {"type": "boolean"}}}),
    ] {
        fill(&schema, "say \"x\" 1 two a@b.example 2027-01-02");
    }
    assert_eq!(filled(&json!({"required": ["x"]}), "hello there"), json!({"x": "hello there"}));
}

#[test]
fn deep_and_wide_schemas_are_bounded() {
    let mut deep = json!({"type": "integer"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"a": deep}, "required": ["a"]});
    }
    let mut value = &filled(&deep, "1");
    let mut depth = 0;
    while let Some(inner) = value.get("a") {
        value = inner;
        depth += 1;
    }
    assert_eq!(depth, DEPTH_MAX);
    let twin = json!({"$ref": "#/$defs/x"});
    let many: Map<_, _> = (0..5_000).map(|n| (format!("p{n}"), twin.clone())).collect();
    let wide = json!({"properties": many, "required": [],
        "$defs": {"x": {"type": "object", "properties": many}}});
    assert!(filled(&wide, "1 2 3").as_object().unwrap().is_empty());
}

#[test]
fn a_function_word_alone_is_what_was_said() {
    let schema = json!({"required": ["s"], "properties": {"s": {"type": "string"}}});
    for (text, said) in [("a", "a"), ("!\ta", "! a"), ("Call me at", "Call me")] {
        assert_eq!(filled(&schema, text), json!({"s": said}), "{text}");
    }
}

proptest! {
    #[test]
    fn values_have_the_type_of_their_property(text in ".{0,100}") {
        let schema = json!({"required": ["s", "n"], "properties": {
            "s": {"type": "string"}, "n": {"type": "number"}, "i": {"type": "integer"},
            "b": {"type": "boolean"}, "name": {"type": "string"}, "city": {"type": "string"},
            "date": {"type": "string"}, "e": {"enum": ["a", 1]}}});
        let value = filled(&schema, &text);
        prop_assert!(value["s"].is_string() || text.chars().all(|c| !c.is_alphanumeric()));
        prop_assert!(value.get("n").is_none_or(Value::is_number));
        prop_assert!(value.get("i").is_none_or(|i| i.is_i64() || i.is_u64()));
    }
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn filled(schema: &Value, text: &str) -> Value {
    Value::Object(fill(schema, text))
}

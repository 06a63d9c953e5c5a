//! Every schema is accepted or rejected, and all arguments are validated, without a crash and in bounded time. The input is
//! `[schema, arguments]`, or a schema alone.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sidetone_engine::base::json::read;
use sidetone_engine::base::tool_parameters::{PROBLEMS_MAX, ToolParameters};

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = read(bytes) else {
        return;
    };
    let (mut schema, arguments) = match document {
        Value::Array(mut parts) if parts.len() == 2 => {
            let arguments = parts.pop().unwrap_or_default();
            (parts.pop().unwrap_or_default(), arguments)
        }
        schema => (schema.clone(), schema),
    };
    if let Some(object) = schema.as_object_mut() {
        object.insert("type".to_owned(), json!("object"));
    }
    let start = Instant::now();
    match ToolParameters::parse(&schema) {
        Ok(parameters) => {
            assert_eq!(parameters.as_value(), &schema);
            if let Err(problems) = parameters.check_arguments(&arguments) {
                assert!((1..=PROBLEMS_MAX).contains(&problems.len()));
            }
            assert!(arguments.is_object() || parameters.check_arguments(&arguments).is_err());
        }
        Err(problems) => assert!((1..=PROBLEMS_MAX).contains(&problems.len())),
    }
    assert!(start.elapsed() < Duration::from_secs(10), "took {:?}", start.elapsed());
});

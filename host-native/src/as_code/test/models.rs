//! Which models a test can use: the built-in ones. A provider would need a key, the network and money.
use serde_json::Value;

use super::runner::Case;
use crate::as_code::failure::Failure;
use crate::as_code::folder::{Folder, shown};
use crate::as_code::kind::Kind;

/// What the models have in common that run in this process.
const BUILT_IN: &str = "builtin/";
/// Files that an error lists.
const LISTED_MAX: usize = 10;

/// Whether it runs in this process.
pub fn is_built_in(model: &str) -> bool {
    model.starts_with(BUILT_IN)
}

/// The fields that name models.
pub const fn fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Assistant | Kind::Persona => &["model"],
        Kind::Scenario => &["judge_model"],
        _ => &[],
    }
}

/// Refuses the models of providers, and says what to do.
pub fn check(folder: &Folder, cases: &[Case<'_>], model: Option<&str>) -> Result<(), Failure> {
    if let Some(model) = model {
        return match is_built_in(model) {
            true => Ok(()),
            false => Err(Failure(format!("--model {model}: a test reaches no provider; use builtin/rules"))),
        };
    }
    let mut found = std::collections::BTreeSet::new();
    for case in cases {
        for (kind, stem) in [
            (Kind::Assistant, case.assistant),
            (Kind::Persona, case.persona),
            (Kind::Scenario, case.scenario),
        ] {
            let entry = folder.of(kind).get(stem);
            for field in fields(kind) {
                let value = entry.and_then(|entry| entry.stated.get(*field)).and_then(Value::as_str);
                if let Some(value) = value.filter(|value| !is_built_in(value)) {
                    found.insert(format!("{}: {field} = {value:?}", shown(kind, stem)));
                }
            }
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let mut listed: Vec<String> = found.iter().take(LISTED_MAX).cloned().collect();
    if found.len() > LISTED_MAX {
        listed.push(format!("and {} more", found.len() - LISTED_MAX));
    }
    Err(Failure(format!(
        "a test runs in this process and reaches no provider, but these use models of providers:\n  {}\nTo run them with the \
         built-in model, add `--model builtin/rules`. To run them with their own models, `sidetone apply` the folder to a \
         server that has the provider, and start a batch there.",
        listed.join("\n  ")
    )))
}

//! The form that simulates a caller at once: it makes the persona, the scenario and the simulation that a run needs, each
//! by its operation.
use serde_json::{Value, json};

use super::forms::{self, run_by_id as run};
use super::paths;
use super::visit::Visit;
use crate::base::text::collapse_whitespace;
use crate::speech::vocabulary::end_of_whole_words;
use crate::storage::accounts::Session;
use crate::storage::fault::Fault;

/// The form's name.
pub(super) const FORM: &str = "simulate_caller";

/// The persona that such callers share.
const PERSONA: &str = "Everyday caller";
const SYSTEM_PROMPT: &str =
    "You are friendly and brief. You say what you want, and goodbye when you have it.";

/// Starts the run, and returns its id.
pub(super) async fn caller(
    visit: &Visit<'_>,
    session: &Session,
    fields: &forms::Fields,
) -> Result<String, Fault> {
    let value = |name: &str| paths::value(fields, name).unwrap_or_default();
    let (assistant, instructions, includes) = (value("id"), value("instructions"), value("includes"));
    let evaluations = json!([{"kind": "transcript", "role": "assistant", "includes": includes}]).to_string();
    let name = name_of(instructions);
    let scenario = [("name", name.as_str()), ("instructions", instructions), ("evaluations", &evaluations)];
    let scenario = text(&run(visit, session, "create_simulation_scenario", &scenario).await?, "id");
    let personas = run(visit, session, "list_simulation_personas", &[]).await?;
    let known = personas.as_array().into_iter().flatten().find(|one| one["name"] == PERSONA);
    let persona = match known {
        Some(persona) => text(persona, "id"),
        None => {
            let persona = [("name", PERSONA), ("system_prompt", SYSTEM_PROMPT)];
            text(&run(visit, session, "create_simulation_persona", &persona).await?, "id")
        }
    };
    let simulation = [("assistant_id", assistant), ("persona_id", &persona), ("scenario_id", &scenario)];
    let simulation = text(&run(visit, session, "create_simulation", &simulation).await?, "id");
    let started =
        run(visit, session, "start_simulation_run", &[("id", &simulation), ("mode", "chat")]).await?;
    Ok(text(&started, "id"))
}

/// The name of a scenario: the first words of what its caller is told.
fn name_of(instructions: &str) -> String {
    const CHARS_MAX: usize = 60;
    let line = collapse_whitespace(instructions);
    let Some((cut, _)) = line.char_indices().nth(CHARS_MAX) else { return line };
    let end = end_of_whole_words(&line, cut);
    // A single long word is cut anywhere.
    format!("{}…", line[..if end == 0 { cut } else { end }].trim_end())
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_called_by_its_first_whole_words() {
        assert_eq!(name_of("Ask when\n you open."), "Ask when you open.");
        let long = "You want to know whether the shop is open on Saturday afternoons in winter.";
        assert_eq!(name_of(long), "You want to know whether the shop is open on Saturday…");
        assert_eq!(name_of(&"x".repeat(70)), format!("{}…", "x".repeat(60)));
    }
}

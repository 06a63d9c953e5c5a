//! The pages of runs and batches: what is run again is run with the same, and inline runs are shown as what they are.
#![allow(clippy::unwrap_used, reason = "a test")]
#[path = "common/pages.rs"]
mod shown;

use serde_json::{Value, json};
use shown::{cases, page_at, render};

/// The value of a hidden field of the form that calls `operation`.
fn hidden<'a>(html: &'a str, operation: &str, name: &str) -> Option<&'a str> {
    let form =
        html.split(&format!("action=\"/dashboard/do/{operation}\"")).nth(1)?.split("</form>").next()?;
    form.split(&format!("name=\"{name}\" value=\"")).nth(1)?.split('"').next()
}

#[test]
fn what_is_run_again_is_run_with_the_same() {
    let run = page_at("/dashboard/simulations/runs/{id}");
    let batch = page_at("/dashboard/simulations/batches/{id}");
    let same = [
        ("variables", "{&quot;practice&quot;:&quot;Blue Door&quot;}"),
        ("metadata", "{&quot;ticket&quot;:&quot;BD-17&quot;}"),
        ("seed", "7"),
        ("mode", "chat"),
    ];
    let html = render(run, &cases()["run-failed"]);
    let of_run = [("tools", "mock"), ("max_cost_microusd", "1")];
    for (name, value) in same.into_iter().chain(of_run) {
        assert_eq!(hidden(&html, "start_simulation_run", name), Some(value), "{name}");
    }
    assert_eq!(hidden(&html, "start_simulation_run", "repeat"), None);
    let html = render(batch, &cases()["batch"]);
    let of_batch = [("tools", "live"), ("max_cost_microusd", "0.25"), ("repeat", "2")];
    for (name, value) in same.into_iter().chain(of_batch) {
        assert_eq!(hidden(&html, "start_simulation_batch", name), Some(value), "{name}");
    }
    // Of an option that a read does not tell, the start has its default.
    let mut case = cases().remove("batch").unwrap();
    case["answers"][0]["seed"] = Value::Null;
    case["answers"][0]["variables"] = json!({});
    let html = render(batch, &case);
    for name in ["seed", "variables"] {
        assert_eq!(hidden(&html, "start_simulation_batch", name), None, "{name}");
    }
}

/// An inline run has no simulation: nothing of it is deleted, and it is compared with its like.
#[test]
fn an_inline_run_is_shown_as_one() {
    let case = &cases()["run-inline"];
    let html = render(page_at("/dashboard/simulations/runs/{id}"), case);
    assert!(
        html.contains("Inline run – \u{2068}Hurried &lt;parent&gt; × Moves an appointment\u{2069}"),
        "{html}"
    );
    assert_eq!(html.matches("given with the start").count(), 2, "scenario and caller: {html}");
    assert!(html.contains("changed for this run") && !html.contains(">deleted<"), "{html}");
    assert!(!html.contains("start_simulation_run") && !html.contains("/simulations//runs"), "{html}");
    // Of the same batch, and of the same snapshot; not of another start, nor a stored one with the same snapshot.
    let runs = case["answers"][3]["runs"].as_array().unwrap();
    let compared: Vec<bool> = runs
        .iter()
        .map(|other| html.contains(&format!("/compare/{}\"", other["id"].as_str().unwrap())))
        .collect();
    assert_eq!(compared, [true, false, true, false, false, false]);
    let mut case = case.clone();
    case["answers"][1] = json!([]);
    let html = render(page_at("/dashboard/simulations/runs/{id}"), &case);
    assert!(
        !html.contains("href=\"/dashboard/assistants/"),
        "no page of an assistant that is not stored: {html}"
    );
    case["answers"][0]["simulation_id"] = "sim_gone".into();
    let html = render(page_at("/dashboard/simulations/runs/{id}"), &case);
    assert_eq!(html.matches(">deleted<").count(), 2, "{html}");
}

#[test]
fn a_batch_of_inline_runs_is_not_started_as_one_of_simulations() {
    let mut case = cases().remove("batch").unwrap();
    case["url"] = "/dashboard/simulations/batches/batch_01m8bd2vczm0eag5raj3afhms5".into();
    for run in case["answers"][1]["runs"].as_array_mut().unwrap() {
        run["simulation_id"] = Value::Null;
    }
    let html = render(page_at("/dashboard/simulations/batches/{id}"), &case);
    assert!(!html.contains("start_simulation_batch") && html.contains(">Inline run<"), "{html}");
}

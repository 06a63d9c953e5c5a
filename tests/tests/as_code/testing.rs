//! `test`: no server, no key.
use std::fs;

use roxmltree::Document;
use serde_json::Value;

use crate::support::{Desk, Said, files};

fn test(desk: &Desk, arguments: &[&str]) -> Said {
    desk.run(&[&["test", "folder", "--junit", "junit.xml", "--json", "report.json"], arguments].concat())
}

fn junit(desk: &Desk) -> String {
    fs::read_to_string(desk.other("junit.xml")).expect("a report")
}

fn json(desk: &Desk) -> Value {
    serde_json::from_str(&fs::read_to_string(desk.other("report.json")).expect("a report")).expect("JSON")
}

#[test]
fn a_folder_that_is_well_passes() {
    let desk = Desk::alone();
    let said = test(&desk, &[]).expect(0);
    assert!(
        said.contains("2 passed, 0 failed, 0 undecided, 0 without evaluations, 0 with an error"),
        "{said}"
    );
    assert!(said.contains("2 runs in "), "{said}");
    assert!(!desk.folder().join("sidetone.lock").exists(), "a test leaves nothing");
    let text = junit(&desk);
    let document = Document::parse(&text).expect("XML");
    let suite = document.root_element().first_element_child().expect("a suite");
    assert_eq!(suite.attribute("name"), Some("assistants/front-desk.toml"));
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("2"), Some("0")));
    let report = json(&desk);
    let rows = report["runs"][0]["transcript"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["mocked"] == true), "the scenario answers for the tool: {report}");
}

#[test]
fn the_same_seeds_give_the_same_report() {
    let desk = Desk::alone();
    let run = || {
        test(&desk, &["--repeat", "20", "--seed", "7"]).expect(0);
        let mut report = json(&desk);
        report["seconds"].take();
        (report, junit(&desk).lines().skip(2).collect::<Vec<_>>().join("\n"))
    };
    let first = run();
    assert_eq!(first.0["passed"], 40);
    assert_eq!(first.0["runs"][0]["seed"], 7);
    assert_eq!(first, run());
}

#[test]
fn a_scenario_that_fails_says_why_and_where() {
    let desk = Desk::alone();
    let evaluations =
        "\n[[evaluations]]\nkind = \"transcript_excludes\"\nrole = \"assistant\"\nincludes = \"ten\"\n";
    let text = desk.text("scenarios/saturday.toml") + evaluations;
    desk.write("scenarios/saturday.toml", &text);
    let said = test(&desk, &[]).expect(1);
    assert!(said.contains("FAILED simulations/saturday.toml (seed 1)"), "{said}");
    assert!(said.contains("✓ evaluations[0] transcript of assistant \"open at ten\""), "{said}");
    assert!(said.contains("✗ evaluations[1] transcript_excludes of assistant \"ten\""), "{said}");
    let marked: Vec<&str> = said.lines().filter(|line| line.starts_with('▶')).collect();
    assert!(
        matches!(&marked[..], [line] if line.contains("open at ten") && line.ends_with("← evaluations[1]")),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "no colours where no terminal is");
    assert!(said.contains("1 passed, 1 failed"), "{said}");
    let text = junit(&desk);
    let document = Document::parse(&text).expect("XML");
    let failure = document.descendants().find(|node| node.has_tag_name("failure")).expect("a failure");
    assert!(failure.attribute("message").is_some_and(|text| text.contains("evaluations[1]")));
    assert!(failure.text().is_some_and(|text| text.contains("open at ten")));
    assert_eq!(document.root_element().attribute("failures"), Some("1"));
    assert_eq!(json(&desk)["failed"], 1);

    // What is filtered out is not run.
    let said = test(&desk, &["--filter", "booking"]).expect(0);
    assert!(said.contains("1 passed, 0 failed"), "{said}");
    let said = test(&desk, &["--filter", "nothing"]).expect(2);
    assert!(said.contains("none of the 2 simulations matches nothing"), "{said}");
}

#[test]
fn what_was_not_said_is_marked_where_it_could_have_been() {
    let desk = Desk::alone();
    desk.edit("scenarios/saturday.toml", "open at ten", "open at nine");
    let said = test(&desk, &["--filter", "saturday"]).expect(1);
    let marked: Vec<&str> = said.lines().filter(|line| line.starts_with('▷')).collect();
    assert!(
        matches!(&marked[..], [line] if line.contains("open at ten") && line.ends_with("← evaluations[0]: not until here")),
        "{said}"
    );
}

/// Without a role, any line could have been it.
#[test]
fn what_nobody_said_is_marked_too() {
    let desk = Desk::alone();
    desk.edit("scenarios/saturday.toml", "open at ten", "open at nine");
    desk.edit("scenarios/saturday.toml", "role = \"assistant\"\n", "");
    let said = test(&desk, &["--filter", "saturday"]).expect(1);
    assert_eq!(said.lines().filter(|line| line.starts_with('▷')).count(), 1, "{said}");
}

#[test]
fn a_folder_within_a_folder_is_not_overlooked() {
    let desk = Desk::alone();
    fs::create_dir(desk.folder().join("simulations/dental")).expect("it is created");
    fs::create_dir(desk.folder().join("simulations/.git")).expect("it is created");
    let said = test(&desk, &[]).expect(2);
    assert!(said.contains("simulations/dental is a folder; files stand directly in simulations/"), "{said}");
    assert!(!said.contains(".git"), "{said}");
}

#[test]
fn what_is_misspelt_is_not_overlooked() {
    let desk = Desk::alone();
    for folder in ["persona", "Scenarios", "asistants", "notes", ".tools"] {
        fs::create_dir(desk.folder().join(folder)).expect("it is created");
    }
    let wrong = ["tools/cancel.tml", "tools/README"];
    let left = ["tools/book.toml~", "tools/.book.toml.swp", "tools/a.toml.new"];
    for file in wrong.iter().chain(&left) {
        desk.write(file, "name = \"a\"\n");
    }
    let said = test(&desk, &[]).expect(2);
    assert!(said.contains("5 problems in folder:"), "{said}");
    for (wrong, meant) in [("persona", "personas"), ("Scenarios", "scenarios"), ("asistants", "assistants")] {
        assert!(said.contains(&format!("{wrong}/ is not read; is {meant}/ meant?")), "{said}");
    }
    for file in wrong {
        assert!(said.contains(&format!("{file} is not read: names of files end in .toml")), "{said}");
    }
}

#[test]
fn a_simulation_without_evaluations_is_skipped() {
    let desk = Desk::alone();
    desk.write("scenarios/saturday.toml", "name = \"Saturday\"\ninstructions = \"Ask when they open.\"\n");
    let said = test(&desk, &[]).expect(0);
    assert!(said.contains("1 without evaluations"), "{said}");
    let text = junit(&desk);
    let document = Document::parse(&text).expect("XML");
    assert!(document.descendants().any(|node| node.has_tag_name("skipped")));
}

#[test]
fn a_provider_is_not_reached_and_the_error_says_what_to_do() {
    let desk = Desk::alone();
    desk.edit(
        "assistants/front-desk.toml",
        "model = \"builtin/rules\"",
        "model = \"openai/gpt-5\"\nvoice = \"deepgram/aura-2-thalia-en\"",
    );
    let said = test(&desk, &[]).expect(2);
    assert!(said.contains("assistants/front-desk.toml: model = \"openai/gpt-5\""), "{said}");
    assert!(said.contains("--model builtin/rules"), "{said}");
    test(&desk, &["--model", "builtin/rules"]).expect(0);
    assert!(test(&desk, &["--model", "openai/gpt-5"]).expect(2).contains("reaches no provider"));
}

#[test]
fn what_the_service_refuses_fails_the_test() {
    let desk = Desk::alone();
    desk.edit("scenarios/saturday.toml", "kind = \"transcript\"", "kind = \"transcripts\"");
    let said = test(&desk, &[]).expect(2);
    assert!(said.contains("scenarios/saturday.toml: ") && said.contains("evaluations[0].kind"), "{said}");
}

#[test]
fn of_several_refused_files_the_same_is_named_each_time() {
    let desk = Desk::alone();
    let scenario = desk.text("scenarios/saturday.toml").replace("kind = \"transcript\"", "kind = \"no\"");
    for number in 10..60 {
        desk.write(&format!("scenarios/s{number}.toml"), &scenario);
        let simulation = desk.text("simulations/saturday.toml");
        let simulation = simulation.replace("\"saturday\"", &format!("\"s{number}\""));
        desk.write(&format!("simulations/s{number}.toml"), &simulation);
    }
    let first = test(&desk, &["--filter", "s1", "--filter", "s2", "--filter", "s5"]).expect(2);
    assert!(first.contains("scenarios/s10.toml: "), "{first}");
}

#[test]
fn a_run_without_a_variable_is_an_error_of_that_run() {
    let desk = Desk::alone();
    desk.edit("assistants/front-desk.toml", "good morning.", "good morning, {{customer}}. It is {{now}}.");
    let said = test(&desk, &[]).expect(1);
    assert!(said.contains("ERROR simulations/saturday.toml") && said.contains("customer"), "{said}");
    desk.edit(
        "scenarios/saturday.toml",
        "name = \"Saturday\"\n",
        "name = \"Saturday\"\nvariables = { customer = \"Anna\" }\n",
    );
    let said = test(&desk, &["--filter", "saturday"]).expect(0);
    assert!(said.contains("1 passed"), "{said}");
    assert!(
        json(&desk)["runs"][0]["transcript"].to_string().contains("Anna. It is 2026-01-01T00:00:00.000Z.")
    );
}

#[test]
fn a_report_has_all_evaluations_that_failed() {
    let desk = Desk::alone();
    let failing = |text: &str| {
        format!("\n[[evaluations]]\nkind = \"transcript\"\nrole = \"assistant\"\nincludes = \"{text}\"\n")
    };
    let text = desk.text("scenarios/saturday.toml") + &failing("at nine") + &failing("at eight");
    desk.write("scenarios/saturday.toml", &text);
    test(&desk, &["--filter", "saturday"]).expect(1);
    let text = junit(&desk);
    let document = Document::parse(&text).expect("XML");
    let failure = document.descendants().find(|node| node.has_tag_name("failure")).expect("a failure");
    let told = failure.text().expect("a text");
    assert!(told.contains("\"at nine\"") && told.contains("\"at eight\""), "{told}");
    assert!(!told.contains("evaluations[0]"), "it passed: {told}");
}

#[test]
fn a_report_is_written_over_nothing_else() {
    let desk = Desk::alone();
    fs::write(desk.folder().join("sidetone.lock"), "").expect("it is written");
    let before = files(&desk.folder());
    let said = desk.run(&["test", "folder", "--junit", "report", "--json", "./report"]).expect(2);
    assert!(said.contains("--junit and --json would write the same file"), "{said}");
    assert!(!desk.other("report").exists());
    for path in ["folder/assistants/front-desk.toml", "folder/sidetone.lock", "./folder/tools/report.xml"] {
        let said = desk.run(&["test", "folder", "--junit", path]).expect(2);
        assert!(said.contains("the folder has its own files there"), "{said}");
    }
    assert_eq!(files(&desk.folder()), before);
    assert_eq!(desk.text("sidetone.lock"), "");
    desk.run(&["test", "folder", "--junit", "folder/report.xml"]).expect(0);
    assert!(desk.text("report.xml").contains("<testsuites"));
}

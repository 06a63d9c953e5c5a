//! A folder of 200 assistants and 2,000 simulations. The times are printed, not asserted: machines differ.
use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use crate::support::{Desk, files};

const ASSISTANTS: usize = 200;
const SIMULATIONS: usize = 2_000;
const SCENARIOS: usize = 50;

fn generate(desk: &Desk) {
    fs::remove_dir_all(desk.folder()).expect("the sample");
    for folder in ["assistants", "tools", "knowledge", "personas", "scenarios", "simulations"] {
        fs::create_dir_all(desk.folder().join(folder)).expect("a folder");
    }
    for number in 0..20 {
        desk.write(
            &format!("tools/tool_{number}.toml"),
            &format!("name = \"tool_{number}\"\nurl = \"https://shop.example.com/{number}\"\ndescription = \"Looks up {number}\"\n"),
        );
        let mut content = String::new();
        for line in 0..50 {
            let _ = writeln!(content, "Shelf {line} of shop {number} has {} boxes.", line * number);
        }
        desk.write(
            &format!("knowledge/shop-{number}.toml"),
            &format!(
                "name = \"Shop {number}\"\ncontent = \"\"\"\nShop {number} opens at {}.\n{content}\"\"\"\n",
                1 + number % 12
            ),
        );
        desk.write(
            &format!("personas/caller-{number}.toml"),
            &format!("name = \"Caller {number}\"\nsystem_prompt = \"Your name is Anna {number}.\"\n"),
        );
    }
    for number in 0..SCENARIOS {
        desk.write(
            &format!("scenarios/scenario-{number}.toml"),
            &format!(
                "name = \"Scenario {number}\"\ninstructions = 'Say \"Good day, number {number}.\" Ask when the shop opens.'\n\n\
                 [[evaluations]]\nkind = \"transcript\"\nrole = \"user\"\nincludes = \"number {number}.\"\n"
            ),
        );
    }
    for number in 0..ASSISTANTS {
        let shop = number % 20;
        desk.write(
            &format!("assistants/assistant-{number}.toml"),
            &format!(
                "name = \"Assistant {number}\"\ninstructions = \"\"\"\nYou answer for shop {shop}.\nYou are number {number}.\n\"\"\"\n\
                 tools = [\"tool_{shop}\"]\nknowledge = [\"shop-{shop}\"]\nmodel = \"builtin/rules\"\n"
            ),
        );
    }
    for number in 0..SIMULATIONS {
        desk.write(
            &format!("simulations/simulation-{number}.toml"),
            &format!(
                "name = \"Simulation {number}\"\nassistant = \"assistant-{}\"\npersona = \"caller-{}\"\nscenario = \"scenario-{}\"\n",
                number % ASSISTANTS,
                number % 20,
                number % SCENARIOS
            ),
        );
    }
}

#[test]
fn two_hundred_assistants_and_two_thousand_simulations() {
    let desk = Desk::new();
    generate(&desk);
    let timed = |what: &str, code: i32, arguments: &[&str]| {
        let started = Instant::now();
        let said = desk.run(arguments).expect(code);
        println!("{what}: {:.2} s", started.elapsed().as_secs_f64());
        said
    };
    let all = 20 * 3 + SCENARIOS + ASSISTANTS + SIMULATIONS;
    let done = timed("apply of everything", 0, &["apply", "folder"]);
    assert!(
        done.contains(&format!("{all} created, 0 changed")),
        "{}",
        done.lines().last().unwrap_or_default()
    );
    timed("diff without a difference", 0, &["diff", "folder"]);
    desk.edit("assistants/assistant-77.toml", "You are number 77.", "You are number 78.");
    timed("diff of one change", 1, &["diff", "folder"]);
    let done = timed("apply of one change", 0, &["apply", "folder"]);
    assert!(done.contains("0 created, 1 changed, 0 deleted"), "{done}");
    let before = files(&desk.folder());
    timed("pull without a change", 0, &["pull", "folder"]);
    assert!(files(&desk.folder()) == before, "a pull after an apply changes nothing");
    let said = timed("test", 0, &["test", "folder"]);
    assert!(said.contains(&format!("{SIMULATIONS} passed, 0 failed")), "{said}");
    println!("{}", said.lines().find(|line| line.contains(" runs in ")).unwrap_or_default());
}

//! A day of one hundred workspaces in one service, in virtual time: some are greedy, some are hostile, most just want their
//! work done. Nobody starves, no ceiling is passed, and the same seed gives the same day twice.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod findings;
mod guest;
mod outside;
mod plan;
mod service;
mod time;
mod workspace;

use sidetone_tests::Choices;
use sidetone_tests::fakes::carrier::Wire;
use sidetone_tests::fakes::carrier::telnyx::TelnyxWire;

use findings::Findings;
use plan::{Character, END_MS, Plan};
use service::Service;
use time::START_MS;
use workspace::Workspace;

const SEED: u64 = 20_260_310;
/// How often money is counted, besides whenever a workspace with a ceiling does something.
const COUNT_MS: i64 = 10 * 60_000;
/// The ceiling of an honest workspace that has one: more than it needs.
const CEILING_OF_HONEST: i64 = 10_000_000;
/// The ceiling of the others: less than they want.
const CEILING_OF_OTHERS: i64 = 20_000;

/// Lives through the day of this seed.
fn live(seed: u64) -> Findings {
    let mut settings = outside::settings();
    settings.extend(TelnyxWire.settings("http://telnyx.example"));
    // Less than the greedy want for themselves.
    settings.push(("SIDETONE_MEMORY_MB", "256".to_owned()));
    let mut service = Service::start(&settings, seed);
    let mut choices = Choices(seed);
    let characters = plan::characters(&mut choices);
    let mut workspaces: Vec<Workspace> = characters
        .iter()
        .enumerate()
        .map(|(number, character)| {
            let ceiling = match character {
                Character::Idle => None,
                Character::Honest => Some(CEILING_OF_HONEST),
                Character::Greedy | Character::Hostile => Some(CEILING_OF_OTHERS),
            };
            let has_one = choices.below(3) == 0;
            Workspace::create(&service, number, *character, ceiling.filter(|_| has_one))
        })
        .collect();
    let mut plan = Plan::draw(&mut choices, &characters);
    let mut count_at_ms = START_MS;
    while let Some((at_ms, number, act)) = plan.next() {
        while count_at_ms < at_ms {
            service.run_until(count_at_ms);
            count_money(&service, &mut workspaces);
            count_at_ms += COUNT_MS;
        }
        service.run_until(at_ms);
        workspaces[number].act(&mut service, &mut plan, &act);
    }
    service.run_until(END_MS);
    count_money(&service, &mut workspaces);
    Findings::read(&service, &workspaces)
}

fn count_money(service: &Service, workspaces: &mut [Workspace]) {
    let limited = workspaces.iter_mut().filter(|workspace| workspace.ceiling.is_some());
    limited.for_each(|workspace| workspace.count_money(service));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs virtual time")]
fn a_day_without_starvation_or_passed_ceilings_and_the_same_again() {
    let (day, again) = std::thread::scope(|scope| {
        let days = [SEED, SEED].map(|seed| scope.spawn(move || live(seed)));
        let [day, again] =
            days.map(|day| day.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (day, again)
    });
    day.there_was_a_crowd();
    day.honest_work_was_begun_soon_and_is_done();
    day.nothing_is_left_but_what_its_own_workspace_overfilled();
    day.no_ceiling_was_passed();
    assert_eq!(day.digest(), again.digest(), "the same seed gives the same day");
}

//! `GET /calls/statistics`, and the overview of the dashboard, which shows it.
use serde_json::{Value, json};
use sidetone_engine::base::time::{self, Timestamp};
use sidetone_engine::conversation::Outcome;
use sidetone_engine::speech::turn_times::TurnTimes;
use sidetone_engine::storage::calls::{NewCall, Source, write};
use sidetone_tests::visitor::{Visitor, text};
use sidetone_tests::{World, example};

const HOUR_MS: i64 = 3_600_000;

/// Writes calls that started at these times. They differ in outcome, source, length, cost and waits.
fn write_calls(world: &World, starts: impl Iterator<Item = i64>) {
    const OUTCOMES: [Outcome; 4] =
        [Outcome::Completed, Outcome::Failed, Outcome::NoAnswer, Outcome::Canceled];
    const SOURCES: [Source; 3] = [Source::Inbound, Source::Browser, Source::Simulation];
    let ids = world.direct_access();
    let statements = (0_i64..).zip(starts).flat_map(|(n, at)| {
        let of = |count: usize| n as usize % count;
        let started_at = Timestamp::from_ms(at);
        let new =
            NewCall { id: ids.new_id(), started_at, source: SOURCES[of(3)], ..example::new_call(world) };
        let mut ended = example::ended_call();
        (ended.outcome, ended.duration_ms) = (OUTCOMES[of(4)], 1_000 * n);
        ended.costs.total_microusd = n;
        ended.turns[0].heard_first_ms = ended.turns[0].end_of_speech_ms.map(|ms| ms + 100 + n);
        if n % 5 == 0 {
            ended.turns = vec![TurnTimes::default()];
        }
        // One has not ended.
        write::record(&new, Some(&ended).filter(|_| n != 6), None)
    });
    world.write(statements.collect());
}

fn ms(value: &Value) -> i64 {
    time::from(value.as_str().unwrap()).unwrap()
}

#[test]
fn intervals_agree_with_the_lists_of_their_calls() {
    for (days, interval_ms, count) in [(7, 24 * HOUR_MS, 7), (2, 3 * HOUR_MS, 16)] {
        let world = World::new();
        let path = format!("/calls/statistics?days={days}");
        let empty = world.get(&path).ok();
        let (from, to) = (ms(&empty["from"]), ms(&empty["to"]));
        assert_eq!((to - from, &empty["interval_ms"]), (count * interval_ms, &json!(interval_ms)));
        // At the edges of every interval but the second, and outside.
        let inside = (0..count).filter(|at| *at != 1).map(|at| from + at * interval_ms);
        let starts = inside.flat_map(|at| [at, at + 1, at + interval_ms / 2, at + interval_ms - 1]);
        write_calls(&world, starts.chain([from - 1, to]));
        let statistics = world.get(&path).ok();
        let mut total = 0;
        for (at, interval) in (0..count).zip(statistics["intervals"].as_array().unwrap()) {
            let starts_at = from + at * interval_ms;
            assert_eq!(ms(&interval["starts_at"]), starts_at);
            let list = world.get(format!(
                "/calls?limit=1&date_from={}&date_to={}",
                time::format(starts_at),
                time::format(starts_at + interval_ms - 1)
            ));
            let stats = &list.ok()["stats"];
            for name in ["total", "total_duration_ms", "total_cost_microusd", "by_outcome", "waits"] {
                assert_eq!(interval[name], stats[name], "{days} days, {name} of interval {at}");
            }
            for source in ["inbound", "outbound", "browser", "simulation"] {
                let list = world.get(format!(
                    "/calls?limit=1&source={source}&date_from={}&date_to={}",
                    time::format(starts_at),
                    time::format(starts_at + interval_ms - 1)
                ));
                assert_eq!(interval["by_source"][source], list.ok()["stats"]["total"], "{source} of {at}");
            }
            total += interval["total"].as_i64().unwrap();
        }
        assert_eq!(total, 4 * (count - 1), "those outside are left out");
        let list = world.get(format!(
            "/calls?limit=1&date_from={}&date_to={}",
            time::format(from),
            time::format(to - 1)
        ));
        assert_eq!(statistics["waits"], list.ok()["stats"]["waits"], "of all intervals");
    }
}

#[test]
fn statistics_are_of_one_workspace_and_of_a_bounded_time() {
    let world = World::new();
    let empty = world.get("/calls/statistics").ok().json;
    assert_eq!(empty["intervals"].as_array().unwrap().len(), 30);
    write_calls(&world, [ms(&empty["to"]) - 1].into_iter());
    assert_eq!(world.other().get("/calls/statistics").ok().json, empty);
    assert_eq!(world.get("/calls/statistics?days=90").ok()["intervals"].as_array().unwrap().len(), 90);
    for days in ["0", "91"] {
        world.get(format!("/calls/statistics?days={days}")).refused("validation_failed");
    }
}

/// The figures and the charts are of the whole time that the page names, not of the latest calls.
#[test]
fn the_overview_shows_all_calls_of_its_time() {
    let world = World::new();
    let mut visitor =
        Visitor::signed_in(&world, &format!("over-time-{}@practice.example", std::process::id()));
    let api = visitor.api(&world);
    let begin = ms(&api.get("/calls/statistics?days=7").ok()["from"]);
    write_calls(&api, (0..320_i64).map(|n| begin + n / 80 * 24 * HOUR_MS + n));
    let page = text(&visitor.get("/dashboard"));
    assert!(page.contains("<h2>The last 7 days</h2>"), "{page}");
    let calls = page.split("<dt>Calls</dt>").nth(1).unwrap();
    assert!(calls.starts_with("<dd>320<"), "{calls}");
    let chart = page.split("<h2>Outcomes</h2>").nth(1).unwrap().split("</section>").next().unwrap();
    for (name, count) in [("Completed", 80), ("Not reached", 79), ("Failed", 80), ("Other", 81)] {
        assert!(chart.contains(&format!("{name} <strong>{count}</strong>")), "{name}: {chart}");
    }
    assert_eq!(chart.matches(": 80</title>").count(), 4, "four days: {chart}");
    let costs = page.split("<h2>Cost</h2>").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(costs.contains("for 320 calls"), "{costs}");
    assert!(page.contains("How long callers of the last 7 days waited"), "{page}");
    // The first day is earlier than the last two.
    let two = text(&visitor.get("/dashboard?days=2"));
    assert!(two.contains("<h2>The last 2 days</h2>") && two.contains("Each bar is three hours."), "{two}");
    assert!(two.contains("<dt>Calls</dt><dd>0<"), "{two}");
}

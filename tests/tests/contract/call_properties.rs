//! Property tests of the call log: for any calls, written in any order, and any filter, the list, its pages and its
//! statistics match a model that scans all calls.
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{AssistantId, Id as _};
use sidetone_engine::base::time::{self, Timestamp};
use sidetone_engine::conversation::{Outcome, Sentiment};
use sidetone_engine::ports::statement::Rows;
use sidetone_engine::speech::turn_times::TurnTimes;
use sidetone_engine::sql;
use sidetone_engine::storage::calls::{
    Analysis, AnalysisMethod, Call, Costs, EndedCall, NewCall, Source, write,
};
use sidetone_tests::call::encoded;
use sidetone_tests::{World, example};

const DAY_MS: i64 = 86_400_000;
/// A boundary between 64-day spans, and thus between all shorter spans.
const BOUNDARY_MS: i64 = 319 * 64 * DAY_MS;
const WORDS: [&str; 6] = ["apple", "apricot", "Bäckerei", "cherry", "2024", "x"];
const OUTCOMES: [Outcome; 3] = [Outcome::Completed, Outcome::Busy, Outcome::Voicemail];
const SENTIMENTS: [Sentiment; 2] = [Sentiment::Positive, Sentiment::Unknown];
const SOURCES: [Source; 2] = [Source::Inbound, Source::Simulation];

/// A write to the log. An [`Index`] selects one of the calls so far.
#[derive(Debug, Clone)]
enum Action {
    Insert {
        assistant: usize,
        source: Source,
        model: usize,
        voice: usize,
        started_at: i64,
    },
    Record {
        assistant: usize,
        source: Source,
        started_at: i64,
        ending: Ending,
        finding: Option<Finding>,
    },
    End(Index, Ending, Option<Finding>),
    Analyze(Index, Finding),
    /// The carrier reports its price.
    Reprice(Index, i64),
    /// A repeated insert, as by a job that runs twice.
    InsertAgain(Index),
    EndAgain(Index, Ending),
    /// A request, refused while the call has not ended.
    Delete(Index),
}

#[derive(Debug, Clone)]
struct Ending {
    after_ms: i64,
    duration_ms: i64,
    cost: i64,
    outcome: Outcome,
    word: &'static str,
    waits: Vec<i64>,
}

#[derive(Debug, Clone)]
struct Finding {
    sentiment: Sentiment,
    outcome: Option<Outcome>,
    word: &'static str,
}

#[derive(Debug, Clone)]
struct Query {
    assistant: Option<usize>,
    source: Option<Source>,
    model: Option<usize>,
    voice: Option<usize>,
    outcome: Option<Outcome>,
    sentiment: Option<Sentiment>,
    from: Option<(i64, bool)>,
    to: Option<(i64, bool)>,
    search: Option<Vec<&'static str>>,
    sort: Option<&'static str>,
    order: Option<&'static str>,
    page: i64,
    limit: i64,
}

#[derive(Clone)]
struct ExpectedCall {
    new: NewCall,
    ended: Option<EndedCall>,
    analysis: Option<Analysis>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
    fn the_call_log_matches_the_model(actions in vec(action(), 0..50), queries in vec(query(), 12)) {
        let world = World::with_manual_clock();
        let bystander = world.other();
        bystander.a_call();
        let known = apply(&world, &actions);
        check_queries(&world, &known, &queries);
        check_rollups(&world);
        prop_assert_eq!(bystander.get("/calls").ok()["stats"]["total"].as_i64(), Some(1));
    }
}

fn apply(world: &World, actions: &[Action]) -> Vec<ExpectedCall> {
    let mut known: Vec<ExpectedCall> = Vec::new();
    for action in actions {
        let picked = |index: &Index| (!known.is_empty()).then(|| index.index(known.len()));
        match action {
            Action::Insert { assistant, source, model, voice, started_at } => {
                let mut new = new_call(world, *assistant, *source, *started_at);
                (new.model, new.voice) = (format!("example/{model}"), format!("example/{voice}"));
                world.write(write::insert(&new));
                known.push(ExpectedCall { new, ended: None, analysis: None });
            }
            Action::Record { assistant, source, started_at, ending, finding } => {
                let new = new_call(world, *assistant, *source, *started_at);
                let (ended, analysis) = (ended(&new, ending), finding.as_ref().map(analysis));
                world.write(write::record(&new, Some(&ended), analysis.as_ref()));
                known.push(ExpectedCall { new, ended: Some(ended), analysis });
            }
            Action::End(index, ending, finding) => {
                let Some(at) = picked(index) else { continue };
                let one = &mut known[at];
                let (ended, analysis) = (ended(&one.new, ending), finding.as_ref().map(analysis));
                world.write(write::end(&one.new.workspace_id, &one.new.id, &ended, analysis.as_ref()));
                if one.ended.is_none() {
                    (one.ended, one.analysis) = (Some(ended), analysis);
                }
            }
            Action::Analyze(index, finding) => {
                let Some(at) = picked(index) else { continue };
                let one = &mut known[at];
                let analysis = analysis(finding);
                world.write(write::analyzed(&one.new.workspace_id, &one.new.id, &analysis));
                if one.ended.is_some() {
                    one.analysis = Some(analysis);
                }
            }
            Action::Reprice(index, price) => {
                let Some(at) = picked(index) else { continue };
                let one = &mut known[at];
                let costs = one.ended.as_ref().map_or(Costs::default(), |ended| ended.costs);
                let total = costs.total_microusd - costs.telephony_microusd + price;
                world.write(write::repriced(&one.new.workspace_id, &one.new.id, *price, total));
                if let Some(ended) = &mut one.ended {
                    (ended.costs.telephony_microusd, ended.costs.total_microusd) = (*price, total);
                }
            }
            Action::InsertAgain(index) => {
                let Some(at) = picked(index) else { continue };
                world.write(write::insert(&known[at].new));
            }
            Action::Delete(index) => {
                let Some(at) = picked(index) else { continue };
                let reply = world.delete(format!("/calls/{}", known[at].new.id));
                match known[at].ended {
                    Some(_) => {
                        assert_eq!(reply.status, 204);
                        known.remove(at);
                    }
                    None => drop(reply.refused("call_in_progress")),
                }
            }
            Action::EndAgain(index, ending) => {
                let Some(at) = picked(index) else { continue };
                let one = &known[at];
                if one.ended.is_some() {
                    world.write(write::end(
                        &one.new.workspace_id,
                        &one.new.id,
                        &ended(&one.new, ending),
                        None,
                    ));
                }
            }
        }
    }
    known
}

fn check_queries(world: &World, known: &[ExpectedCall], queries: &[Query]) {
    for one in known {
        let said = world.get(format!("/calls/{}", one.new.id)).ok();
        assert_eq!(String::from_utf8_lossy(&said.body), text(one));
    }
    for query in queries {
        let uri = query.uri();
        if query.is_reversed() {
            world.get(&uri).refused("validation_failed").naming(&["date_from"]);
            continue;
        }
        let said = world.get(&uri).ok().json;
        let expected = query.expected(known);
        assert_eq!(said["stats"], expected["stats"], "{uri}");
        assert_eq!(said["pagination"], expected["pagination"], "{uri}");
        assert_eq!(said["calls"], expected["calls"], "{uri}");
    }
}

/// The roll-ups match a recount of all calls, without empty rows.
fn check_rollups(world: &World) {
    let read = |text: &'static str| {
        let database = &world.sandbox().unwrap().services().ports().database;
        block_on(database.read(vec![sql!(text)])).unwrap().remove(0)
    };
    let kept = read(
        "SELECT workspace_id, span_ms, starts_at, group_id, calls, duration_ms, cost_microusd FROM call_rollups ORDER BY 1, 2, 3, 4",
    );
    let counted = read(
        "SELECT c.workspace_id, span.column1 AS span_ms, CASE span.column1 WHEN 0 THEN 0 ELSE started_at / span.column1 * span.column1 END
         AS starts_at, counted.id AS group_id, COUNT(*) AS calls, SUM(COALESCE(duration_ms, 0)) AS duration_ms, SUM(cost_microusd) AS cost_microusd
         FROM calls AS c JOIN (VALUES (0), (10800000), (86400000), (691200000), (5529600000)) AS span ON true
         JOIN call_groups AS own ON own.id = c.group_id JOIN call_groups AS counted ON counted.id = own.id OR (
           (counted.workspace_id, counted.source, counted.outcome, counted.sentiment) = (own.workspace_id, own.source, own.outcome, own.sentiment)
           AND (counted.assistant_id, counted.model, counted.voice) = ('', '', ''))
         GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
    );
    let values = |rows: &Rows| rows.values.clone();
    assert_eq!(values(&kept), values(&counted));
}

fn new_call(world: &World, assistant: usize, source: Source, started_at: i64) -> NewCall {
    let mut new = example::new_call(world);
    new.assistant_id = AssistantId::from_stored(format!("asst_{assistant}"));
    (new.source, new.started_at) = (source, Timestamp::from_ms(started_at));
    (new.model, new.voice) = ("example/0".to_owned(), "example/0".to_owned());
    new
}

fn ended(new: &NewCall, ending: &Ending) -> EndedCall {
    let mut ended = example::ended_call();
    (ended.outcome, ended.duration_ms) = (ending.outcome, ending.duration_ms);
    ended.ended_at = new.started_at + ending.after_ms;
    ended.costs = Costs::of(0, ending.cost, 0, 0);
    let turn = |wait_ms: &i64| TurnTimes {
        end_of_speech_ms: Some(50),
        heard_first_ms: Some(50 + wait_ms),
        ..TurnTimes::default()
    };
    ended.turns = ending.waits.iter().map(turn).collect();
    ended.transcript.truncate(1);
    ended.transcript[0].text = format!("We have {}!", ending.word);
    ended
}

fn analysis(finding: &Finding) -> Analysis {
    Analysis {
        summary: format!("About {}.", finding.word),
        sentiment: finding.sentiment,
        outcome: finding.outcome,
        method: AnalysisMethod::Model,
    }
}

fn text(known: &ExpectedCall) -> String {
    let call = Call::of(&known.new, known.ended.as_ref(), known.analysis.as_ref()).unwrap();
    serde_json::to_string(&call).unwrap()
}

/// As a list has it.
fn listed(known: &ExpectedCall) -> Value {
    let mut call: Value = serde_json::from_str(&text(known)).unwrap();
    call["turns"] = Value::Null;
    call["variables"] = Value::Null;
    call
}

impl Query {
    fn uri(&self) -> String {
        let mut parts = vec![format!("page={}", self.page), format!("limit={}", self.limit)];
        let mut add = |name: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{name}={}", encoded(&value))));
        };
        add("assistant_id", self.assistant.map(|n| format!("asst_{n}")));
        add("source", self.source.map(|source| source.as_str().to_owned()));
        add("model", self.model.map(|n| format!("example/{n}")));
        add("voice", self.voice.map(|n| format!("example/{n}")));
        add("outcome", self.outcome.map(|outcome| outcome.as_str().to_owned()));
        add("sentiment", self.sentiment.map(|sentiment| sentiment.as_str().to_owned()));
        let date = |(ms, whole): (i64, bool)| time::format(ms)[..if whole { 10 } else { 24 }].to_owned();
        add("date_from", self.from.map(date));
        add("date_to", self.to.map(date));
        add("search", self.search.as_ref().map(|words| words.join(" ")));
        add("sort", self.sort.map(str::to_owned));
        add("order", self.order.map(str::to_owned));
        format!("/calls?{}", parts.join("&"))
    }

    /// Whether nothing can be between the dates.
    fn is_reversed(&self) -> bool {
        let day = |ms: i64| ms.div_euclid(DAY_MS) * DAY_MS;
        let from = self.from.map(|(ms, whole)| if whole { day(ms) } else { ms });
        let to = self.to.map(|(ms, whole)| if whole { day(ms) + DAY_MS - 1 } else { ms });
        from.zip(to).is_some_and(|(from, to)| from > to)
    }

    fn passes(&self, known: &ExpectedCall, call: &Value) -> bool {
        let is = |name: &str, wanted: Option<String>| wanted.is_none_or(|wanted| call[name] == wanted);
        let started_at = known.new.started_at.ms();
        let day = |ms: i64| ms.div_euclid(DAY_MS);
        let said = format!("{} {}", call["transcript"], call["analysis"]["summary"]).to_lowercase();
        let said: Vec<&str> = said.split(|c: char| !c.is_alphanumeric()).collect();
        let found = |words: &Vec<&'static str>| {
            words.iter().enumerate().all(|(at, word)| {
                let word = word.to_lowercase();
                let last = at == words.len() - 1;
                said.iter().any(|one| if last { one.starts_with(&word) } else { *one == word })
            })
        };
        is("assistant_id", self.assistant.map(|n| format!("asst_{n}")))
            && is("source", self.source.map(|source| source.as_str().to_owned()))
            && is("model", self.model.map(|n| format!("example/{n}")))
            && is("voice", self.voice.map(|n| format!("example/{n}")))
            && is("outcome", self.outcome.map(|outcome| outcome.as_str().to_owned()))
            && is("sentiment", self.sentiment.map(|sentiment| sentiment.as_str().to_owned()))
            && self.from.is_none_or(|(ms, whole)| started_at >= if whole { day(ms) * DAY_MS } else { ms })
            && self.to.is_none_or(|(ms, whole)| {
                started_at <= if whole { day(ms) * DAY_MS + DAY_MS - 1 } else { ms }
            })
            && self.search.as_ref().is_none_or(found)
    }

    fn expected(&self, known: &[ExpectedCall]) -> Value {
        let mut passing: Vec<(usize, &ExpectedCall, Value)> = known
            .iter()
            .enumerate()
            .map(|(at, one)| (at, one, listed(one)))
            .filter(|(_, one, call)| self.passes(one, call))
            .collect();
        passing.sort_by_key(|(at, one, _)| {
            let ended = one.ended.as_ref();
            let key = match self.sort.unwrap_or("started_at") {
                "started_at" => Some(one.new.started_at.ms()),
                "ended_at" => ended.map(|ended| ended.ended_at.ms()),
                "duration_ms" => ended.map(|ended| ended.duration_ms),
                _ => Some(ended.map_or(0, |ended| ended.costs.total_microusd)),
            };
            (key, *at)
        });
        if self.order != Some("asc") {
            passing.reverse();
        }
        let total = passing.len() as i64;
        let sum = |pick: fn(&EndedCall) -> i64| -> i64 {
            passing.iter().filter_map(|(_, one, _)| one.ended.as_ref()).map(pick).sum()
        };
        let (duration, cost) = (sum(|ended| ended.duration_ms), sum(|ended| ended.costs.total_microusd));
        let count = |name: &str, words: Vec<&'static str>| -> Value {
            let of = |word: &str| passing.iter().filter(|(.., call)| call[name] == *word).count();
            words
                .into_iter()
                .map(|word| (word.to_owned(), json!(of(word))))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let ended = passing.iter().filter_map(|(_, one, _)| one.ended.as_ref());
        let mut waits: Vec<i64> =
            ended.flat_map(|ended| &ended.turns).filter_map(TurnTimes::wait_ms).collect();
        waits.sort_unstable();
        // The first turn that has at least so many percent of the turns up to itself.
        let percentile = |percent: usize| waits.get((waits.len() * percent).div_ceil(100).saturating_sub(1));
        let (page, limit) = (self.page, self.limit);
        let calls: Vec<&Value> = passing
            .iter()
            .map(|(.., call)| call)
            .skip(((page - 1) * limit) as usize)
            .take(limit as usize)
            .collect();
        json!({
            "calls": calls,
            "stats": {
                "total": total, "total_duration_ms": duration,
                "average_duration_ms": if total > 0 { (duration as f64 / total as f64).round() as i64 } else { 0 },
                "total_cost_microusd": cost,
                "by_outcome": count("outcome", Outcome::ALL.iter().map(|word| word.as_str()).collect()),
                "by_sentiment": count("sentiment", Sentiment::ALL.iter().map(|word| word.as_str()).collect()),
                "waits": {"turns": waits.len(), "p50_ms": percentile(50), "p95_ms": percentile(95), "p99_ms": percentile(99)},
            },
            "pagination": {"page": page, "limit": limit, "total": total, "total_pages": (total + limit - 1) / limit},
        })
    }
}

/// Times near boundaries of spans of every length, often identical.
fn timestamp() -> impl Strategy<Value = i64> {
    (select(vec![-65, -64, -17, -4, -1, 0, 1, 3, 4, 16, 31, 63, 64]), select(vec![-1, 0, 1, DAY_MS / 2]))
        .prop_map(|(day, ms)| BOUNDARY_MS + day * DAY_MS + ms)
}

fn ending() -> impl Strategy<Value = Ending> {
    (0..4_i64, 0..4_i64, 0..3_i64, select(OUTCOMES.to_vec()), select(WORDS.to_vec()), vec(0..99_i64, 0..4))
        .prop_map(|(after_ms, duration_ms, cost, outcome, word, waits)| Ending {
            after_ms,
            duration_ms,
            cost,
            outcome,
            word,
            waits,
        })
}

fn finding() -> impl Strategy<Value = Finding> {
    (select(SENTIMENTS.to_vec()), option::of(select(OUTCOMES.to_vec())), select(WORDS.to_vec()))
        .prop_map(|(sentiment, outcome, word)| Finding { sentiment, outcome, word })
}

fn action() -> impl Strategy<Value = Action> {
    let source = || select(SOURCES.to_vec());
    prop_oneof![
        4 => (0..3_usize, source(), 0..2_usize, 0..2_usize, timestamp()).prop_map(
            |(assistant, source, model, voice, started_at)| Action::Insert { assistant, source, model, voice, started_at }
        ),
        4 => (0..3_usize, source(), timestamp(), ending(), option::of(finding())).prop_map(
            |(assistant, source, started_at, ending, finding)| Action::Record { assistant, source, started_at, ending, finding }
        ),
        4 => (any::<Index>(), ending(), option::weighted(0.3, finding()))
            .prop_map(|(index, ending, finding)| Action::End(index, ending, finding)),
        4 => (any::<Index>(), finding()).prop_map(|(index, finding)| Action::Analyze(index, finding)),
        2 => (any::<Index>(), 0..3_i64).prop_map(|(index, price)| Action::Reprice(index, price)),
        1 => any::<Index>().prop_map(Action::InsertAgain),
        1 => (any::<Index>(), ending()).prop_map(|(index, ending)| Action::EndAgain(index, ending)),
        2 => any::<Index>().prop_map(Action::Delete),
    ]
}

fn query() -> impl Strategy<Value = Query> {
    let groups = (
        option::weighted(0.2, 0..4_usize),
        option::weighted(0.2, select(SOURCES.to_vec())),
        option::weighted(0.1, 0..2_usize),
        option::weighted(0.1, 0..2_usize),
        option::weighted(0.2, select(OUTCOMES.to_vec())),
        option::weighted(0.2, select(SENTIMENTS.to_vec())),
    );
    let rest = (
        option::weighted(0.3, (timestamp(), any::<bool>())),
        option::weighted(0.3, (timestamp(), any::<bool>())),
        option::weighted(0.2, vec(select([WORDS.as_slice(), &["ap", "bäck"]].concat()), 1..3)),
        option::of(select(vec!["started_at", "ended_at", "duration_ms", "cost"])),
        option::of(select(vec!["asc", "desc"])),
        1..6_i64,
        prop_oneof![1..6_i64, Just(200_i64)],
    );
    (groups, rest).prop_map(
        |(
            (assistant, source, model, voice, outcome, sentiment),
            (from, to, search, sort, order, page, limit),
        )| {
            Query {
                assistant,
                source,
                model,
                voice,
                outcome,
                sentiment,
                from,
                to,
                search,
                sort,
                order,
                page,
                limit,
            }
        },
    )
}

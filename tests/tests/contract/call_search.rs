//! The text index of calls: whose words it has, how texts are split into words, and how the calls of earlier versions get
//! into it. `calls` has what a search finds.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sidetone::sandbox::memory;
use sidetone_engine::base::ids::WorkspaceId;
use sidetone_engine::conversation::TRANSCRIPT_BYTES_MAX;
use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::sql;
use sidetone_engine::storage::calls::{NewCall, search, write};
use sidetone_tests::call::encoded;
use sidetone_tests::direct_access::wait;
use sidetone_tests::{World, example};

fn total(world: &World, text: &str) -> i64 {
    let list = world.get(format!("/calls?limit=1&search={}", encoded(text))).ok();
    list["stats"]["total"].as_i64().unwrap()
}

fn read(world: &World, statement: Statement) -> Rows {
    wait(world.direct_access().ports().database.read(vec![statement])).unwrap().remove(0)
}

fn count(world: &World, of: &str) -> i64 {
    read(world, sql!(format!("SELECT COUNT(*) AS found FROM {of}")))
        .first()
        .unwrap()
        .integer("found")
        .unwrap()
}

/// An ended call without an analysis whose caller says `text`.
fn call_saying(world: &World, text: &str) -> NewCall {
    let new = example::new_call(world);
    let mut ended = example::ended_call();
    ended.transcript = vec![TranscriptRow::new(0, TranscriptRole::User, text.to_owned(), 0, 1)];
    world.write(write::record(&new, Some(&ended), None));
    new
}

/// FTS5 reads all words with a prefix before anything else, so no two workspaces may have words with the same beginning.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "creates a table")]
fn every_word_in_the_index_begins_with_its_workspace() {
    // Both workspaces in one database.
    let world = World::over(Arc::new(memory()));
    let stranger = world.other();
    let mut owners = HashMap::new();
    for world in [&world, &stranger] {
        let new = example::new_call(world);
        world.write(write::insert(&new));
        world.write(write::carried(&new.workspace_id, &new.id, "CB.7-7"));
        world.write(write::end(&new.workspace_id, &new.id, &example::ended_call(), None));
        world.write(write::analyzed(&new.workspace_id, &new.id, &example::analysis()));
        let id = new.workspace_id.to_string();
        owners.insert(id[id.len() - 8..].to_owned(), 0);
        assert_eq!(["saturday", "CB.7-7", "CA0123456789"].map(|word| total(world, word)), [1, 1, 0]);
    }
    world.write(vec![sql!("CREATE VIRTUAL TABLE index_words USING fts5vocab(call_index, instance)")]);
    for row in read(&world, sql!("SELECT term, doc FROM index_words")).iter() {
        let term = row.text("term").unwrap();
        let (owner, word) = term.split_once('.').unwrap();
        assert!(!word.is_empty() && !word.contains('.'), "{term}");
        *owners.get_mut(owner).unwrap() += 1;
    }
    assert_eq!(owners.len(), 2);
    assert!(owners.values().all(|words| *words > 20), "{owners:?}");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs no service")]
fn texts_are_split_as_sqlite_splits_them() {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61 remove_diacritics 0');
             CREATE VIRTUAL TABLE words USING fts5vocab (texts, instance); BEGIN;",
        )
        .unwrap();
    let mut insert = database.prepare("INSERT INTO texts (rowid, text) VALUES (?1, ?2)").unwrap();
    // Beyond the third plane, thousands in a row are alike.
    let sparse = (0x3_0000..=u32::from(char::MAX)).step_by(251);
    let chars: Vec<char> = (1..0x3_0000).chain(sparse).filter_map(char::from_u32).collect();
    for &c in &chars {
        insert.execute((u32::from(c), format!("a{c}b {c}c"))).unwrap();
    }
    let mut select = database.prepare("SELECT doc, COUNT(*) FROM words GROUP BY doc").unwrap();
    let theirs = select.query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?))).unwrap();
    let mut checked = 0;
    for one in theirs {
        let (c, words) = one.unwrap();
        let c = char::from_u32(c).unwrap();
        assert_eq!(search::tokens(&format!("a{c}b {c}c")).count(), words as usize, "{c:?}");
        checked += 1;
    }
    assert_eq!(checked, chars.len());
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_longest_transcript_is_found_by_its_last_word() {
    let world = World::with_manual_clock();
    let text = format!("{} b-c-d", "a ".repeat(TRANSCRIPT_BYTES_MAX / 2 - 1_000));
    let call = call_saying(&world, &text);
    assert_eq!(total(&world, &format!("a-a-a-b-c-d {}", call.id)), 1);
    assert_eq!(total(&world, "b-d"), 0);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn calls_of_an_earlier_version_are_found_while_they_move_to_the_index() {
    const CALLS: usize = 900;
    let world = World::with_manual_clock();
    let stranger = world.other();
    let calls: Vec<NewCall> = (0..CALLS).map(|n| call_saying(&world, &format!("Saturday no{n}x"))).collect();
    let open = example::new_call(&world);
    world.write(write::insert(&open));
    let other = call_saying(&stranger, "Saturday");
    as_earlier_versions_left_them(&world, calls.iter().chain([&open, &other]));
    assert_eq!((count(&world, "call_words"), count(&world, "call_index_docsize")), (0, 0));

    // They are written and deleted as ever.
    let (analyzed, deleted) = (&calls[3], &calls[4]);
    world.write(write::analyzed(&analyzed.workspace_id, &analyzed.id, &example::analysis()));
    world.write(write::end(&open.workspace_id, &open.id, &example::ended_call(), None));
    assert_eq!(world.delete(format!("/calls/{}", deleted.id)).status, 204);
    let new = call_saying(&world, "Saturday");
    let check = || {
        let found =
            ["saturday", "no3x opening", "no4x", "no899x", &new.id, &open.id].map(|text| total(&world, text));
        // 899, the open one, and the new one.
        assert_eq!(found, [CALLS as i64 + 1, 1, 0, 1, 1, 1]);
        assert_eq!(total(&stranger, "saturday"), 1);
    };
    check();
    let mut left = HashSet::new();
    while count(&world, "search_upgrade") > 0 {
        wait(world.direct_access().sweep()).unwrap();
        check();
        assert!(left.insert(count(&world, "call_search_docsize")), "each round moves some");
    }
    assert!(left.len() > 1, "in more than one round");
    while wait(world.direct_access().sweep()).unwrap().more {}
    assert_eq!((count(&world, "call_search_docsize"), count(&world, "call_search_idx")), (0, 0));
    check();
    assert_eq!(world.delete(format!("/calls/{}", analyzed.id)).status, 204);
    assert_eq!(total(&world, "no3x"), 0);
}

/// Puts the entries of all calls into the former index.
fn as_earlier_versions_left_them<'a>(world: &World, calls: impl Iterator<Item = &'a NewCall>) {
    world.write(vec![
        sql!("DELETE FROM call_index WHERE rowid IN (SELECT seq FROM calls)"),
        sql!("DELETE FROM call_words"),
        sql!("INSERT INTO search_upgrade (below) SELECT MAX(seq) + 1 FROM calls"),
    ]);
    let index = |call: &NewCall| -> [Statement; 2] {
        let workspace_id: &WorkspaceId = &call.workspace_id;
        search::index(workspace_id, &call.id)
    };
    world.write(calls.flat_map(index).collect());
}

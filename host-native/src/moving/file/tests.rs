//! Files that were cut off, changed, continued, or are of another export.
use std::fs;
use std::path::PathBuf;

use sidetone_engine::storage::moves::part::Chain;

use super::*;
use crate::moving::sample::{head, parts, workspace};

const EXPORT: &str = "exp_1";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn resume(target: &Path, export_id: &str) -> (Writer, Resumed) {
    Begun::at(target).unwrap().resume(&head(export_id)).unwrap()
}

/// Adds the parts that are missing.
fn fill(writer: &mut Writer) {
    let parts = parts();
    loop {
        let next = match writer.place() {
            Place::Start => 0,
            Place::After(place) => {
                1 + parts.iter().position(|part| part.head.next.as_ref() == Some(place)).unwrap()
            }
            Place::End => return,
        };
        writer.add(&parts[next].to_bytes()).unwrap();
    }
}

/// Adds them and ends the file.
fn complete(mut writer: Writer) {
    fill(&mut writer);
    writer.finish().unwrap();
}

fn whole(folder: &Path) -> (PathBuf, Vec<u8>) {
    let target = folder.join("whole.move");
    complete(resume(&target, EXPORT).0);
    let bytes = fs::read(&target).unwrap();
    (target, bytes)
}

fn part_of(target: &Path) -> PathBuf {
    target.with_added_extension("part")
}

#[test]
fn a_file_has_every_part_as_it_was_given() {
    let folder = folder();
    let (target, bytes) = whole(folder.path());
    let reader = Reader::open(&target).unwrap();
    let tally = &reader.totals().tally;
    assert_eq!(reader.head(), &head(EXPORT));
    assert_eq!((tally.parts, tally.secrets, tally.blobs, tally.missing), (5, 2, 1, 1));
    assert_eq!(
        tally.sums.iter().map(|(table, sum)| (&**table, sum.rows)).collect::<Vec<_>>(),
        [("calls", 3), ("workspaces", 1)]
    );
    assert_eq!((reader.totals().rows(), reader.totals().blob_bytes), (4, 11));
    let end = Part::of_end(tally.clone());
    let all: Vec<Part> = parts().into_iter().chain([end]).collect();
    assert_eq!(reader.parts(), all.len() as u64);
    let mut chain = Chain::of(&head(EXPORT));
    for (n, part) in (1..).zip(&all) {
        assert_eq!(reader.part(n).unwrap(), Some(part.to_bytes()), "part {n}");
        assert_eq!(reader.chain_before(n), Some(&chain), "part {n}");
        chain.add(&part.head);
    }
    assert_eq!((reader.chain_before(0), reader.chain_before(7)), (None, Some(&tally.chain)));
    assert_eq!(reader.part(0).unwrap(), None);
    assert_eq!(reader.part(7).unwrap(), None);
    let mut expected = format!("{FORM}\n{}\n", head(EXPORT).to_line()).into_bytes();
    all.iter().for_each(|part| expected.extend_from_slice(&part.to_bytes()));
    assert_eq!(bytes, expected);
    assert!(!part_of(&target).exists());
    assert_eq!(head_of(&target).unwrap().workspace_id, workspace());
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let (target, _) = whole(folder.path());
    assert_eq!(fs::metadata(target).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_continued_to_the_same_bytes() {
    let folder = folder();
    let (target, bytes) = whole(folder.path());
    let end = Part::of_end(Reader::open(&target).unwrap().totals().tally.clone()).to_bytes();
    let target = folder.path().join("cut.move");
    let opening = FORM.len() + head(EXPORT).to_line().len() + 2;
    let mut after = opening;
    let ends: Vec<usize> = parts()
        .iter()
        .map(|part| {
            after += part.to_bytes().len();
            after
        })
        .collect();
    for cut in 0..=bytes.len() {
        fs::write(part_of(&target), &bytes[..cut]).unwrap();
        let (mut writer, resumed) = resume(&target, EXPORT);
        let whole_parts = ends.iter().filter(|end| **end <= cut).count() as u64;
        let expected = match cut {
            0 => Resumed::New,
            cut if cut < opening => Resumed::Replaced,
            _ => Resumed::After(whole_parts),
        };
        assert_eq!(resumed, expected, "cut at {cut}");
        fill(&mut writer);
        let filled = fs::read(part_of(&target)).unwrap();
        assert!(bytes.starts_with(&filled) && bytes.len() - filled.len() == end.len(), "cut at {cut}");
    }
    complete(resume(&target, EXPORT).0);
    assert_eq!(fs::read(&target).unwrap(), bytes);
}

#[test]
fn what_is_damaged_is_fetched_again() {
    let folder = folder();
    let (target, bytes) = whole(folder.path());
    let end = Part::of_end(Reader::open(&target).unwrap().totals().tally.clone()).to_bytes();
    let target = folder.path().join("damaged.move");
    let opening = FORM.len() + head(EXPORT).to_line().len() + 2;
    // A disk may have zeros after a power failure.
    for at in opening..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at..].fill(0);
        fs::write(part_of(&target), damaged).unwrap();
        fill(&mut resume(&target, EXPORT).0);
        let filled = fs::read(part_of(&target)).unwrap();
        assert!(bytes.starts_with(&filled) && bytes.len() - filled.len() == end.len(), "zeros from {at} on");
    }
    complete(resume(&target, EXPORT).0);
    assert_eq!(fs::read(&target).unwrap(), bytes);
}

#[test]
fn a_file_that_is_cut_off_is_not_sent() {
    let folder = folder();
    let (target, bytes) = whole(folder.path());
    for cut in 0..bytes.len() {
        fs::write(&target, &bytes[..cut]).unwrap();
        assert_eq!(Reader::open(&target).unwrap_err().exit_code(), 2, "cut at {cut}");
    }
    fs::write(&target, [&bytes[..], b"\n"].concat()).unwrap();
    assert!(Reader::open(&target).unwrap_err().to_string().contains("after its end"));
}

#[test]
fn a_file_of_which_any_byte_was_changed_is_not_sent() {
    let folder = folder();
    let (target, bytes) = whole(folder.path());
    let opening = FORM.len() + head(EXPORT).to_line().len() + 2;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&target, &changed).unwrap();
        match Reader::open(&target) {
            Err(stop) => assert_eq!(stop.exit_code(), 2, "byte {at}: {stop}"),
            Ok(_) => panic!("byte {at} of {} (the head has {opening}) does not count", bytes.len()),
        }
    }
}

#[test]
fn parts_that_are_missing_twice_or_out_of_order_are_noticed() {
    let folder = folder();
    let (target, _) = whole(folder.path());
    let reader = Reader::open(&target).unwrap();
    let end = Part::of_end(reader.totals().tally.clone());
    let all = parts();
    let with = |order: &[usize]| {
        let mut bytes = format!("{FORM}\n{}\n", head(EXPORT).to_line()).into_bytes();
        order.iter().for_each(|n| bytes.extend_from_slice(&all[*n].to_bytes()));
        bytes.extend_from_slice(&end.to_bytes());
        fs::write(&target, bytes).unwrap();
        Reader::open(&target).map(drop).map_err(|stop| stop.to_string())
    };
    assert_eq!(with(&[0, 1, 2, 3, 4]), Ok(()));
    for order in
        [&[0, 1, 3, 4][..], &[0, 1, 1, 2, 3, 4], &[1, 0, 2, 3, 4], &[0, 1, 2, 4, 3], &[0, 1, 2, 3], &[]]
    {
        assert!(with(order).unwrap_err().contains("is damaged"), "{order:?}");
    }
}

#[test]
fn an_export_that_was_begun_anew_begins_its_file_anew() {
    let folder = folder();
    let target = folder.path().join("acme.move");
    let (mut writer, _) = resume(&target, EXPORT);
    writer.add(&parts()[0].to_bytes()).unwrap();
    drop(writer);
    let (writer, resumed) = resume(&target, "exp_2");
    assert_eq!((resumed, writer.place()), (Resumed::Replaced, &Place::Start));
    complete(writer);
    assert_eq!(Reader::open(&target).unwrap().head().export_id, "exp_2");
}

#[test]
fn the_host_may_have_another_address_by_now() {
    let folder = folder();
    let target = folder.path().join("acme.move");
    let (mut writer, _) = resume(&target, EXPORT);
    writer.add(&parts()[0].to_bytes()).unwrap();
    drop(writer);
    let moved = Head { base_url: "https://other.example.com".to_owned(), ..head(EXPORT) };
    let (writer, resumed) = Begun::at(&target).unwrap().resume(&moved).unwrap();
    assert_eq!(resumed, Resumed::After(1));
    complete(writer);
    assert_eq!(Reader::open(&target).unwrap().head(), &head(EXPORT));
}

#[test]
fn answers_that_are_no_parts_are_not_written() {
    let folder = folder();
    let target = folder.path().join("acme.move");
    let (mut writer, _) = resume(&target, EXPORT);
    let first = parts()[0].to_bytes();
    writer.add(&first).unwrap();
    let length = fs::metadata(part_of(&target)).unwrap().len();
    let end = Part::of_end(writer.totals().tally.clone()).to_bytes();
    let wrong = [
        first.clone(),
        Bytes::new(),
        Bytes::from_static(b"<html>\n</html>\n"),
        first.slice(..first.len() - 1),
        end,
    ];
    for bytes in wrong {
        assert_eq!(writer.add(&bytes).unwrap_err().exit_code(), 2, "{bytes:?}");
        assert_eq!(fs::metadata(part_of(&target)).unwrap().len(), length);
    }
    assert!(writer.finish().is_err());
    assert!(!target.exists());
}

#[test]
fn one_command_writes_a_file_and_none_writes_over_one() {
    let folder = folder();
    let target = folder.path().join("acme.move");
    let first = Begun::at(&target).unwrap();
    assert_eq!(Begun::at(&target).unwrap_err().exit_code(), 1);
    first.remove_if_empty();
    assert!(!part_of(&target).exists(), "nothing is left");
    let (writer, _) = resume(&target, EXPORT);
    complete(writer);
    let bytes = fs::read(&target).unwrap();
    assert!(Begun::at(&target).unwrap_err().to_string().contains("exists"));
    assert!(!part_of(&target).exists() && fs::read(&target).unwrap() == bytes);
}

#[test]
fn other_files_are_none() {
    let folder = folder();
    let path = folder.path().join("other");
    let form_2 = format!("SIDETONE MOVE 2\n{}\n", head(EXPORT).to_line());
    let nameless = head(EXPORT).to_line().replace(&*workspace(), "ws_1/../..");
    let nameless = format!("{FORM}\n{nameless}\n");
    let two_lines = Head { name: "Acme\nnext: sidetone".to_owned(), ..head(EXPORT) }.to_line();
    let two_lines = format!("{FORM}\n{two_lines}\n");
    for (content, said) in [
        ("", "no file that `sidetone export` has made"),
        ("PK\u{3}\u{4} something else", "its first line is another one"),
        ("My notes\nabout it\n", "its first line is another one"),
        (form_2.as_str(), "another form"),
        ("SIDETONE MOVE 1\n", "no head"),
        ("SIDETONE MOVE 1\n{}\n", "the head of the file"),
        (nameless.as_str(), "names no workspace"),
        (two_lines.as_str(), "cannot be shown"),
    ] {
        fs::write(&path, content).unwrap();
        let stop = Reader::open(&path).unwrap_err();
        assert!(stop.to_string().contains(said), "{content:?}: {stop}");
        assert_eq!(head_of(&path).unwrap_err(), stop);
    }
    assert!(Reader::open(&folder.path().join("none")).unwrap_err().to_string().contains("none"));
}

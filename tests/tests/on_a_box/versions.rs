//! The version in Cargo.toml and the headings of CHANGELOG.md, as docs/releasing.md has them.
use regex::Regex;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_changelog_begins_with_this_version_and_goes_back_by_semver() {
    let form = Regex::new(r"^(\d+)\.(\d+)\.(\d+) \((unreleased|20\d\d-\d\d-\d\d)\)$").unwrap();
    let headings: Vec<(&str, [u64; 3], &str)> = include_str!("../../../CHANGELOG.md")
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|heading| {
            let parts =
                form.captures(heading).unwrap_or_else(|| panic!("not a version and its day: {heading}"));
            let (_, [major, minor, patch, day]) = parts.extract();
            (heading, [major, minor, patch].map(|number| number.parse().unwrap()), day)
        })
        .collect();
    let first = headings.first().expect("a heading").0;
    assert!(
        first.starts_with(&format!("{VERSION} (")),
        "Cargo.toml has {VERSION}, CHANGELOG.md begins with {first}"
    );
    for pair in headings.windows(2) {
        let ((newer_heading, newer, newer_day), (heading, older, day)) = (pair[0], pair[1]);
        assert_ne!(day, "unreleased", "{heading}: only the first is");
        assert!(day <= newer_day, "{heading} is older than {newer_heading}");
        let [major, minor, patch] = older;
        let next = [[major, minor, patch + 1], [major, minor + 1, 0], [major + 1, 0, 0]];
        assert!(next.contains(&newer), "{newer_heading} does not follow {heading}");
    }
}

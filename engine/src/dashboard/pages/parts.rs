//! The small parts that pages are made of: times, money, ids, states, tables, empty lists.
use std::borrow::Cow;

use maud::{Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::base::time;
use crate::dashboard::frame::Frame;
use crate::speech::settings::TONE;

/// A text in an answer, by its path (`costs/total_microusd`); empty where there is none.
pub fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// A number in an answer; 0 where there is none.
pub fn number(value: &Value, path: &str) -> i64 {
    at(value, path).as_i64().unwrap_or_default()
}

/// A list in an answer; empty where there is none.
pub fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// A value in an answer; null where there is none.
pub fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    if path.is_empty() {
        return value;
    }
    // Most paths are a name, and a long list asks for thousands.
    if !path.contains('/') {
        return value.get(path).unwrap_or(&Value::Null);
    }
    path.split('/').try_fold(value, |value, name| value.get(name)).unwrap_or(&Value::Null)
}

/// The answer of the `n`th read.
pub fn read(answers: &[Value], n: usize) -> &Value {
    answers.get(n).unwrap_or(&Value::Null)
}

/// The first value of a name in the page's address.
pub fn asked<'a>(frame: &'a Frame, name: &str) -> &'a str {
    frame.query.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
}

/// The name of the resource with this id in a list; the id, shortened, where the list does not have it.
pub fn name_of<'a>(resources: &'a Value, id: &str) -> Cow<'a, str> {
    let found = list(resources, "").iter().find(|resource| text(resource, "id") == id);
    found.map_or_else(|| shortened(id).into(), |resource| text(resource, "name").into())
}

/// A time: relative, with the exact one on hover. The script adds the viewer's zone.
pub fn when(frame: &Frame, at: &str) -> Markup {
    let Some(ms) = time::from(at) else {
        return html! { span.none { "–" } };
    };
    match relative(frame.now_ms, ms) {
        Some(relative) => html! { time datetime=(at) title=(exact(at)) { (relative) } },
        None => html! { time datetime=(at) title=(exact(at)) data-date { (at.get(..10).unwrap_or(at)) } },
    }
}

/// A date with its time, and how long ago that was. The script tells it in the viewer's zone.
pub fn date(frame: &Frame, at: &str) -> Markup {
    let minutes = at.get(..16).unwrap_or(at).replace('T', " ");
    let relative = time::from(at).and_then(|ms| relative(frame.now_ms, ms));
    html! {
        @if at.is_empty() { span.none { "–" } }
        @else { time datetime=(at) title=(exact(at)) data-date="short" { (minutes) " UTC" } }
        @if let Some(relative) = relative { " " span.dim.ago { span { "· " } (relative) } }
    }
}

/// A date to the second, for things that began within a minute of each other.
pub fn to_the_second(at: &str) -> Markup {
    html! {
        @if at.is_empty() { span.none { "–" } }
        @else { time datetime=(at) title=(exact(at)) data-date="second" { (exact(at)) } }
    }
}

/// `2026-11-24 12:46:15 UTC`
fn exact(at: &str) -> String {
    format!("{} UTC", at.get(..19).unwrap_or(at).replace('T', " "))
}

/// `3 min ago`; none when it is longer than a month ago.
fn relative(now_ms: i64, ms: i64) -> Option<String> {
    let seconds = (now_ms - ms).abs() / 1000;
    let (count, unit) = match seconds {
        0..45 => return Some(if ms > now_ms { "in a moment" } else { "just now" }.to_owned()),
        45..3570 => ((seconds + 30) / 60, "min"),
        3570..84_600 => ((seconds + 1800) / 3600, "h"),
        84_600..2_592_000 => match (seconds + 43_200) / 86_400 {
            1 => (1, "day"),
            days => (days, "days"),
        },
        _ => return None,
    };
    Some(if ms > now_ms { format!("in {count} {unit}") } else { format!("{count} {unit} ago") })
}

/// Millionths of a dollar in dollars, with as many decimals as matter.
pub fn money(microusd: i64) -> String {
    let sign = if microusd < 0 { "−" } else { "" };
    let micro = microusd.unsigned_abs();
    let decimals = match micro {
        0 => 0,
        1..100 => 6,
        100..1000 => 5,
        1000..100_000 => 4,
        100_000..1_000_000 => 3,
        _ => 2,
    };
    let step = 10_u64.pow(6 - decimals);
    let rounded = (micro + step / 2) / step;
    let whole = grouped((rounded / 10_u64.pow(decimals)).cast_signed());
    match decimals {
        0 => format!("{sign}${whole}"),
        _ => {
            format!("{sign}${whole}.{:0width$}", rounded % 10_u64.pow(decimals), width = decimals as usize)
        }
    }
}

/// How many of a hundred, rounded. Only all of them are 100, and only none of them 0.
pub fn percent(part: i64, whole: i64) -> i64 {
    match part {
        _ if whole <= 0 || part <= 0 => 0,
        _ if part >= whole => 100,
        _ => ((part * 100 + whole / 2) / whole).clamp(1, 99),
    }
}

/// `18 Nov`: a day in a chart.
pub fn day(ms: i64) -> String {
    let date = time::format(ms);
    let part = |range: std::ops::Range<usize>| {
        date.get(range).and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(1)
    };
    format!("{} {}", part(8..10), time::MONTHS_SHORT.get(part(5..7) - 1).copied().unwrap_or_default())
}

/// `12,345`.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("−{text}") } else { text }
}

/// `4 calls`, `1 call`.
pub fn counted(count: i64, one: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{} {one}{end}", grouped(count))
}

/// How long a conversation was: `1:07`, `1:02:03`. How long somebody waited is told by [`span`].
pub fn length(ms: i64) -> String {
    let seconds = (ms + 500) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// `0:07.4`: a moment in a call.
pub fn moment(ms: i64) -> String {
    format!("{}:{:02}.{}", ms / 60_000, ms / 1000 % 60, ms / 100 % 10)
}

/// `640 ms`, `1.24 s`: a wait.
pub fn span(ms: i64) -> String {
    match ms {
        ..1000 => format!("{ms} ms"),
        1000..10_000 => format!("{}.{:02} s", ms / 1000, ms / 10 % 100),
        _ => format!("{}.{} s", ms / 1000, ms / 100 % 10),
    }
}

/// `12 KB`.
pub fn size(bytes: i64) -> String {
    if bytes < 1024 {
        format!("{bytes} B")
    } else {
        format!("{}.{} KB", bytes / 1024, bytes % 1024 * 10 / 1024)
    }
}

/// `call_01m8…d31a`: shortened in the middle.
pub fn shortened(id: &str) -> String {
    let count = id.chars().count();
    if count <= 18 {
        return id.to_owned();
    }
    let head: String = id.chars().take(10).collect();
    let tail: String = id.chars().skip(count - 5).collect();
    format!("{head}…{tail}")
}

/// An id with a button that copies it.
pub fn id(id: &str) -> Markup {
    html! {
        span.id {
            code title=(id) { (shortened(id)) }
            (copy(id, "Copy id"))
        }
    }
}

/// A button that copies a text; of an empty one, the text before it. The script shows it.
pub fn copy(what: &str, label: &str) -> Markup {
    html! { button.copy type="button" data-copy=(what) aria-label=(label) title=(label) { (icon("copy")) } }
}

/// A text to copy as a whole: a command, a snippet.
pub fn snippet(what: &str, label: &str) -> Markup {
    html! {
        div.snippet {
            pre tabindex="0" aria-label=(label) { code { (what) } }
            (copy("", "Copy"))
        }
    }
}

/// What a state means to the person who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Failed.
    Bad,
    /// Under way.
    Live,
    /// Neither.
    Quiet,
}

/// A state: a word with a dot.
pub fn status(tone: Tone, word: &str) -> Markup {
    let class = match tone {
        Tone::Good => "st good",
        Tone::Warn => "st warn",
        Tone::Bad => "st bad",
        Tone::Live => "st live",
        Tone::Quiet => "st",
    };
    html! { span class=(class) { (word) } }
}

/// `no_answer` → `No answer`.
pub fn words(name: &str) -> String {
    let mut text = name.replace(['_', '.'], " ").replace(" api ", " API ");
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    text
}

/// A link to a page of the documentation: the page, and what it is about.
pub fn documentation((page, about): (&str, &str)) -> Markup {
    html! { a href={ "https://github.com/sidetone/sidetone/blob/main/docs/" (page) } { (about) } }
}

/// Which providers there are, and how the operator adds one.
pub fn provided(frame: &Frame) -> Markup {
    let speech = frame.provided.speech.iter().filter(|name| !frame.provided.models.contains(name));
    html! {
        p.help {
            "Providers of this service: "
            @for (n, name) in frame.provided.models.iter().chain(speech).enumerate() { @if n > 0 { ", " } code { (name) } } ". "
            "Whoever runs it adds models with " code { "SIDETONE_OPENAI_API_KEY" } " or " code { "SIDETONE_PROVIDERS" } ": "
            (documentation(("models.md#use-your-own-model", "Use your own model"))) ", "
            (documentation(("settings-and-limits.md#speech-providers", "Speech providers"))) "."
        }
    }
}

/// What is heard of the built-in voice.
pub fn tones() -> Markup {
    html! { p.help { "The voice " code { (TONE) } " speaks in test tones: beeps in place of words. A voice of a provider speaks." } }
}

/// A list that is empty: a sentence, a button, a link to the documentation.
pub fn empty(sentence: &str, button: Option<(&str, &str)>, docs: (&str, &str)) -> Markup {
    html! {
        div.empty {
            p { (sentence) }
            p.row {
                @if let Some((href, label)) = button { a.button.primary href=(href) { (label) } }
                (documentation(docs))
            }
        }
    }
}

/// A table that scrolls by itself where it is wider than the page; on a telephone, each row is a card.
pub fn table(label: &str, head: Markup, rows: Markup) -> Markup {
    let rows = PreEscaped(labelled(&head.0, &rows.0));
    html! {
        div.scroll.cards tabindex="0" role="region" aria-label=(label) {
            table { thead { tr { (head) } } tbody { (rows) } }
        }
    }
}

/// What needs no name of a column: what the row is called, and a state.
const UNLABELLED: &[&str] = &["<a class=\"name\"", "<strong", "<span class=\"st"];

/// The rows with the name of its column at each cell: a card has no head. All texts are escaped here, so what looks like
/// a tag is one.
fn labelled(head: &str, rows: &str) -> String {
    let names: Vec<String> = head.split("<th").skip(1).map(column).collect();
    let mut text = String::with_capacity(rows.len() * 5 / 4);
    let (mut rest, mut at) = (rows, 0);
    while let Some(begin) = rest.find("<t") {
        let (before, tag) = rest.split_at(begin);
        let (open, after) = tag.split_at(tag.len().min(3));
        text.push_str(before);
        text.push_str(open);
        rest = after;
        if !after.starts_with([' ', '>']) {
            continue;
        }
        match open {
            "<tr" => at = 0,
            "<td" | "<th" => {
                let content = after.split_once('>').map_or("", |(_, content)| content);
                let speaks = UNLABELLED.iter().any(|start| content.starts_with(start));
                let name = names.get(at).filter(|name| open == "<td" && !name.is_empty() && !speaks);
                if let Some(name) = name {
                    text.push_str(" data-label=\"");
                    text.push_str(name);
                    text.push('"');
                }
                at += 1;
            }
            _ => {}
        }
    }
    text + rest
}

/// The name in a cell of the head: without the arrow of its order, and empty where only screen readers have one.
fn column(cell: &str) -> String {
    let content = cell.split_once('>').map_or("", |(_, content)| content);
    let content = content.split("<span").next().unwrap_or_default();
    let texts = content.split('<').enumerate();
    texts
        .map(|(at, part)| if at == 0 { part } else { part.split_once('>').map_or("", |(_, text)| text) })
        .collect()
}

/// A head and what belongs to it.
pub fn section(title: &str, content: Markup) -> Markup {
    html! { section.part { h2 { (title) } (content) } }
}

/// Facts in pairs.
pub fn facts(pairs: &[(&str, Markup)]) -> Markup {
    html! { dl.facts { @for (name, value) in pairs { div { dt { (name) } dd { (value) } } } } }
}

/// Text with `code` between backticks.
pub fn prose(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The address of the page with these names changed, on its first page, without what a form said; an empty value
/// removes a name.
pub fn address_of(frame: &Frame, changed: &[(&str, &str)]) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (other, old) in &frame.query {
        if !matches!(other.as_str(), "page" | "done") && changed.iter().all(|(name, _)| other != name) {
            pairs.append_pair(other, old);
        }
    }
    for (name, value) in changed.iter().filter(|(_, value)| !value.is_empty()) {
        pairs.append_pair(name, value);
    }
    let query = pairs.finish();
    if query.is_empty() { frame.path.clone() } else { format!("{}?{query}", frame.path) }
}

/// The address of the page as it was asked for, without what a form said.
pub fn here(frame: &Frame) -> String {
    address_of(frame, &[("page", asked(frame, "page"))])
}

/// A link to the address of a resource's page.
pub fn link(base: &str, id: &str) -> String {
    const ID: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_');
    let mut address = String::with_capacity(base.len() + 1 + id.len());
    address.push_str(base);
    address.push('/');
    address.extend(utf8_percent_encode(id, ID));
    address
}

/// The links to the pages before and after.
pub fn pages(frame: &Frame, pagination: &Value, (one, many): (&str, &str)) -> Markup {
    let (page, pages) = (number(pagination, "page"), number(pagination, "total_pages"));
    let (limit, total) = (number(pagination, "limit"), number(pagination, "total"));
    let first = (page - 1) * limit + 1;
    html! {
        nav.pages aria-label={ "Pages of " (many) } {
            span {
                @if total > 0 { (grouped(first)) "–" (grouped((first + limit - 1).min(total))) " of " }
                (grouped(total)) " " @if total == 1 { (one) } @else { (many) }
            }
            @if page > 1 { a.button rel="prev" href=(address_of(frame, &[("page", &(page - 1).to_string())])) { "Previous" } }
            @if page < pages { a.button rel="next" href=(address_of(frame, &[("page", &(page + 1).to_string())])) { "Next" } }
        }
    }
}

/// The links of a list that is shown in parts: to its beginning, and to its next part.
pub fn more(frame: &Frame, after: &str) -> Markup {
    let next = frame.continues.iter().find(|(name, _)| name == after).map(|(_, value)| value);
    let is_later = !asked(frame, after).is_empty();
    html! {
        @if is_later || next.is_some() {
            nav.pages aria-label={ "Parts of the list" @if after != "after" { ": " (words(after)) } } {
                span {}
                @if is_later { a.button href=(address_of(frame, &[(after, "")])) { "First page" } }
                @if let Some(next) = next { a.button rel="next" href=(address_of(frame, &[(after, next)])) { "Next" } }
            }
        }
    }
}

/// One of the icons: 16 px, drawn with the text's colour, always beside a text.
pub fn icon(name: &str) -> Markup {
    let path = match name {
        "overview" => "M2 13.5h12M4 11V8M8 11V3.5M12 11V6",
        "calls" => "M3 6v4M5.5 3.5v9M8 5.5v5M10.5 2.5v11M13 6.5v3",
        "assistants" => {
            "M8 2.5a3 3 0 0 1 3 3v1.5a3 3 0 0 1-6 0V5.5a3 3 0 0 1 3-3zM3 8a5 5 0 0 0 10 0M8 13v1.5"
        }
        "tools" => {
            "M10.5 2.5a3 3 0 0 0-2.8 4L2.5 11.7l1.8 1.8 5.2-5.2a3 3 0 0 0 4-3.5l-2 1.8-1.9-1.9 1.8-2a3 3 0 0 0-.9-.2z"
        }
        "knowledge" => {
            "M3 3h4a2 2 0 0 1 1 .5A2 2 0 0 1 9 3h4v9.5H9.5a2 2 0 0 0-1.5.7 2 2 0 0 0-1.5-.7H3zM8 3.5v9"
        }
        "numbers" => "M6 2.5 4.5 13.5M11.5 2.5 10 13.5M2.5 6h11M2.5 10h11",
        "simulations" => "M6 2.5h4M7 2.5v4l-4 6.2c-.4.7 0 1.3.7 1.3h8.6c.7 0 1.1-.6.7-1.3L9 6.5v-4M5 10h6",
        "webhooks" => "M2.5 8h8M7.5 4.5 11 8l-3.5 3.5M13.5 3v10",
        "keys" => "M5 5.3a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4zM7.7 8H14v2.7M11.3 8v2.2",
        "settings" => "M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M10 3v3M6 10v3",
        "copy" => "M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z",
        "back" => "M9.5 3.5 5 8l4.5 4.5",
        "more" => "M3.5 8h.01M8 8h.01M12.5 8h.01",
        "search" => "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l3 3",
        "play" => "M5 3.5v9l7-4.5z",
        _ => "M8 3v10M3 8h10",
    };
    html! {
        svg.icon viewBox="0 0 16 16" aria-hidden="true" {
            path d=(PreEscaped(path)) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_the_decimals_that_matter() {
        for (microusd, expected) in [
            (0, "$0"),
            (45, "$0.000045"),
            (3_400, "$0.0034"),
            (123_400, "$0.123"),
            (1_234_567, "$1.23"),
            (12_345_678_900, "$12,345.68"),
            (999_999, "$1.000"),
            (-1_500_000, "−$1.50"),
        ] {
            assert_eq!(money(microusd), expected);
        }
    }

    #[test]
    fn percentages_are_rounded() {
        let cases =
            [(11, 12, 92), (10, 12, 83), (199, 200, 99), (1, 900, 1), (0, 5, 0), (5, 5, 100), (0, 0, 0)];
        for (part, whole, expected) in cases {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn times_are_told_as_people_tell_them() {
        let now = 1_795_316_794_000;
        for (ago_s, expected) in [
            (10, Some("just now")),
            (-10, Some("in a moment")),
            (60, Some("1 min ago")),
            (3 * 3600, Some("3 h ago")),
            (86_400, Some("1 day ago")),
            (5 * 86_400, Some("5 days ago")),
            (-600, Some("in 10 min")),
            (90 * 86_400, None),
        ] {
            assert_eq!(relative(now, now - ago_s * 1000).as_deref(), expected);
        }
    }

    #[test]
    fn cells_have_the_names_of_their_columns() {
        let head = html! {
            th scope="col" { a.sort href="/?a=1" { "Who & <b>" span { " ↓" } } } th.num scope="col" { "Cost" }
            th { span.vh { "Actions" } }
        };
        let rows = html! {
            tr { td.fit { time { "<td>" } } td { "$1" } td { button { "Go" } } }
            tr { td { a.name { "x" } } td {} td {} }
        };
        assert_eq!(
            labelled(&head.0, &rows.0),
            "<tr><td data-label=\"Who &amp; &lt;b&gt;\" class=\"fit\"><time>&lt;td&gt;</time></td>\
             <td data-label=\"Cost\">$1</td><td><button>Go</button></td></tr>\
             <tr><td><a class=\"name\">x</a></td><td data-label=\"Cost\"></td><td></td></tr>"
        );
    }

    #[test]
    fn numbers_and_ids_are_readable() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "call"), "1 call");
        assert_eq!(length(67_400), "1:07");
        assert_eq!(moment(7_460), "0:07.4");
        assert_eq!([0, 7_460, 65_000, 3_723_000].map(length), ["0:00", "0:07", "1:05", "1:02:03"]);
        assert_eq!(span(1240), "1.24 s");
        assert_eq!(shortened("call_01m80kpfmqbq07vnb4zdtv31bd"), "call_01m80…v31bd");
        assert_eq!(words("no_answer"), "No answer");
        assert_eq!(words("create_api_key"), "Create API key");
    }
}

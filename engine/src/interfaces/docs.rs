//! `/docs`: one page made from the OpenAPI document and recorded examples. It loads nothing, and is whole without its script.
mod examples;
mod fields;
mod guide;
mod json;
mod operation;
mod requests;
mod snippets;
mod test_links;
mod words;

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

pub(in crate::interfaces) use self::examples::Examples;
use self::guide::GUIDE;
use self::words::{anchor, prose, text};
use crate::base::hash::policy_source;
use crate::base::html_page::html_page;

/// The colours and typefaces of every page, and what is of this one and of the one at `/`.
const STYLE: &str = concat!(include_str!("../base/theme.css"), include_str!("docs/docs.css"));
/// Search, one language in all tabs, copying, and where the reader is. It is the only script that the page may run.
const SCRIPT: &str = include_str!("docs/docs.js");

/// The page's text.
pub fn render(document: &Value, base_url: &str) -> String {
    let examples = Examples::of_service(base_url);
    let body = html! {
        header.top {
            (brand())
            nav.links aria-label="Elsewhere" {
                a href="/dashboard" { "Dashboard" }
                a href="/openapi.json" { "OpenAPI" }
            }
        }
        div.app {
            (rail(document))
            main #content tabindex="-1" {
                p.none hidden { "Nothing has these words. Search for a path, a field, an event or a code." }
                (guide::sections(document, base_url, &examples))
                @for tag in list(&document["tags"]) {
                    @let name = text(&tag["name"]);
                    section.group id=(anchor(name)) { h2 { a href={ "#" (anchor(name)) } { (name) } } p { (prose(text(&tag["description"]))) } }
                    @for (path, method, described) in operations_of(document, name) {
                        (operation::section(document, base_url, &examples, path, method, described))
                    }
                }
                (requests::sections(document, &examples))
                (test_links::section(base_url))
                (fields::objects(document))
            }
        }
        script { (PreEscaped(SCRIPT)) }
    };
    shell("API reference · Sidetone", &body)
}

/// A whole page.
pub(super) fn shell(title: &str, body: &Markup) -> String {
    html_page(title, &html! {}, &html! { style { (PreEscaped(STYLE)) } }, body).into_string()
}

/// The name of the service, beside its mark.
pub(super) fn brand() -> Markup {
    html! {
        a.brand href="/" {
            svg.mark viewBox="0 0 16 16" width="20" height="20" aria-hidden="true" {
                path d="M2.5 6v4M5.2 3v10M8 5v6M10.8 6.7v2.6M13.5 7.5v1" {}
            }
            "Sidetone"
        }
    }
}

/// The page as a response: it runs its own script and nothing else.
pub fn page(html: Bytes) -> Response<Bytes> {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            policy_source(SCRIPT),
            policy_source(STYLE)
        )
    });
    let mut response = Response::new(html);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// What the page has, by chapter. The script shows where the reader is, and opens that chapter.
fn rail(document: &Value) -> Markup {
    let chapter = |name: &str, entries: Vec<(String, String)>| {
        html! {
            details {
                summary { (name) }
                ul { @for (id, title) in &entries { li { a href={ "#" (id) } { (title) } } } }
            }
        }
    };
    let guide = GUIDE.iter().map(|(id, title)| ((*id).to_owned(), (*title).to_owned()));
    let objects = fields::object_names(document).map(|name| (fields::object_anchor(name), name.to_owned()));
    html! {
        nav.rail aria-label="Parts of the reference" {
            label.search hidden {
                span { "Search " kbd { "/" } }
                input #search type="search" autocomplete="off" spellcheck="false" placeholder="run, webhook";
            }
            p #found role="status" {}
            (chapter("Start here", guide.collect()))
            @for tag in list(&document["tags"]) {
                @let name = text(&tag["name"]);
                (chapter(name, operations_of(document, name)
                    .map(|(_, _, one)| (text(&one["operationId"]).to_owned(), text(&one["summary"]).to_owned()))
                    .collect()))
            }
            (chapter("Events and tool requests", requests::entries()))
            (chapter(test_links::ENTRY.1, vec![(test_links::ENTRY.0.to_owned(), "Page, socket and restart".to_owned())]))
            (chapter("Objects", objects.collect()))
        }
    }
}

/// The operations of a group, with path and method.
fn operations_of<'a>(
    document: &'a Value,
    group: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .filter(move |(_, _, operation)| operation["tags"][0] == group)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::base::error::Code;
    use crate::operations::OPERATIONS;
    use crate::storage::events::EventKind;

    const BASE_URL: &str = "https://voice.example.com";

    fn page() -> String {
        render(&crate::interfaces::openapi::document(BASE_URL), BASE_URL)
    }

    #[test]
    fn no_backtick_is_left_in_the_page() {
        let page = page().replace(SCRIPT, "");
        let left: Vec<&str> = page.lines().filter(|line| line.contains('`')).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Every link within the page leads somewhere, and no two places share an id.
    #[test]
    fn every_operation_event_and_code_has_a_place_of_its_own() {
        let page = page();
        let values = |start: &str| -> Vec<String> {
            page.split(start).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
        };
        let ids = values(" id=\"");
        let places: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(ids.len(), places.len(), "an id is there twice");
        for operation in OPERATIONS {
            assert!(places.contains(operation.id), "{}", operation.id);
        }
        for (kind, _) in EventKind::ALL {
            let kind = kind.as_str();
            assert!(places.contains(&*format!("event-{kind}")), "{kind}");
        }
        for code in Code::ALL {
            assert!(places.contains(&*format!("error-{}", code.as_str())), "{}", code.as_str());
        }
        for link in values(" href=\"#") {
            assert!(places.contains(link.as_str()), "nothing is at #{link}");
        }
    }

    #[test]
    fn the_routes_of_test_links_are_told() {
        let page = page();
        for route in
            ["GET /voice-test?token=", "GET /voice-test/socket?token=", "POST /voice-test/restart?token="]
        {
            assert!(page.contains(route), "{route}");
        }
        assert!(page.contains("wss://voice.example.com/voice-test/socket"));
    }

    #[test]
    fn examples_name_this_service() {
        let page = page();
        assert!(page.contains("curl -X POST https://voice.example.com/assistants"));
        assert!(!page.contains("sandbox.example"));
    }

    #[test]
    fn every_operation_has_its_example() {
        let examples = Examples::of_service(BASE_URL);
        for operation in OPERATIONS {
            assert!(examples.operation(operation.id).is_object(), "{}", operation.id);
        }
    }
}

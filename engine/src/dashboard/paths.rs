//! Addresses of pages: which of them somebody may be sent to, and their parts.
use super::frame::Page;

/// Characters of an address to return to.
const PATH_CHARS_MAX: usize = 2_000;

/// The address, if it is a page below `/dashboard` of this service. Anything else would be an open redirect.
pub(super) fn safe(address: &str) -> Option<&str> {
    let (path, _) = split(address);
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\\';
    let is_below = path == "/dashboard" || path.starts_with("/dashboard/");
    let is_page = !["/dashboard/api", "/dashboard/do", "/dashboard/sign-in", "/dashboard/sign-out"]
        .iter()
        .any(|other| path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let climbs = path.contains("..")
        || path.contains("//")
        || path.contains('%') && path.to_ascii_lowercase().contains("%2e");
    let fits = address.len() <= PATH_CHARS_MAX && address.chars().all(is_plain) && !address.contains('#');
    (is_below && is_page && !climbs && fits).then_some(address)
}

/// Path and query.
pub(super) fn split(address: &str) -> (&str, &str) {
    address.split_once('?').unwrap_or((address, ""))
}

/// The query of an address, decoded.
pub(super) fn query(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// The first value of a name.
pub(super) fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The address with a parameter set.
pub(super) fn with_parameter(address: &str, name: &str, value: &str) -> String {
    let (path, text) = split(address);
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(form_urlencoded::parse(text.as_bytes()).filter(|(known, _)| known != name));
    query.append_pair(name, value);
    format!("{path}?{}", query.finish())
}

/// The page at a path, with the values in it.
pub(super) fn find(
    pages: &'static [Page],
    path: &str,
) -> Option<(&'static Page, Vec<(&'static str, String)>)> {
    let path = path.strip_suffix('/').unwrap_or(path);
    // A literal segment stands before one with a name.
    let found = pages.iter().filter_map(|page| Some((page, values(page.path, path)?)));
    found.min_by_key(|(_, values)| values.len())
}

fn values(pattern: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut values = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(values),
            (Some(want), Some(give)) => {
                match want.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    Some(name) if !give.is_empty() => {
                        let decoded = percent_encoding::percent_decode_str(give).decode_utf8().ok()?;
                        values.push((name, decoded.into_owned()));
                    }
                    None if want == give => {}
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_dashboard_are_returned_to() {
        for good in
            ["/dashboard", "/dashboard/", "/dashboard?a=https://evil.example", "/dashboard/calls/call_1?x=1"]
        {
            assert_eq!(safe(good), Some(good));
        }
        for bad in [
            "",
            "https://evil.example/dashboard",
            "//evil.example/dashboard",
            "/\\evil.example",
            "/dashboard\\..",
            "/dashboards",
            "/dashboard/../docs",
            "/dashboard/%2E%2e/docs",
            "/dashboard//evil.example",
            "/dashboard/api/keys",
            "/dashboard/sign-out",
            "/dashboard/do/create_api_key",
            "/dashboard/a b",
            "/dashboard\r\nset-cookie: a=b",
            "/dashboard#x",
            "javascript:alert(1)",
        ] {
            assert_eq!(safe(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_parameter_is_replaced() {
        assert_eq!(
            with_parameter("/dashboard/keys?done=a&x=1", "done", "b c"),
            "/dashboard/keys?x=1&done=b+c"
        );
    }
}

//! Web and e-mail addresses in English words.

/// Endings of domains that tell an address without `https://` from words with a full stop between them.
const TOP_LEVEL: [&str; 24] = [
    "com", "net", "org", "io", "gov", "edu", "me", "dev", "app", "ai", "co", "uk", "us", "ca", "au", "de",
    "fr", "es", "it", "nl", "ch", "at", "eu", "info",
];
/// A longer path is left out: nobody remembers it.
const PATH_MAX: usize = 40;

/// The address that a text begins with in words, and its length.
pub(super) fn spoken(text: &str) -> Option<(String, usize)> {
    let is_end = |character: char| character.is_whitespace() || "<>()[]{}\"“”|*`,;".contains(character);
    let token = text.split(is_end).next().unwrap_or_default();
    let token = token.trim_end_matches(|character: char| ".!?:'’…_~".contains(character));
    email(token).or_else(|| web(token)).map(|words| (words, token.len()))
}

fn email(token: &str) -> Option<String> {
    let address = token.strip_prefix("mailto:").unwrap_or(token);
    let (name, host) = address.split_once('@')?;
    let is_name = !name.is_empty()
        && name.chars().all(|character| character.is_alphanumeric() || "._+-".contains(character));
    (is_name && is_domain(host)).then(|| format!("{} at {}", in_words(name), in_words(host)))
}

fn web(token: &str) -> Option<String> {
    let address = ["https://", "http://"].iter().find_map(|scheme| {
        token
            .get(..scheme.len())
            .filter(|begin| begin.eq_ignore_ascii_case(scheme))
            .map(|_| &token[scheme.len()..])
    });
    let (host, path) = match address.unwrap_or(token).find(['/', '?', '#']) {
        Some(end) => address.unwrap_or(token).split_at(end),
        None => (address.unwrap_or(token), ""),
    };
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    let is_address = match address {
        Some(_) => !host.is_empty(),
        None => port.is_empty() && is_domain(host) && has_known_ending(host),
    };
    if !is_address {
        return None;
    }
    let mut words = in_words(host.strip_prefix("www.").unwrap_or(host));
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    if path.len() <= PATH_MAX {
        words.push_str(&in_words(path));
    }
    Some(words)
}

/// Whether a text can be the name of a host: labels of letters, digits and hyphens, with a full stop between them.
fn is_domain(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|character| character.is_alphanumeric() || character == '-')
    };
    let ending = host.rsplit('.').next().unwrap_or_default();
    host.contains('.')
        && host.split('.').all(is_label)
        && ending.chars().nth(1).is_some()
        && ending.chars().all(char::is_alphabetic)
}

fn has_known_ending(host: &str) -> bool {
    let ending = host.rsplit('.').next().unwrap_or_default();
    TOP_LEVEL.iter().any(|known| ending.eq_ignore_ascii_case(known))
}

fn in_words(text: &str) -> String {
    let mut words = String::new();
    for character in text.chars() {
        match character {
            '.' => words.push_str(" dot "),
            '-' => words.push_str(" dash "),
            '_' => words.push_str(" underscore "),
            '+' => words.push_str(" plus "),
            '/' => words.push_str(" slash "),
            _ => words.push(character),
        }
    }
    words.trim_end().to_owned()
}

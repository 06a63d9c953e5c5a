//! Text within XML.

/// Escapes text for attributes and content. The characters that XML 1.0 does not have are replaced.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' | '\n' | '\r' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_xml_is_escaped_and_what_it_lacks_is_replaced() {
        assert_eq!(
            escaped("a < b && c > \"d\" 'é'"),
            "a &lt; b &amp;&amp; c &gt; &quot;d&quot; &apos;é&apos;"
        );
        assert_eq!(
            escaped("one\ttwo\r\nthree\u{0}\u{1b}\u{85}\u{ffff}"),
            "one\ttwo\r\nthree\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
    }
}

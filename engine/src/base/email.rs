//! E-mail addresses.
use crate::base::limits::EMAIL_CHARS_MAX;

/// The address in lower case; `None` if it is none.
pub(crate) fn address(typed: &str) -> Option<String> {
    let address = typed.trim().to_ascii_lowercase();
    let (name, host) = address.rsplit_once('@')?;
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"(),:;<>[\\]@".contains(c);
    let fits = !name.is_empty() && host.len() >= 3 && host.contains('.') && address.len() <= EMAIL_CHARS_MAX;
    let is_host = !host.starts_with('.') && !host.ends_with('.') && !host.contains("..");
    (fits && is_host && name.chars().chain(host.chars()).all(is_plain)).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_in_lower_case() {
        assert_eq!(address(" Anna@Example.COM ").as_deref(), Some("anna@example.com"));
        for bad in [
            "",
            "anna",
            "@a.example",
            "a@b",
            "a@.b.c",
            "a b@c.example",
            "a@b.example\nbcc: x@y.example",
            "a@b@c.example",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }
}

//! Who may sign in to the dashboard for the first time.
use std::collections::BTreeSet;

use crate::base::ordered::Ordered as _;
use crate::base::setting::SettingError;

/// The setting.
pub const SIGN_UP: &str = "SIDETONE_SIGN_UP";

/// Who gets an account. Those who have one keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignUp {
    /// Whoever proves an address.
    Open,
    /// Whoever is invited, and the addresses and domains of the operator's list.
    Invited {
        /// `anna@example.com` or `example.com`, in lower case.
        listed: BTreeSet<String>,
    },
}

impl SignUp {
    pub(super) fn from_setting(value: Option<String>) -> Result<Self, SettingError> {
        let Some(value) = value else { return Ok(Self::Open) };
        let words: Vec<String> = value
            .split(',')
            .map(|word| word.trim().to_ascii_lowercase())
            .filter(|word| !word.is_empty())
            .collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["open"] => return Ok(Self::Open),
            ["invited"] => return Ok(Self::Invited { listed: BTreeSet::new() }),
            _ => {}
        }
        if words.is_empty() {
            return Err(wrong(&value));
        }
        match words.iter().find(|word| !is_listable(word)) {
            Some(word) => Err(wrong(word)),
            None => Ok(Self::Invited { listed: words.into_set() }),
        }
    }

    /// Whether an address, in lower case, needs no invitation. `by_domain`: its domain vouches for the person.
    pub fn is_open_to(&self, email: &str, by_domain: bool) -> bool {
        match self {
            Self::Open => true,
            Self::Invited { listed } => {
                let domain = email.rsplit_once('@').map(|(_, domain)| domain);
                listed.contains(email) || by_domain && domain.is_some_and(|domain| listed.contains(domain))
            }
        }
    }
}

fn is_listable(word: &str) -> bool {
    let (name, domain) = word.rsplit_once('@').map_or((None, word), |(name, domain)| (Some(name), domain));
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    domain.contains('.')
        && domain.split('.').all(is_part)
        && name.is_none_or(|name| {
            !name.is_empty() && !name.contains('@') && name.bytes().all(|b| b.is_ascii_graphic())
        })
}

fn wrong(text: &str) -> SettingError {
    SettingError {
        name: SIGN_UP,
        message: format!(
            "must be `open`, `invited`, or a list of domains and addresses such as example.com,anna@example.org; \
             `{text}` is none of them"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Result<SignUp, SettingError> {
        SignUp::from_setting(Some(value.to_owned()))
    }

    #[test]
    fn a_list_opens_its_domains_and_addresses_only() {
        let listed = read(" Example.com, anna@other.example ").unwrap();
        for (email, is_open) in [
            ("ben@example.com", true),
            ("anna@other.example", true),
            ("ben@other.example", false),
            ("ben@sub.example.com", false),
            ("ben@evil-example.com", false),
            ("ben@example.com.evil.example", false),
        ] {
            assert_eq!(listed.is_open_to(email, true), is_open, "{email}");
        }
        assert!(SignUp::from_setting(None).unwrap().is_open_to("a@b.example", true));
        assert!(read("open").unwrap().is_open_to("a@b.example", false));
        assert!(!read("invited").unwrap().is_open_to("a@b.example", true));
        assert!(
            !read("b.example").unwrap().is_open_to("a@b.example", false),
            "nobody vouches for the domain"
        );
    }

    #[test]
    fn anything_else_is_named() {
        for value in
            ["closed", ",", "open,example.com", "@example.com", "example..com", "exa mple.com", "a@b@c.de"]
        {
            let error = read(value).err().unwrap_or_else(|| panic!("{value} was taken"));
            assert_eq!(error.name, SIGN_UP);
        }
    }
}

//! Callbacks with an invalid signature.
use super::wire::CallbackRequest;

/// How a callback is forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgery {
    /// The signature is removed.
    Unsigned,
    /// The signature belongs to something else.
    WrongSignature,
    /// The body is modified after signing.
    OtherBody,
    /// The callback is genuine, but an hour old.
    OldTimestamp,
}

impl Forgery {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Unsigned, Self::WrongSignature, Self::OtherBody, Self::OldTimestamp];

    /// The age of the signature in seconds.
    pub(super) fn age_s(self) -> i64 {
        if self == Self::OldTimestamp { 3_600 } else { 0 }
    }

    /// Modifies a genuine callback; `None` if the carrier's signature does not cover the change: Twilio and Plivo sign no time,
    /// and a callback without a body has none to modify.
    pub(super) fn apply(self, provider: &str, mut genuine: CallbackRequest) -> Option<CallbackRequest> {
        match self {
            Self::OldTimestamp => matches!(provider, "telnyx" | "vonage").then_some(genuine),
            Self::Unsigned => {
                genuine.headers.retain(|(name, _)| !signs(name));
                Some(genuine)
            }
            Self::WrongSignature => {
                for (_, value) in genuine.headers.iter_mut().filter(|(name, _)| signs(name)) {
                    *value = altered(value);
                }
                Some(genuine)
            }
            Self::OtherBody => {
                // Replacing a digit keeps forms and JSON valid.
                let digit = genuine.body.iter_mut().rev().find(|byte| byte.is_ascii_digit())?;
                *digit = if *digit == b'7' { b'8' } else { b'7' };
                Some(genuine)
            }
        }
    }
}

fn signs(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    header == "authorization" || (header.contains("signature") && !header.ends_with("nonce"))
}

/// Changes one character of each signature in the value: there may be several, and a token ends with its signature.
fn altered(value: &str) -> String {
    let one = |value: &str| {
        let at = value.rfind('.').map_or(0, |dot| dot + 1) + 5;
        let other = |(nth, char): (usize, char)| match char {
            _ if nth != at => char,
            'A' => 'B',
            _ => 'A',
        };
        value.chars().enumerate().map(other).collect::<String>()
    };
    value.split(',').map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genuine() -> CallbackRequest {
        let headers =
            vec![("content-type", "text/plain".to_owned()), ("X-Some-Signature", "aaaaaaaa".to_owned())];
        CallbackRequest {
            method: "POST",
            url: "https://a.example/".to_owned(),
            headers,
            body: b"n=15".to_vec(),
        }
    }

    #[test]
    fn each_forgery_changes_the_expected_part() {
        let unsigned = Forgery::Unsigned.apply("twilio", genuine()).unwrap();
        assert_eq!(unsigned.headers.len(), 1);
        let wrong = Forgery::WrongSignature.apply("twilio", genuine()).unwrap();
        assert_eq!(wrong.headers[1].1, "aaaaaAaa");
        let other = Forgery::OtherBody.apply("twilio", genuine()).unwrap();
        assert_eq!((other.headers, other.body), (genuine().headers, b"n=17".to_vec()));
        assert_eq!(Forgery::OldTimestamp.apply("twilio", genuine()), None);
        assert_eq!(Forgery::OldTimestamp.apply("telnyx", genuine()), Some(genuine()));
    }

    #[test]
    fn a_token_is_changed_in_its_signature() {
        assert_eq!(altered("Bearer abc.def.ghijklm"), "Bearer abc.def.ghijkAm");
        assert_eq!(altered("aaaaaaa,bbbbbAb"), "aaaaaAa,bbbbbBb");
    }
}

//! Callbacks that do not come from the carrier.
use super::wire::CallbackRequest;

/// How a callback is forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgery {
    /// Nothing is signed.
    Unsigned,
    /// The signature is one of something else.
    WrongSignature,
    /// The body was changed after it was signed.
    OtherBody,
    /// It is genuine, and was sent an hour ago.
    OldTimestamp,
}

impl Forgery {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unsigned, Self::WrongSignature, Self::OtherBody, Self::OldTimestamp];

    /// How far back in time the carrier has to sign it.
    pub(super) fn age_s(self) -> i64 {
        if self == Self::OldTimestamp { 3_600 } else { 0 }
    }

    /// Changes a genuine callback; `None` where this carrier's signature could not tell: Twilio and Plivo sign no
    /// time, and of a callback without a body none can be changed.
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
                // Another digit leaves a form a form and JSON JSON.
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

/// The value with one character of each of its signatures changed: there may be several, and of a token the last
/// part is the signature.
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
    fn each_forgery_changes_what_it_says() {
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
    fn a_token_is_altered_in_its_signature() {
        assert_eq!(altered("Bearer abc.def.ghijklm"), "Bearer abc.def.ghijkAm");
        assert_eq!(altered("aaaaaaa,bbbbbAb"), "aaaaaAa,bbbbbBb");
    }
}

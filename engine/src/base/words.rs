//! Closed lists of words: enums whose variants have one spelling each, on the wire and in the database.

/// An enum of words. [`crate::words!`] implements it.
pub trait Word: Copy + 'static {
    /// The enum's name, for messages about an unknown word.
    const LIST: &'static str;

    /// Parses a spelling; `None` for an unknown word.
    fn from_word(text: &str) -> Option<Self>;

    /// The spelling.
    fn word(self) -> &'static str;
}

/// Declares an enum of words, with `ALL`, `as_str` and `parse`. `json` before the name adds Serde and JSON Schema.
#[macro_export]
#[doc(hidden)]
macro_rules! words {
    ($(#[$about:meta])* json $name:ident { $($(#[$doc:meta])* $word:ident = $text:literal,)* }) => {
        $crate::words! {
            @declare
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            $(#[$about])*
            $name { $($(#[$doc])* #[serde(rename = $text)] $word = $text,)* }
        }
    };
    ($(#[$about:meta])* plain $name:ident { $($(#[$doc:meta])* $word:ident = $text:literal,)* }) => {
        $crate::words! { @declare $(#[$about])* $name { $($(#[$doc])* $word = $text,)* } }
    };
    (@declare $(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $word,)* }

        impl $name {
            /// Every word of the list.
            #[allow(dead_code, reason = "not every list is walked")]
            pub const ALL: &'static [Self] = &[$(Self::$word,)*];

            /// The spelling, on the wire and in the database.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(Self::$word => $text,)* } }

            /// The word with this spelling.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$word),)* _ => None }
            }
        }

        impl $crate::base::words::Word for $name {
            const LIST: &'static str = stringify!($name);

            fn from_word(text: &str) -> Option<Self> {
                Self::parse(text)
            }

            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

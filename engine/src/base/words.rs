//! Closed lists of words: an enum whose variants each have one spelling, on the wire and in the database.

/// A word of a closed list. [`crate::words!`] makes one.
pub trait Word: Copy + 'static {
    /// What the list is of, for messages about a word that is not in it.
    const LIST: &'static str;

    /// The word that is spelled like this; `None` when the list lacks it.
    fn from_word(text: &str) -> Option<Self>;

    /// The spelling.
    fn word(self) -> &'static str;
}

/// Declares an enum of words, with `ALL`, `as_str` and `parse`. In front of `enum`, `json` adds Serde and JSON Schema.
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

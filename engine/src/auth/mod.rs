//! Who is asking: API keys.

pub mod key;

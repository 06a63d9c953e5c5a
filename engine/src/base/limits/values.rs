//! Maps of texts that clients send: variables and metadata.

/// Variables of a conversation.
pub const VARIABLES_MAX: usize = 64;
/// Length of a variable's name.
pub const VARIABLE_NAME_CHARS_MAX: usize = 64;
/// Size of a variable's value.
pub const VARIABLE_VALUE_BYTES_MAX: usize = 1024;
/// Size of all variables, names and values together.
pub const VARIABLES_BYTES_MAX: usize = 16 * 1024;
/// Entries of metadata.
pub const METADATA_MAX: usize = 50;
/// Length of the name of an entry.
pub const METADATA_NAME_CHARS_MAX: usize = 64;
/// Size of the value of an entry.
pub const METADATA_VALUE_BYTES_MAX: usize = 512;
/// Size of all metadata, names and values together: a page has it of a thousand calls.
pub const METADATA_BYTES_MAX: usize = 4 * 1024;
/// Entries of metadata that one filter names.
pub const METADATA_FILTERS_MAX: usize = 5;
/// Test tokens with variables or metadata that are neither used nor expired.
pub const TEST_TOKENS_WITH_VALUES_MAX: i64 = 1_000;

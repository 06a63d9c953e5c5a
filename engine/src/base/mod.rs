//! Building blocks for every other folder: text, time, ids, JSON, limits, errors, and parsers of outside input.
pub mod api_key;
pub mod error;
pub mod field;
pub mod hash;
pub mod ids;
pub mod json;
pub mod limits;
pub mod page;
pub mod permits;
pub mod phone;
pub mod response;
pub mod setting;
pub mod targets;
pub mod text;
pub mod time;
pub mod tool_parameters;
pub mod words;

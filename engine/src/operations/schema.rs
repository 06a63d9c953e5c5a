//! JSON Schemas from the request and response types.
//!
//! They are derived natively only. A WebAssembly module embeds the documents that were derived from them when it was built
//! ([`crate::interfaces::generated`]). There, a type's schema is empty, so that neither it nor its generator is linked.
#[cfg(not(target_arch = "wasm32"))]
mod dialects;

use schemars::JsonSchema;
#[cfg(not(target_arch = "wasm32"))]
use schemars::{Schema, SchemaGenerator};

#[cfg(not(target_arch = "wasm32"))]
pub use self::dialects::{
    documented_request, for_mcp, normalise, request, request_generator, response_generator, without_max_bytes,
};

/// The most bytes of a text in UTF-8. JSON Schema can only limit characters, so published schemas have `maxLength` with the
/// same number and not this keyword.
pub const MAX_BYTES: &str = "x-max-bytes";

/// A type's schema, as a plain function so that the operation table stays static.
#[cfg(not(target_arch = "wasm32"))]
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A placeholder for a type's schema.
#[cfg(target_arch = "wasm32")]
pub type SchemaOf = fn();

/// The schema of `T`.
#[cfg(not(target_arch = "wasm32"))]
pub fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The placeholder for `T`'s schema.
#[cfg(target_arch = "wasm32")]
pub const fn of<T: JsonSchema>() {}

//! JSON Schemas from the request and response types.
//!
//! They are derived natively only. A module for WebAssembly is handed what comes of them, made when it was built
//! ([`crate::interfaces::documents`]): there a type's schema is nothing, so that neither it nor what makes it is linked.
#[cfg(not(target_arch = "wasm32"))]
mod dialects;

use schemars::JsonSchema;
#[cfg(not(target_arch = "wasm32"))]
use schemars::{Schema, SchemaGenerator};

#[cfg(not(target_arch = "wasm32"))]
pub use self::dialects::{for_mcp, normalise, request, response_generator};

/// A type's schema, as a plain function so that the operation table stays static.
#[cfg(not(target_arch = "wasm32"))]
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// That a type has a schema.
#[cfg(target_arch = "wasm32")]
pub type SchemaOf = fn();

/// The schema of `T`.
#[cfg(not(target_arch = "wasm32"))]
pub fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Stands where `T`'s schema is natively.
#[cfg(target_arch = "wasm32")]
pub const fn of<T: JsonSchema>() {}

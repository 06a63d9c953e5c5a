//! The service's own documents: schemas, tool list, OpenAPI document and page, all from the operation table.
//!
//! Native builds derive them on first use. A WebAssembly module embeds one text with the documents that a native engine
//! derived: the deriving code would be a tenth of the module, and its result differs only in the base URL.
#[cfg(not(target_arch = "wasm32"))]
mod build;
#[cfg(not(target_arch = "wasm32"))]
mod derive;
mod embedded;
mod openapi_3_0;
#[cfg(not(target_arch = "wasm32"))]
mod parts;

use serde_json::Value;

use self::embedded::Embedded;
#[cfg(not(target_arch = "wasm32"))]
pub use self::{build::build, derive::requests};
use crate::interfaces::docs;
#[cfg(not(target_arch = "wasm32"))]
use crate::interfaces::mcp::tools;
#[cfg(not(target_arch = "wasm32"))]
use crate::interfaces::openapi;
use crate::operations::operation::Operation;
use crate::storage::fault::Fault;

/// The schemas of a request to one operation.
#[derive(Debug, PartialEq)]
pub struct RequestSchemas {
    /// The query, an object schema.
    pub query: Option<Value>,
    /// The body, an object schema.
    pub body: Option<Value>,
}

/// Where the documents come from.
pub struct Documents(Source);

enum Source {
    #[cfg(not(target_arch = "wasm32"))]
    Derived,
    Embedded(Embedded),
}

impl Documents {
    /// Derives each document on first use.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn derived() -> Self {
        Self(Source::Derived)
    }

    /// Reads each document from a text that [`build()`] wrote, from the same sources as this engine.
    pub fn embedded(text: &'static str) -> Self {
        Self(Source::Embedded(Embedded::new(text)))
    }

    /// `/openapi.json`. Like the other documents, it fails only if the text was generated for another engine.
    pub fn openapi(&self, base_url: &str) -> Result<String, Fault> {
        match &self.0 {
            #[cfg(not(target_arch = "wasm32"))]
            Source::Derived => Ok(openapi::document(base_url).to_string()),
            Source::Embedded(embedded) => embedded.openapi(base_url),
        }
    }

    /// `/openapi-3.0.json`.
    pub fn openapi_3_0(&self, base_url: &str) -> Result<String, Fault> {
        Ok(openapi_3_0::from_3_1(self.openapi_value(base_url)?).to_string())
    }

    /// `/docs`.
    pub fn docs(&self, base_url: &str) -> Result<String, Fault> {
        Ok(docs::render(&self.openapi_value(base_url)?, base_url))
    }

    fn openapi_value(&self, base_url: &str) -> Result<Value, Fault> {
        match &self.0 {
            #[cfg(not(target_arch = "wasm32"))]
            Source::Derived => Ok(openapi::document(base_url)),
            Source::Embedded(embedded) => embedded.openapi_value(base_url),
        }
    }

    /// The result of `tools/list`, of MCP revisions up to 2025-11-25.
    pub fn tools(&self) -> Result<String, Fault> {
        match &self.0 {
            #[cfg(not(target_arch = "wasm32"))]
            Source::Derived => Ok(tools::list()),
            Source::Embedded(embedded) => embedded.tools(),
        }
    }

    /// The schemas of requests to `operation`.
    pub fn requests(&self, operation: &Operation) -> Result<RequestSchemas, Fault> {
        match &self.0 {
            #[cfg(not(target_arch = "wasm32"))]
            Source::Derived => Ok(requests(operation)),
            Source::Embedded(embedded) => embedded.requests(operation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::OPERATIONS;

    /// The text that a host embeds.
    fn embedded() -> Documents {
        Documents::embedded(Box::leak(build().unwrap().into_boxed_str()))
    }

    #[test]
    fn embedded_documents_equal_derived_ones() {
        let (built, derived) = (embedded(), Documents::derived());
        for url in ["https://voice.example.com", "http://127.0.0.1:8787", "https://a.example/\"\\\u{1}é"] {
            assert_eq!(built.openapi(url).unwrap(), derived.openapi(url).unwrap());
            assert_eq!(built.openapi_3_0(url).unwrap(), derived.openapi_3_0(url).unwrap());
            assert_eq!(built.docs(url).unwrap(), derived.docs(url).unwrap());
        }
        assert_eq!(built.tools().unwrap(), derived.tools().unwrap());
        for operation in OPERATIONS {
            let (built, derived) = (built.requests(operation).unwrap(), derived.requests(operation).unwrap());
            assert_eq!(built, derived, "{}", operation.id);
            // Equal objects can differ in the order of their fields, which determines the order in error messages.
            assert_eq!(format!("{built:?}"), format!("{derived:?}"), "{}", operation.id);
        }
    }

    #[test]
    fn building_is_deterministic() {
        assert_eq!(build().unwrap(), build().unwrap());
    }

    #[test]
    fn documents_of_another_engine_are_rejected() {
        let text = build().unwrap();
        let without_the_last_third: String = text.chars().take(text.chars().count() * 2 / 3).collect();
        for bad in ["".to_owned(), "\n\n".to_owned(), "openapi 0+9\n\n{}".to_owned(), without_the_last_third]
        {
            let built = Documents::embedded(Box::leak(bad.clone().into_boxed_str()));
            assert!(built.openapi("").is_err() || built.docs("").is_err() || built.tools().is_err(), "{bad}");
        }
        let nameless = text.replacen("\ncreate_assistant ", "\nmake_assistant ", 1);
        assert_ne!(nameless, text);
        let built = Documents::embedded(Box::leak(nameless.into_boxed_str()));
        assert!(OPERATIONS.iter().any(|operation| built.requests(operation).is_err()));
    }
}

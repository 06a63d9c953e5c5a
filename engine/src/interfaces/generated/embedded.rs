//! Reads the text that `build` wrote. Each request reads only what it needs.
//!
//! The text is an index, an empty line, and the documents split into parts. A line of the index is a name and positions
//! after the empty line, `START+BYTES` each: the parts of a document in their order, or an operation's query and body
//! schemas, `-` for none.
use serde_json::Value;

use crate::interfaces::generated::RequestSchemas;
use crate::operations::operation::Operation;
use crate::storage::fault::Fault;

/// The line of the OpenAPI document.
pub const OPENAPI: &str = "openapi";
/// The line of the tool list.
pub const TOOLS: &str = "tools";

/// The text.
pub struct Embedded {
    index: &'static str,
    parts: &'static str,
}

impl Embedded {
    /// Finds the index.
    pub fn new(text: &'static str) -> Self {
        let (index, parts) = text.split_once("\n\n").unwrap_or_default();
        Self { index, parts }
    }

    /// The OpenAPI document. The base URL is inserted after its first part.
    pub fn openapi(&self, base_url: &str) -> Result<String, Fault> {
        let mut places = self.line(OPENAPI)?;
        let before = places.next().and_then(|place| self.part(place)).ok_or_else(broken)?;
        let after = places.map(|place| self.part(place)).collect::<Option<String>>().ok_or_else(broken)?;
        Ok(format!("{before}{}{after}", Value::from(base_url)))
    }

    /// The same for inspection.
    pub fn openapi_value(&self, base_url: &str) -> Result<Value, Fault> {
        serde_json::from_str(&self.openapi(base_url)?).map_err(|_| broken())
    }

    /// The tool list.
    pub fn tools(&self) -> Result<String, Fault> {
        self.line(TOOLS)?.map(|place| self.part(place)).collect::<Option<String>>().ok_or_else(broken)
    }

    /// The schemas of one operation's requests.
    pub fn requests(&self, operation: &Operation) -> Result<RequestSchemas, Fault> {
        let mut places = self.line(operation.id)?;
        let mut schema = || match places.next() {
            Some("-") => Ok(None),
            Some(place) => {
                let text = self.part(place).ok_or_else(broken)?;
                serde_json::from_str(text).map(Some).map_err(|_| broken())
            }
            None => Err(broken()),
        };
        Ok(RequestSchemas { query: schema()?, body: schema()? })
    }

    /// The positions in the line of that name.
    fn line(&self, name: &str) -> Result<impl Iterator<Item = &'static str>, Fault> {
        self.index
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .map(|places| places.split(' '))
            .ok_or_else(broken)
    }

    fn part(&self, place: &str) -> Option<&'static str> {
        let (start, bytes) = place.split_once('+')?;
        let start: usize = start.parse().ok()?;
        self.parts.get(start..start.checked_add(bytes.parse().ok()?)?)
    }
}

fn broken() -> Fault {
    Fault::Bug("the documents were made for another engine".to_owned())
}

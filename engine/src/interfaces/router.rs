//! Finds the operation of a method and a path.
use http::Method;
use percent_encoding::percent_decode_str;

use crate::base::error::{Code, Error};
use crate::base::response::method_not_allowed;
use crate::operations::OPERATIONS;
use crate::operations::operation::Operation;

/// The operation of a request.
pub struct Route {
    /// The operation.
    pub operation: &'static Operation,
    /// The path's values, decoded, in order.
    pub path: Vec<String>,
}

/// All routes, built once from the operation table.
pub struct Router {
    paths: matchit::Router<Vec<&'static Operation>>,
}

impl Router {
    /// Builds the routes. Two operations with the same method and path, or conflicting paths, are a bug that the
    /// table's test detects.
    pub fn new() -> Result<Self, matchit::InsertError> {
        let mut paths: matchit::Router<Vec<&'static Operation>> = matchit::Router::new();
        for operation in OPERATIONS {
            match paths.at_mut(operation.path) {
                Ok(found) if found.value.iter().all(|other| other.path == operation.path) => {
                    found.value.push(operation);
                }
                _ => paths.insert(operation.path, vec![operation])?,
            }
        }
        Ok(Self { paths })
    }

    /// Finds the operation, or the error to answer. HEAD is answered as GET.
    pub fn find(&self, method: &Method, path: &str) -> Result<Route, Error> {
        let unknown = || {
            Error::new(
                Code::NotFound,
                "No such route. GET /docs lists all routes; none has a version prefix.",
            )
        };
        let found = self.paths.at(path).map_err(|_| unknown())?;
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let Some(operation) = found.value.iter().find(|operation| operation.method == *wanted) else {
            let allow: Vec<&str> = found.value.iter().map(|operation| operation.method.as_str()).collect();
            return Err(method_not_allowed(&allow.join(", ")));
        };
        let mut values = Vec::with_capacity(1);
        for (_, raw) in found.params.iter() {
            let value = percent_decode_str(raw).decode_utf8().map_err(|_| unknown())?;
            values.push(value.into_owned());
        }
        Ok(Route { operation, path: values })
    }
}

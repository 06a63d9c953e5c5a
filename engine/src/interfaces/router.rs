//! Finds the operation of a method and a path.
use http::Method;
use percent_encoding::percent_decode_str;

use crate::base::error::{Code, Error};
use crate::base::response::method_not_allowed;
use crate::operations::OPERATIONS;
use crate::operations::operation::Operation;

/// The operation of a request.
pub struct Route {
    /// The matched row of the operation table.
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

    /// The path of the operations that answer `path`, with the names of its values.
    pub fn pattern(&self, path: &str) -> Option<&'static str> {
        self.paths.at(path).ok()?.value.first().map(|operation| operation.path)
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
            let mut error = method_not_allowed(&allow.join(", "));
            if let Some(hint) = found.value.first().and_then(|one| elsewhere(wanted, one.path)) {
                error.message = format!("{} {hint}", error.message).into();
            }
            return Err(error);
        };
        let mut values = Vec::with_capacity(1);
        for (_, raw) in found.params.iter() {
            let value = percent_decode_str(raw).decode_utf8().map_err(|_| unknown())?;
            values.push(value.into_owned());
        }
        Ok(Route { operation, path: values })
    }
}

/// Where a method belongs that `path` does not have: some collections are written by `PUT` of an item, and some items
/// are read only as a list.
fn elsewhere(method: &Method, path: &str) -> Option<String> {
    let collection_of =
        |item: &'static str| item.strip_suffix('}')?.rsplit_once("/{").map(|(before, _)| before);
    let mut operations = OPERATIONS.iter();
    match *method {
        Method::POST | Method::PUT | Method::PATCH => {
            let put =
                operations.find(|one| one.method == Method::PUT && collection_of(one.path) == Some(path))?;
            Some(format!("To create or replace an item, use `PUT {}`.", put.path))
        }
        Method::GET => {
            let (collection, _) = path.strip_suffix('}')?.rsplit_once("/{")?;
            let list = operations.find(|one| one.method == Method::GET && one.path == collection)?;
            Some(format!("To read all items, use `GET {}`.", list.path))
        }
        _ => None,
    }
}

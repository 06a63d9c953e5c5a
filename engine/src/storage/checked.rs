//! Rows compared with the blobs that they name, for the operator.
use crate::ports::BlobKey;
use crate::services::Services;

/// Rows that are compared at a time.
pub(super) const PART_ROWS: u32 = 200;

/// What a comparison has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked<Place> {
    /// Rows that were compared.
    pub compared: u64,
    /// A sentence for each row whose blobs are missing or have another size.
    pub problems: Vec<String>,
    /// Where to continue; `None` at the end.
    pub next: Option<Place>,
}

impl<Place> Default for Checked<Place> {
    fn default() -> Self {
        Self { compared: 0, problems: Vec::new(), next: None }
    }
}

impl Services {
    /// What is wrong with a blob that should have so many `bytes`, or with `more` allowed at least so many.
    pub(super) async fn problem_of_blob(&self, key: &BlobKey, bytes: u64, more: bool) -> Option<String> {
        let problem = match self.ports().blobs.size(key).await {
            Ok(Some(found)) if found == bytes || (more && found > bytes) => return None,
            Ok(Some(found)) => format!("has {found} bytes instead of {bytes}"),
            Ok(None) => "is missing".to_owned(),
            Err(error) => format!("cannot be read: {}", error.0),
        };
        Some(format!("{} {problem}", key.as_str()))
    }
}

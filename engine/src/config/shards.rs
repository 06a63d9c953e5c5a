//! The databases beside the first one, by the names of their bindings.
use crate::base::limits::SHARDS_BESIDE_MAX;
use crate::base::setting::SettingError;

/// The further databases of workspaces.
pub const SHARDS: &str = "SIDETONE_SHARDS";

/// Reads the setting: names separated by commas. Without it, one database has everything.
pub(super) fn shards(value: Option<String>) -> Result<Vec<String>, SettingError> {
    let wrong = |message: String| Err(SettingError { name: SHARDS, message });
    let mut names: Vec<String> = Vec::new();
    for name in value.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty())
    {
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return wrong(format!("`{name}` is not the name of a binding, such as DB_2"));
        }
        if ["DB", "DIRECTORY"].contains(&name) {
            return wrong(format!("names only the databases beside DB and DIRECTORY, not {name}"));
        }
        if names.iter().any(|known| known == name) {
            return wrong(format!("names {name} twice"));
        }
        names.push(name.to_owned());
    }
    if names.len() > SHARDS_BESIDE_MAX {
        return wrong(format!("names more than {SHARDS_BESIDE_MAX} databases"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas() {
        let read = |text: &str| shards(Some(text.to_owned()));
        assert_eq!(read(" DB_2, DB_3 ,").unwrap(), ["DB_2", "DB_3"]);
        assert_eq!(shards(None).unwrap(), [""; 0]);
        for wrong in ["DB_2,DB_2", "DB-2", "DB 2", "DB,DB_2"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..=SHARDS_BESIDE_MAX).map(|n| format!("DB_{n}")).collect();
        assert!(read(&many.join(",")).is_err());
    }
}

//! Which workspace may use which telephone number, from the operator's settings.
use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::ids::{Id as _, WorkspaceId};
use crate::base::json;
use crate::base::phone::E164;
use crate::base::setting::SettingError;

/// The name of the setting.
pub const SETTING: &str = "SIDETONE_NUMBERS";

/// The numbers that the operator has given to workspaces. Without the setting, a number goes to the workspace that binds
/// it first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(Option<BTreeMap<String, WorkspaceId>>);

impl Grants {
    /// Parses `{"+14155550123": "ws_…", …}`.
    pub fn read(text: Option<String>) -> Result<Self, SettingError> {
        let Some(text) = text else { return Ok(Self::default()) };
        let wrong = |why: &str| SettingError {
            name: SETTING,
            message: format!(
                "must be such as {{\"+14155550123\": \"ws_…\"}}, the id of a workspace by telephone number: {why}"
            ),
        };
        // Strictly: of a number that is given twice, one of two workspaces would lose it unnoticed.
        let value = json::read(text.as_bytes()).map_err(|error| wrong(&error.to_string()))?;
        let Value::Object(entries) = value else { return Err(wrong("it is not an object")) };
        let mut numbers = BTreeMap::new();
        for (number, workspace) in entries {
            if E164::parse(&number).is_err() {
                return Err(wrong(&format!("`{number}` is not a telephone number")));
            }
            let workspace = workspace.as_str().map(WorkspaceId::from_stored);
            let workspace = workspace.filter(|id| id.to_bytes().is_some());
            let Some(workspace) = workspace else {
                return Err(wrong(&format!("{number} has no id of a workspace")));
            };
            numbers.insert(number, workspace);
        }
        Ok(Self(Some(numbers)))
    }

    /// Whether the operator decides about numbers.
    pub fn are_set(&self) -> bool {
        self.0.is_some()
    }

    /// Whether this workspace may answer calls to a number, and place calls from it.
    pub fn permit(&self, workspace_id: &WorkspaceId, number: &str) -> bool {
        self.0.as_ref().is_none_or(|numbers| numbers.get(number) == Some(workspace_id))
    }

    /// Whether the operator has given a number to another workspace.
    pub fn give_to_another(&self, workspace_id: &WorkspaceId, number: &str) -> bool {
        let owner = self.0.as_ref().and_then(|numbers| numbers.get(number));
        owner.is_some_and(|owner| owner != workspace_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "ws_01aryz6s41tsv4rrffq69g5faw";
    const OTHER: &str = "ws_01aryz6s41tsv4rrffq69g5fax";

    #[test]
    fn a_number_is_its_workspaces_alone_and_without_the_setting_anybodys() {
        let (one, other) = (WorkspaceId::from_stored(ONE), WorkspaceId::from_stored(OTHER));
        let grants = Grants::read(Some(format!(r#"{{"+14155550123": "{ONE}"}}"#))).unwrap();
        assert!(grants.are_set() && grants.permit(&one, "+14155550123"));
        assert!(!grants.permit(&other, "+14155550123") && !grants.permit(&one, "+14155550124"));
        assert!(grants.give_to_another(&other, "+14155550123"));
        for (workspace_id, number) in [(&one, "+14155550123"), (&other, "+14155550124")] {
            assert!(!grants.give_to_another(workspace_id, number), "{number}");
        }
        let nobody = Grants::read(Some("{}".to_owned())).unwrap();
        assert!(nobody.are_set() && !nobody.permit(&one, "+14155550123"));
        let unset = Grants::read(None).unwrap();
        assert!(!unset.are_set() && unset.permit(&one, "+14155550123"));
    }

    #[test]
    fn invalid_grants_are_rejected() {
        let wrong = |text: String| Grants::read(Some(text)).unwrap_err();
        for text in [
            "+14155550123",
            "[]",
            r#"{"+14155550123": 1}"#,
            r#"{"+14155550123": "Acme"}"#,
            r#"{"+14155550123": "asst_01aryz6s41tsv4rrffq69g5faw"}"#,
        ] {
            assert_eq!(wrong(text.to_owned()).name, SETTING, "{text}");
        }
        let message = wrong(format!(r#"{{"14155550123": "{ONE}"}}"#)).message;
        assert!(message.ends_with("`14155550123` is not a telephone number"), "{message}");
        let message = wrong(format!(r#"{{"+14155550123": "{ONE}", "+14155550123": "{OTHER}"}}"#)).message;
        assert!(message.contains("+14155550123"), "{message}");
    }
}

//! Whom the service asks or tells something outside.
use std::borrow::Cow;

use crate::base::ids::WorkspaceId;

crate::words! {
    /// What somebody outside does for the service.
    plain PartyKind {
        /// Answers as an assistant, a caller or a judge, or hears and speaks in one.
        Model = "model",
        /// Hears or speaks.
        Speech = "speech",
        /// Connects telephone calls.
        Carrier = "carrier",
        /// Does something for an assistant of a workspace.
        Tool = "tool",
        /// Is told the events of a workspace.
        Webhook = "webhook",
        /// Sends mails.
        Mail = "mail",
        /// Signs people in.
        SignIn = "sign_in",
    }
}

/// Whom a request or a WebSocket is for, so that a host can log and count what fails outside. Requests are not counted by
/// workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// What it does.
    pub kind: PartyKind,
    /// Its name in the operator's settings, one of few; `""` for what workspaces name.
    pub provider: Cow<'static, str>,
    /// The workspace whose tool or webhook it is.
    pub workspace: Option<WorkspaceId>,
}

impl Party {
    /// A provider of models.
    #[must_use]
    pub fn model(provider: &str) -> Self {
        Self::of_operator(PartyKind::Model, provider.to_owned())
    }

    /// A provider of voices or transcribers.
    #[must_use]
    pub fn speech(provider: &str) -> Self {
        Self::of_operator(PartyKind::Speech, provider.to_owned())
    }

    /// A party of the operator's settings.
    #[must_use]
    pub fn of_operator(kind: PartyKind, provider: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, provider: provider.into(), workspace: None }
    }

    /// A party that a workspace has named.
    #[must_use]
    pub fn of_workspace(kind: PartyKind, workspace: &WorkspaceId) -> Self {
        Self { kind, provider: Cow::Borrowed(""), workspace: Some(workspace.clone()) }
    }
}

//! Facts about the service as a whole: which server secret its data belongs to, and whether the first API key was shown.
use crate::base::error::{Code, Error};
use crate::base::hash::{hmac_sha256, sha256_hex};
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;

/// The fact that holds the fingerprint of the secret.
const SECRET: &str = "secret";
/// The fact that holds the id of a key that nobody has seen yet.
pub(super) const UNSEEN_KEY: &str = "unseen_key";

impl Services {
    /// Refuses a server secret other than the one that the data was written with. The first secret is remembered.
    pub(crate) async fn check_secret(&self) -> Result<(), Fault> {
        let known = self.fact(SECRET).await?;
        let ours = fingerprint(&self.config().secret);
        match known {
            None => self.accept_secret().await,
            Some(known) if known == ours => Ok(()),
            Some(_) => {
                let message = "SIDETONE_SECRET: the server secret is not the one that this database was used with, so no \
                               signature would be valid. Restore the secret (the file `secret` in the data folder, or the \
                               setting). To continue with this one, which changes the signing secrets of all tools and \
                               webhooks, run `sidetone secrets accept`";
                Err(Error::new(Code::Unavailable, message).into())
            }
        }
    }

    /// From now on the data belongs to the current secret.
    pub(crate) async fn accept_secret(&self) -> Result<(), Fault> {
        self.write([set(SECRET, &fingerprint(&self.config().secret))]).await?;
        Ok(())
    }

    pub(super) async fn fact(&self, name: &str) -> Result<Option<String>, Fault> {
        let [found] = self.read([select(name)]).await?;
        Ok(found.first().map(|row| row.text("value")).transpose()?)
    }
}

/// Reads the `value` of a fact; no row if it was never written.
fn select(name: &str) -> Statement {
    sql!("SELECT value FROM service_facts WHERE name = :name", name = name)
}

/// Writes a fact.
pub(crate) fn set(name: &str, value: &str) -> Statement {
    sql!(
        "INSERT OR REPLACE INTO service_facts (name, value) VALUES (:name, :value)",
        name = name,
        value = value
    )
}

/// Removes a fact.
pub(super) fn remove(name: &str) -> Statement {
    sql!("DELETE FROM service_facts WHERE name = :name", name = name)
}

/// Tells server secrets apart and reveals nothing about them.
pub fn fingerprint(secret: &str) -> String {
    sha256_hex(&hmac_sha256(secret.as_bytes(), b"the fingerprint of the server secret"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_secrets_apart() {
        let (one, two) = (fingerprint("a server secret"), fingerprint("a server secret "));
        assert!(one != two && one.len() == 64 && !one.contains("secret"));
    }
}

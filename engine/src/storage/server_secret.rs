//! Which server secret the data belongs to.
use crate::base::error::{Code, Error};
use crate::base::hash::{hmac_sha256, sha256_hex};
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::service_facts;

/// The fact that holds the fingerprint of the secret.
const SECRET: &str = "secret";

impl Services {
    /// Refuses a server secret other than the one that the data was written with. The first secret is remembered.
    pub(crate) async fn check_secret(&self) -> Result<(), Fault> {
        let known = self.fact(SECRET).await?;
        let ours = secret_fingerprint(&self.config().secret);
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
        self.write([service_facts::set(SECRET, &secret_fingerprint(&self.config().secret))]).await?;
        Ok(())
    }
}

/// Tells server secrets apart and reveals nothing about them.
pub fn secret_fingerprint(secret: &str) -> String {
    sha256_hex(&hmac_sha256(secret.as_bytes(), b"the fingerprint of the server secret"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_secrets_apart() {
        let (one, two) = (secret_fingerprint("a server secret"), secret_fingerprint("a server secret "));
        assert!(one != two && one.len() == 64 && !one.contains("secret"));
    }
}

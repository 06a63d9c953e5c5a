//! Public-key cryptography with ring, which TLS requires anyway.
use bytes::Bytes;
use ring::rand::SystemRandom;
use ring::signature::{
    ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use sidetone_engine::ports::{BoxFuture, Keys};

/// Signs and verifies with ring.
pub struct RingKeys;

impl Keys for RingKeys {
    fn verify_ed25519(
        &self,
        public_key: [u8; 32],
        message: Bytes,
        signature: [u8; 64],
    ) -> BoxFuture<'_, bool> {
        let valid = UnparsedPublicKey::new(&ED25519, public_key).verify(&message, &signature).is_ok();
        Box::pin(async move { valid })
    }

    fn verify_rs256(
        &self,
        modulus: &[u8],
        exponent: &[u8],
        message: Bytes,
        signature: &[u8],
    ) -> BoxFuture<'_, bool> {
        let key = RsaPublicKeyComponents { n: modulus, e: exponent };
        let valid = key.verify(&RSA_PKCS1_2048_8192_SHA256, &message, signature).is_ok();
        Box::pin(async move { valid })
    }

    fn sign_rs256(&self, pkcs8: &[u8], message: Bytes) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        let signed = sign(pkcs8, &message);
        Box::pin(async move { signed })
    }
}

fn sign(pkcs8: &[u8], message: &[u8]) -> Result<Vec<u8>, String> {
    let pair =
        RsaKeyPair::from_pkcs8(pkcs8).map_err(|error| format!("the private key cannot be used: {error}"))?;
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
        .map_err(|_| "the private key does not sign".to_owned())?;
    Ok(signature)
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    #[tokio::test]
    async fn a_signature_is_valid_for_its_key_and_message_only() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let key: [u8; 32] = pair.public_key().as_ref().try_into().unwrap();
        let signature: [u8; 64] = pair.sign(b"a message").as_ref().try_into().unwrap();
        let check = |message: &'static [u8], signature| {
            RingKeys.verify_ed25519(key, Bytes::from_static(message), signature)
        };
        assert!(check(b"a message", signature).await);
        assert!(!check(b"another", signature).await);
        let mut other = signature;
        other[0] ^= 1;
        assert!(!check(b"a message", other).await);
    }

    #[tokio::test]
    async fn an_invalid_key_is_an_error_that_does_not_quote_it() {
        let signed = RingKeys.sign_rs256(b"no key", Bytes::from_static(b"a message")).await;
        assert!(signed.is_err_and(|error| !error.contains("no key")));
    }
}

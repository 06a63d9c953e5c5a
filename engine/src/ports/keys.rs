//! Public-key cryptography. Every platform provides it in a form that is safe against timing attacks.
use bytes::Bytes;

use super::{BoxFuture, Port};

/// Signs and verifies with key pairs.
///
/// 1. The same key and message give the same signature.
/// 2. An unreadable key gives an error or an invalid signature, never a panic.
pub trait Keys: Port {
    /// Whether `signature` is a valid Ed25519 signature (RFC 8032) of `message` by this key.
    fn verify_ed25519(
        &self,
        public_key: [u8; 32],
        message: Bytes,
        signature: [u8; 64],
    ) -> BoxFuture<'_, bool>;

    /// Whether `signature` is a valid RSASSA-PKCS1-v1_5 signature with SHA-256 of `message` by the key with this modulus and
    /// this exponent (big-endian). Keys of less than 2048 bits are refused.
    fn verify_rs256(
        &self,
        modulus: &[u8],
        exponent: &[u8],
        message: Bytes,
        signature: &[u8],
    ) -> BoxFuture<'_, bool>;

    /// Signs `message` with RSASSA-PKCS1-v1_5 and SHA-256 (RFC 8017, 8.2); `pkcs8` is a private key in DER. The error is for
    /// logs and contains nothing of the key.
    fn sign_rs256(&self, pkcs8: &[u8], message: Bytes) -> BoxFuture<'_, Result<Vec<u8>, String>>;
}

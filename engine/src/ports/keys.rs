//! Public-key mathematics, which every platform brings along in a form that leaks nothing by its timing.
use bytes::Bytes;

use super::{BoxFuture, Port};

/// Signing and checking with key pairs.
///
/// 1. The same key and message give the same signature.
/// 2. A key that cannot be read is an error, or a signature that does not fit; never a panic.
pub trait Keys: Port {
    /// Whether an Ed25519 signature (RFC 8032) is this key's over `message`.
    fn verify_ed25519(
        &self,
        public_key: [u8; 32],
        message: Bytes,
        signature: [u8; 64],
    ) -> BoxFuture<'_, bool>;

    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, 8.2) over `message`; `pkcs8` is a private key in DER. The error is
    /// for logs and holds nothing of the key.
    fn sign_rs256(&self, pkcs8: &[u8], message: Bytes) -> BoxFuture<'_, Result<Vec<u8>, String>>;
}

//! Telnyx's signatures: `telnyx-signature-ed25519` is the base64 of an Ed25519 signature over `{telnyx-timestamp}|{body}`,
//! with the time in seconds. Source: the SDK's `lib/webhook_verification.py`. The host's keys verify it (`Check::Ed25519`).
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base::limits::CARRIER_SIGNATURE_AGE_MS_MAX;
use crate::carriers::callback::{Callback, Check, Forged};

/// Checks the signature and its age.
pub(super) fn check(callback: &Callback<'_>, public_key: [u8; 32]) -> Result<Check, Forged> {
    let signature = callback.header("telnyx-signature-ed25519").ok_or(Forged::Missing)?;
    let timestamp = callback.header("telnyx-timestamp").ok_or(Forged::Missing)?;
    let signature = STANDARD.decode(signature).map_err(|_| Forged::Malformed)?;
    let signature = signature.try_into().map_err(|_| Forged::Malformed)?;
    if timestamp.is_empty() || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Forged::Malformed);
    }
    let signed_s: i64 = timestamp.parse().map_err(|_| Forged::Malformed)?;
    let age_ms = callback.now_ms.saturating_sub(signed_s.saturating_mul(1_000));
    if age_ms.saturating_abs() > CARRIER_SIGNATURE_AGE_MS_MAX {
        return Err(Forged::Stale);
    }
    let message = [timestamp.as_bytes(), b"|", callback.body].concat();
    Ok(Check::Ed25519 { public_key, message, signature })
}

//! Which request a carrier's token came with first. Vonage signs the body and neither URL nor query, so whoever has read
//! a token could use it for another request until it expires. Only tokens with a valid signature are stored, and the sweep
//! deletes them once they are too old to be accepted.
use crate::carriers::CarrierName;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;

/// Binds a token, for all databases together, to a request, unless an earlier request has it; returns whether the token is
/// this request's. `fingerprint` distinguishes requests.
pub async fn bind(
    services: &Services,
    provider: CarrierName,
    token_id: &str,
    fingerprint: &str,
    expires_at_ms: i64,
) -> Result<bool, Fault> {
    // The update returns the row that an earlier request has written; an insert that does nothing returns none.
    let bind = sql!(
        "INSERT INTO carrier_tokens (provider, id, request, expires_at) VALUES (:provider, :id, :request, :expires_at)
         ON CONFLICT (provider, id) DO UPDATE SET expires_at = MAX(expires_at, excluded.expires_at)
         RETURNING request",
        provider = provider.as_str(),
        id = token_id,
        request = fingerprint,
        expires_at = expires_at_ms
    );
    let [bound] = services.write_common([bind]).await?;
    let row = bound.first().ok_or_else(|| Fault::Bug("a bound token is no row".to_owned()))?;
    Ok(row.str("request")? == fingerprint)
}

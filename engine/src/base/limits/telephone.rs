//! Telephone calls and their carriers.
use super::live::LIVE_LEASE_EXTEND_MS;
use super::live::LIVE_LEASE_MS;

/// Deadline of one request to a carrier.
pub const CARRIER_DEADLINE_MS: u64 = 15_000;
/// Time that a carrier has to close the media socket of a call that it transfers: some would end the call if we closed it
/// first.
pub const PHONE_TRANSFER_CLOSE_MS: i64 = 5_000;
/// Time that the line of a call gets that was handed over, from the answer of the other number on; in whole minutes.
pub const PHONE_TRANSFER_SECONDS_MAX: i64 = 7_200;
const _: () = assert!(PHONE_TRANSFER_SECONDS_MAX % 60 == 0);
/// How much later than that the line is hung up whose end the carrier has not reported: the other number rings first.
pub const PHONE_TRANSFER_MARGIN_MS: i64 = 120_000;
const _: () =
    assert!(PHONE_TRANSFER_MARGIN_MS > PHONE_RING_SECONDS as i64 * 1_000 + 2 * CARRIER_DEADLINE_MS as i64);
/// From the request on, a line that was handed over is hung up at the latest after this.
pub const PHONE_TRANSFER_MS_MAX: i64 = PHONE_TRANSFER_SECONDS_MAX * 1_000 + PHONE_TRANSFER_MARGIN_MS;
/// Time from the request on in which a carrier that tells it says what came of a transfer. After that, others talk on the line.
pub const PHONE_TRANSFER_RING_MS: i64 = 90_000;
const _: () = assert!(
    PHONE_TRANSFER_RING_MS > PHONE_RING_SECONDS as i64 * 1_000 + CARRIER_DEADLINE_MS as i64
        && PHONE_TRANSFER_RING_MS < PHONE_TRANSFER_MARGIN_MS
);
/// Time that a carrier has to open a media socket again, once it knows that nobody has taken the call.
pub const PHONE_TRANSFER_BACK_MS: i64 = 15_000;
/// How long a carrier may take for one command to open it, before the command is sent again.
pub const PHONE_TRANSFER_BACK_TRY_MS: u64 = 3_000;
const _: () = assert!(PHONE_TRANSFER_BACK_TRY_MS * 3 < PHONE_TRANSFER_BACK_MS.unsigned_abs());
/// How often a caller comes back whom nobody has taken. Then no transfer is asked for any more in this call.
pub const TRANSFER_RETURNS_MAX: u32 = 3;
/// The silence that stands for a caller who hears the other telephone ring, in pieces of this length.
pub const PHONE_AWAY_PIECE_MS: i64 = 100;
/// Size of a carrier's response.
pub const CARRIER_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Time a telephone rings before the carrier gives up.
pub const PHONE_RING_SECONDS: u32 = 60;
/// Duration of a telephone call.
pub const PHONE_CALL_SECONDS_MAX: i64 = 3_600;
/// A call without any sign of life (no callback, no media) for this long is ended with the status known so far. Longer than
/// the ring time.
pub const PHONE_CONNECT_MS: i64 = 180_000;
/// Time between the carrier accepting a call and the telephone ringing. Carriers place one or two calls a second and queue
/// the rest; at one a second, 1,800 queued calls fit.
pub const PHONE_QUEUE_MS: i64 = 1_800_000;
const _: () = assert!(PHONE_QUEUE_MS > PHONE_CONNECT_MS);
/// Time in which a carrier reports why a call was not connected, after it closed the media socket.
pub const PHONE_REPORT_WAIT_MS: i64 = 30_000;
/// Time in which audio must arrive once the call is answered and its media socket is open.
pub const PHONE_START_MS: i64 = 10_000;
/// A call whose carrier sends nothing at all for this long is over: while somebody is silent, carriers send silence.
pub const PHONE_DEAD_MS: i64 = 30_000;
/// Time in which a carrier reports why its media socket broke in the middle of a call.
pub const PHONE_BREAK_REPORT_MS: i64 = 3_000;
/// How often that report is looked for.
pub const PHONE_BREAK_LOOK_MS: u64 = 500;
/// Unreadable or misplaced carrier messages before the call is ended: five seconds of audio.
pub const PHONE_WRONG_MESSAGES_MAX: u32 = 250;
/// Audio sent to a carrier ahead of playback.
pub const PHONE_AHEAD_MS: i64 = 10_000;
/// How often the carrier is asked (by a mark) what it has played.
pub const PHONE_MARK_MS: i64 = 1_000;
/// The same for a browser, which answers cheaply: what was heard is known this exactly.
pub const BROWSER_MARK_MS: i64 = 100;
/// A line without a confirming mark counts as played this long after the end of its audio.
pub const PHONE_MARK_LATE_MS: i64 = 2_000;
/// Time for playing the remaining speech after a conversation. The lease is not extended during it.
pub const PHONE_FINAL_PLAYBACK_MS: i64 = 60_000;
const _: () = assert!(PHONE_FINAL_PLAYBACK_MS < LIVE_LEASE_MS - LIVE_LEASE_EXTEND_MS);
/// How much earlier than the carrier's limit (which counts from the answer) a conversation ends. Otherwise the carrier ends
/// it in the middle of a word, and the call log says that the person hung up.
pub const PHONE_END_MARGIN_MS: i64 = PHONE_FINAL_PLAYBACK_MS + 2 * PHONE_START_MS;
const _: () = assert!(PHONE_END_MARGIN_MS < PHONE_CALL_SECONDS_MAX * 1_000);
/// Incoming audio that may be ahead of real time.
pub const PHONE_BURST_MS: i64 = 10_000;
/// Keys pressed before a pause of this length become one line.
pub const PHONE_KEYS_MS: i64 = 2_000;
/// Keys in one such line.
pub const PHONE_KEYS_MAX: usize = 64;
/// Keys and pauses in one call of `send_keys`.
pub const SEND_KEYS_CHARS_MAX: usize = 32;
/// Length of the sentence that an assistant says when its model fails.
pub const APOLOGY_CHARS_MAX: usize = 300;
/// On a telephone, nothing heard for this long during the user's turn is a silence.
pub const PHONE_SILENCE_MS: i64 = 20_000;
/// Concurrent telephone calls of a workspace.
pub const CALLS_AT_ONCE_MAX: u64 = 10_000;
/// Largest difference between a carrier signature's time and the clock, in either direction.
pub const CARRIER_SIGNATURE_AGE_MS_MAX: i64 = 300_000;
/// Bytes of a carrier's error message that are passed on.
pub const CARRIER_MESSAGE_BYTES_MAX: usize = 500;
/// Audio in one message of a media socket.
pub const MEDIA_CHUNK_MS_MAX: usize = 3_000;
/// Shortest telephone call that is begun when little money is left: enough for a conversation before [`PHONE_END_MARGIN_MS`].
pub const PHONE_CALL_SECONDS_MIN: i64 = 180;
const _: () = assert!(PHONE_END_MARGIN_MS < PHONE_CALL_SECONDS_MIN * 1_000);
/// How long after the end of a deleted call its carrier may still report a price, which then counts.
pub const LATE_PRICE_MS: i64 = 24 * 60 * 60 * 1000;

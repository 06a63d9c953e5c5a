//! Providers of speech and their sockets.

/// Audio before the moment in which speech was noticed that belongs to an utterance.
pub const SPEECH_PRE_ROLL_MS: i64 = 500;
/// Audio without a final result that is sent again over a new connection.
pub const SPEECH_REPLAY_MS: i64 = 10_000;
/// The pauses before the attempts that follow a failed one, for connections and requests of speech providers. When the last
/// of these attempts fails too, the utterance or line has failed.
pub const SPEECH_RETRY_MS: [i64; 3] = [0, 500, 2_000];
/// Time in which a speech provider must open a connection.
pub const SPEECH_CONNECT_MS: i64 = 10_000;
/// Without anything else to send, a speech provider gets a sign of life this often.
pub const SPEECH_KEEP_ALIVE_MS: i64 = 5_000;
/// A connection that lasted this long was a good one: the attempts are counted anew.
pub const SPEECH_STEADY_MS: i64 = 10_000;
/// A provider that has not answered for this long after the end of an utterance is asked again over a new connection.
pub const SPEECH_RESULT_LATE_MS: i64 = 5_000;
/// Time for the last results at the end of a call.
pub const SPEECH_CLOSE_MS: i64 = 3_000;
/// Size of a message of a speech provider; a larger one ends the connection.
pub const SPEECH_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Unreadable messages of a speech provider in a row before its connection counts as broken.
pub const SPEECH_UNREADABLE_MAX: u32 = 20;
/// Size of the text of one utterance.
pub const SPEECH_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Utterances without a result; beyond that the oldest has failed.
pub const SPEECH_UTTERANCES_MAX: usize = 16;
/// Results of a transcriber that its driver has not taken yet.
pub const SPEECH_EVENTS_MAX: usize = 64;
/// Key terms sent to a speech provider.
pub const SPEECH_KEYTERMS_MAX: usize = 100;
/// Size of all key terms sent to a speech provider: they are part of an address, or of a model's prompt.
pub const SPEECH_KEYTERMS_BYTES_MAX: usize = 2_000;
/// What each key term counts beside its text: what stands between two of them.
pub const SPEECH_KEYTERM_BYTES_MORE: usize = 2;
/// Audio in one request for a transcript; longer utterances are cut.
pub const TRANSCRIPTION_MS_MAX: i64 = 30_000;
/// The last part of such a piece in which the quietest place to cut is looked for.
pub const TRANSCRIPTION_CUT_MS: i64 = 3_000;
/// Requests for transcripts of one person that wait or are under way; each holds up to 1 MB of audio.
pub const TRANSCRIPTIONS_MAX: usize = 6;
/// Deadline of one request for a transcript.
pub const TRANSCRIPTION_DEADLINE_MS: u64 = 10_000;
/// No attempt begins later than this after the first one.
pub const TRANSCRIPTION_TOTAL_MS: i64 = 15_000;
/// Time for opening an outgoing WebSocket.
pub const SOCKET_CONNECT_MS: u64 = 10_000;
/// Size of a message that arrives on an outgoing WebSocket.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Messages that wait to be sent on an outgoing WebSocket: half a minute of speech.
pub const CLIENT_QUEUE_BYTES_MAX: usize = 1024 * 1024;
/// Characters of the assistant's lines that are synthesized before any of them is heard: about twenty seconds. Audio that
/// waits takes memory, and is paid for even if nobody hears it.
pub const SPEECH_AHEAD_CHARS: usize = 350;
/// What is synthesized beyond that for each second that was heard: as many characters as the fastest voices speak.
pub const SPEECH_AHEAD_CHARS_PER_S: usize = 25;
/// While more audio than this waits to be played, no more text is synthesized.
pub const SPEECH_AHEAD_MS: i64 = 20_000;

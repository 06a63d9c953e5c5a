//! Example calls as the service stores them.
use bytes::Bytes;
use serde_json::json;
use sidetone_engine::base::ids::CallId;
use sidetone_engine::base::time::Timestamp;
use sidetone_engine::base::values::{Metadata, Variables};
use sidetone_engine::carriers::CarrierName;
use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::conversation::{CallFault, EndedReason, Outcome, Sentiment};
use sidetone_engine::speech::turn_times::TurnTimes;
use sidetone_engine::storage::calls::{
    Analysis, AnalysisMethod, CallStatus, Costs, Direction, EndedCall, NewCall, Source, Usage,
};

use crate::World;

/// 2026-01-01T09:00:00.123Z
pub const STARTED_AT_MS: i64 = 1_767_258_000_123;

/// What an assistant knows and answers in one sentence. It lasts so long that whoever interrupts it does so in time, on a busy
/// machine, too.
pub const LONG_ANSWER: &str =
    "On Saturday we open at ten and until then nobody is in the house by the lake but the gardener.";

/// An incoming call that has just started, in the workspace of `world`.
pub fn new_call(world: &World) -> NewCall {
    let engine = world.direct_access();
    NewCall {
        workspace_id: world.workspace_id(),
        id: engine.new_id(),
        assistant_id: engine.new_id(),
        assistant_revision: 3,
        source: Source::Inbound,
        direction: Direction::Inbound,
        status: CallStatus::Ringing,
        from: Some("+14155550123".to_owned()),
        to: Some("+14155550199".to_owned()),
        user_number: None,
        provider: Some(CarrierName::Twilio),
        carrier_call_id: Some("CA0123456789".to_owned()),
        model: "builtin/rules".to_owned(),
        voice: "builtin/tone".to_owned(),
        started_at: Timestamp::from_ms(STARTED_AT_MS),
        answered_at: None,
        simulation_run_id: None,
        snapshot: None,
        variables: Variables::default(),
        metadata: Metadata::default(),
    }
}

/// The id of a new call.
pub fn new_id(world: &World) -> CallId {
    world.direct_access().new_id()
}

/// A successful conversation, with a transcript row of every type that has its own fields.
pub fn ended_call() -> EndedCall {
    let row = TranscriptRow::new;
    let mut asked = row(2, TranscriptRole::ToolCall, "hours(…)".to_owned(), 3_000, 3_000);
    asked.tool_name = Some("hours".to_owned());
    asked.tool_call_id = Some("tc_1".to_owned());
    asked.arguments = Some(json!({"zone": "\u{1F30D}", "day": "Saturday", "n": 1.5}));
    let mut cut = row(3, TranscriptRole::Assistant, "We open at".to_owned(), 3_500, 4_100);
    cut.interrupted = true;
    cut.intended_text = Some("We open at \"nine\".".to_owned());
    EndedCall {
        answered_at: Some(Timestamp::from_ms(STARTED_AT_MS + 2_000)),
        ended_at: Timestamp::from_ms(STARTED_AT_MS + 64_000),
        duration_ms: 62_000,
        outcome: Outcome::Completed,
        ended_reason: Some(EndedReason::UserHungUp),
        fault: CallFault::None,
        transcript: vec![
            row(0, TranscriptRole::Assistant, "Velo Café, grüezi!".to_owned(), 0, 1_000),
            row(1, TranscriptRole::User, "When do you open\non Saturday?".to_owned(), 1_200, 2_900),
            asked,
            cut,
        ],
        turns: vec![TurnTimes {
            end_of_speech_ms: Some(2_900),
            transcript_ms: Some(2_980),
            model_first_ms: Some(2_990),
            speech_first_ms: Some(3_400),
            heard_first_ms: None,
        }],
        costs: Costs::of(10, 20, 30, 40),
        usage: Usage { llm_input_tokens: 500, llm_output_tokens: 60, llm_uncounted_answers: 1 },
    }
}

/// A recording of this many frames at 8 kHz; the caller is loud in every other second, the assistant never is.
pub fn recording(frames: u32) -> Bytes {
    const RATE_HZ: u32 = 8_000;
    let data_bytes = frames * 4;
    let mut file = Vec::with_capacity(44 + data_bytes as usize);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + data_bytes).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16_u32.to_le_bytes());
    for half in [1_u16, 2] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    file.extend_from_slice(&RATE_HZ.to_le_bytes());
    file.extend_from_slice(&(RATE_HZ * 4).to_le_bytes());
    for half in [4_u16, 16] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    file.extend_from_slice(b"data");
    file.extend_from_slice(&data_bytes.to_le_bytes());
    for frame in 0..frames {
        let caller = if (frame / RATE_HZ).is_multiple_of(2) { i16::MAX } else { (frame % 97) as i16 };
        file.extend_from_slice(&caller.to_le_bytes());
        file.extend_from_slice(&((frame % 251) as i16).to_le_bytes());
    }
    file.into()
}

/// The analysis of the ended call.
pub fn analysis() -> Analysis {
    Analysis {
        summary: "The caller asked for the opening hours.".to_owned(),
        sentiment: Sentiment::Positive,
        outcome: None,
        method: AnalysisMethod::Rule,
    }
}

/// The SHA-256 of a file, in hexadecimal.
#[must_use]
pub fn sha256(file: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect()
}

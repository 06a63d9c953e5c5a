//! Decides whether one more conversation may start in this process. Workspaces share its places and its memory fairly:
//! one alone may use most of both, and one that has nothing yet finds room. Telephone calls come first, because a caller
//! cannot try again later as a browser test can.
use crate::base::error::Error;
use crate::base::fair_pool::{Kept, Share};
use crate::base::ids::WorkspaceId;
use crate::base::limits::{
    CONVERSATION_MEMORY_BYTES, KEPT_FOR_PHONES_PERCENT, LIVE_SESSIONS_MAX, MEMORY_KEPT_FOR_LIVE_PERCENT,
    REALTIME_AUDIO_MS_MAX, TRANSCRIPT_INCLUDED_BYTES, TRANSCRIPT_MEMORY_PER_BYTE,
};
use crate::base::time::Timestamp;
use crate::conversation::{FilledTexts, Values};
use crate::services::Services;
use crate::speech::audio::Rate;
use crate::speech::recorder::FRAME_BYTES;
use crate::storage::calls::NewCall;
use crate::storage::recordings;
use crate::storage::snapshots::AssistantSnapshot;

/// What starts a conversation, and so what it leaves to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starter {
    Browser,
    Phone,
    Run,
}

impl Starter {
    /// How much of this memory stays free. The first run of a workspace is not behind the conversations of others.
    fn kept_memory(self, memory_bytes: u64) -> Kept {
        let percent = |percent| memory_bytes / 100 * percent;
        match self {
            Self::Browser => percent(KEPT_FOR_PHONES_PERCENT).into(),
            Self::Phone => 0.into(),
            Self::Run => Kept {
                by_holder: percent(MEMORY_KEPT_FOR_LIVE_PERCENT),
                by_newcomer: percent(KEPT_FOR_PHONES_PERCENT),
            },
        }
    }

    /// How many places stay free.
    const fn kept_places(self) -> u64 {
        match self {
            Self::Browser => LIVE_SESSIONS_MAX * KEPT_FOR_PHONES_PERCENT / 100,
            Self::Phone | Self::Run => 0,
        }
    }
}

/// Which audio a conversation holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldAudio {
    pub(crate) is_recorded: bool,
    /// Whether its assistant is a model that hears and speaks.
    pub(crate) is_realtime: bool,
}

/// What a conversation holds of this process, beside its assistant. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Admission {
    _place: Option<Share<WorkspaceId>>,
    memory: Share<WorkspaceId>,
}

impl Admission {
    /// Memory beside that of the conversation, which others can share; `None` while others have it.
    pub(crate) fn another(&self, bytes: u64) -> Option<Share<WorkspaceId>> {
        self.memory.another(bytes)
    }

    /// Whether the conversation may take so much more memory, which then counts for it.
    #[must_use]
    pub(crate) fn fits(&mut self, bytes: u64) -> bool {
        bytes == 0 || self.memory.grow(bytes)
    }

    /// Whether the conversation may have this audio at this rate, which then counts for it: of a recording, a segment that is
    /// being made and one that is being written; of a model that hears and speaks an answer, because it comes faster than it is
    /// played.
    #[must_use]
    pub(crate) fn fits_audio(&mut self, services: &Services, rate: Rate, audio: HeldAudio) -> bool {
        let samples_in = |ms: i64| ms.unsigned_abs() * u64::from(rate.hz()) / 1_000;
        let recorded = match audio.is_recorded {
            true => samples_in(recordings::segment_ms(services) * 2) * FRAME_BYTES,
            false => 0,
        };
        let answered = match audio.is_realtime {
            true => samples_in(REALTIME_AUDIO_MS_MAX) * size_of::<i16>() as u64,
            false => 0,
        };
        self.fits(recorded + answered)
    }

    /// The texts of the assistant in this call, with its variables and metadata, if there is memory for them.
    #[must_use]
    pub(crate) fn filled(
        &mut self,
        assistant: &AssistantSnapshot,
        call: &NewCall,
        now_ms: i64,
        meets_machines: bool,
    ) -> Option<FilledTexts> {
        let (now, caller_number) = (Timestamp::from_ms(now_ms), call.other_number());
        let values = Values { variables: &call.variables, now, caller_number };
        let texts = FilledTexts::of(assistant, &values, meets_machines);
        let as_stored = assistant.instructions.len() + assistant.first_message.len();
        let more = texts.bytes().saturating_sub(as_stored) + call.variables.bytes() + call.metadata.bytes();
        self.fits(more as u64).then_some(texts)
    }

    /// Counts what the conversation grows by.
    pub(crate) fn growth(&self) -> Growth {
        Growth(self.memory.nothing())
    }
}

/// The memory of a conversation that has grown. It is counted as it is: a conversation under way is not refused any more.
#[derive(Debug)]
pub(crate) struct Growth(Share<WorkspaceId>);

impl Growth {
    /// Counts a transcript of this size.
    pub(crate) fn count(&mut self, transcript_bytes: usize) {
        let beyond = (transcript_bytes as u64).saturating_sub(TRANSCRIPT_INCLUDED_BYTES);
        let memory = beyond.saturating_mul(TRANSCRIPT_MEMORY_PER_BYTE);
        self.0.add(memory.saturating_sub(self.0.amount()));
    }
}

/// Admits one conversation; `None` while others have what it needs.
pub(crate) fn admit(services: &Services, workspace_id: &WorkspaceId, starter: Starter) -> Option<Admission> {
    let place = match starter {
        // The places of the job queue limit runs.
        Starter::Run => None,
        Starter::Browser | Starter::Phone => {
            Some(services.live_places().take(workspace_id, 1, starter.kept_places())?)
        }
    };
    let kept = starter.kept_memory(services.config().memory_bytes);
    let memory = services.memory().take(workspace_id, CONVERSATION_MEMORY_BYTES, kept)?;
    Some(Admission { _place: place, memory })
}

/// The refusal of a telephone call while this process is late.
pub(crate) fn late() -> Error {
    not_now(LATE)
}

const LATE: &str = "The server is overloaded: the audio of current calls is late, so it starts no new ones.";

/// Why the server takes no telephone call now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overload {
    /// The audio of its conversations is late.
    Late,
    /// Too many are open.
    Full,
}

impl Overload {
    /// In words, for the transcript.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Late => LATE,
            Self::Full => "Too many conversations are open on the server at the moment.",
        }
    }
}

/// Why no telephone call should be answered now; `None` if one can be. What it needs is taken when its media connect.
pub(crate) fn overload(services: &Services, workspace_id: &WorkspaceId) -> Option<Overload> {
    // First, because what is admitted counts as a conversation that another one could hurt.
    if services.is_late() {
        return Some(Overload::Late);
    }
    admit(services, workspace_id, Starter::Phone).is_none().then_some(Overload::Full)
}

/// The refusal of a browser test.
pub(crate) fn no_room() -> Error {
    not_now("Too many conversations are open at the moment. Try again soon; the token is still valid.")
}

/// The refusal of a spoken browser test while this process is late.
pub(crate) fn late_for_a_test() -> Error {
    not_now(format!("{LATE} Try again soon; the token is still valid."))
}

fn not_now(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::unavailable(message, 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::fair_pool::SharedPool;
    use crate::base::ids::Id;
    use crate::base::limits;
    use crate::base::tool_parameters::TOOL_PARAMETERS_BYTES_MAX;
    use crate::models::AssistantInUse;
    use crate::services::memory_pool;
    use crate::simulation::evaluation::{EVALUATION_INCLUDES_CHARS_MAX, EVALUATIONS_PER_SCENARIO_MAX};

    /// Otherwise a run would wait for ever.
    #[test]
    fn the_largest_assistant_fits_the_least_memory() {
        const BYTES_PER_CHAR: u64 = 4;
        let bytes = limits::MEMORY_MB_MIN * 1024 * 1024;
        let tools = limits::TOOLS_PER_ASSISTANT_MAX as u64;
        let knowledge = limits::KNOWLEDGE_PER_ASSISTANT_BYTES_MAX.unsigned_abs();
        let index =
            knowledge * limits::KNOWLEDGE_INDEX_MEMORY_PER_BYTE + tools * limits::TOOL_INDEX_MEMORY_BYTES;
        let tool = TOOL_PARAMETERS_BYTES_MAX as u64 + limits::TOOL_DESCRIPTION_CHARS_MAX * BYTES_PER_CHAR;
        let live = tools * tool + knowledge + limits::INSTRUCTIONS_BYTES_MAX as u64;
        let evaluations = (EVALUATIONS_PER_SCENARIO_MAX * EVALUATION_INCLUDES_CHARS_MAX) as u64;
        let simulation = 2 * limits::INSTRUCTIONS_BYTES_MAX as u64 + evaluations * BYTES_PER_CHAR;
        let simulation = simulation * limits::SIMULATION_MEMORY_PER_BYTE;
        let run = limits::SNAPSHOT_BYTES_MAX as u64;
        for (starter, text, simulation) in
            [(Starter::Browser, live, 0), (Starter::Phone, live, 0), (Starter::Run, run, simulation)]
        {
            let loading = AssistantInUse::memory_of_text(text);
            for (what, more) in [("rules", (text + index).saturating_sub(loading)), ("provider", text)] {
                let mut pool = memory_pool(bytes);
                let workspace = WorkspaceId::from_stored("ws_1");
                for amount in [CONVERSATION_MEMORY_BYTES, simulation, loading, more] {
                    let kept = starter.kept_memory(bytes).by_holder;
                    let fits = pool.take(&workspace, amount, kept);
                    assert!(fits, "{starter:?}, {what}: {amount} of {}", pool.free());
                }
            }
        }
    }

    /// Some workspaces hold as many conversations as they can get: the first conversation or run of another one, with an
    /// assistant of ordinary size, still begins.
    #[test]
    fn a_newcomer_finds_memory_for_a_conversation_and_for_its_assistant() {
        const MEMORY: u64 = 64 * 1024 * 1024;
        const ASSISTANT: u64 = 1024 * 1024;
        for starter in [Starter::Browser, Starter::Phone, Starter::Run] {
            let pool = SharedPool::new(memory_pool(MEMORY));
            let mut held = Vec::new();
            for greedy in 0..4 {
                let greedy = WorkspaceId::from_stored(format!("ws_greedy{greedy}"));
                let kept = Starter::Browser.kept_memory(MEMORY);
                let take = || pool.take(&greedy, CONVERSATION_MEMORY_BYTES, kept);
                held.extend(std::iter::from_fn(take));
            }
            let newcomer = WorkspaceId::from_stored("ws_newcomer");
            let first = pool.take(&newcomer, CONVERSATION_MEMORY_BYTES, starter.kept_memory(MEMORY));
            let first = first.unwrap_or_else(|| panic!("{starter:?}: {} free", pool.free()));
            assert!(first.another(ASSISTANT).is_some(), "{starter:?}: {} free", pool.free());
        }
    }

    #[test]
    fn a_long_transcript_counts() {
        let pool = SharedPool::new(memory_pool(1_000_000));
        let memory = pool.take(&WorkspaceId::from_stored("ws_1"), 300_000, 0).unwrap();
        let admission = Admission { _place: None, memory };
        let mut growth = admission.growth();
        growth.count(10_000);
        assert_eq!(pool.free(), 700_000);
        growth.count(132_768);
        growth.count(132_768);
        assert_eq!(pool.free(), 300_000);
        drop((growth, admission));
        assert_eq!(pool.free(), 1_000_000);
    }
}

//! What speech has cost, while it goes on.
use super::Drive;
use crate::config::Talking;
use crate::live::peer::Peer;
use crate::storage::cost::Cost;

impl Drive<'_> {
    /// Whether speech has cost more than the conversation may cost.
    pub(super) fn has_overspent(&self) -> bool {
        let has_speech = self.spent.stt_microusd + self.spent.tts_microusd > 0;
        (has_speech || self.session.realtime.is_some() && self.spent.microusd > 0)
            && self.cost_limit().left_microusd(self.spent) <= 0
    }

    /// Takes over what speech costs by now.
    pub(super) fn count_speech(&mut self, peer: &dyn Peer) {
        if let Some(realtime) = &self.session.realtime {
            let (usage, microusd) = realtime.take_cost();
            self.spent.add(Cost::of_tokens(usage, microusd));
        }
        let (heard_ms, spoken_chars) = peer.speech_billed();
        if heard_ms > 0 || !spoken_chars.is_empty() {
            let (speech, assistant) = (&self.session.services.config().speech, &self.session.assistant);
            let talking = Talking::from(&***assistant);
            let transcriber = self.session.services.config().transcriber_of(talking);
            let stt = transcriber.map_or(0, |name| speech.transcription_microusd(&name, heard_ms));
            self.spent.set_speech(stt, speech.speech_microusd(&assistant.voice, &spoken_chars));
        }
    }
}

//! Speaks lines, whole or while they are written.
use super::{Mouth, Voice};
use crate::speech::spoken_line::SpokenLine;
use crate::speech::synthesizer::LineId;
use crate::speech::tone::ToneEncoder;

/// A line of which more text may come.
#[derive(Debug)]
pub(super) struct OpenLine {
    pub(super) id: LineId,
    /// Its text, if it is spoken in the tone code.
    tone_text: String,
    /// It was interrupted, or its voice has failed.
    pub(super) is_cut: bool,
}

/// The end of what was spoken, for the comparison with echo.
const SPOKEN_TEXT_BYTES_MAX: usize = 2_000;

impl Voice {
    /// Speaks a line after the earlier ones, or the rest of the line that is open.
    pub fn say(&mut self, now_ms: i64, text: &str) {
        self.say_part(now_ms, text);
        let Some(open) = self.open_line.take().filter(|open| !open.is_cut) else { return };
        match &mut self.mouth {
            Mouth::Tone => {
                self.player.begin_line(open.id);
                self.player.add_tones(open.id, ToneEncoder::symbols(&open.tone_text));
                self.player.finish_line(open.id);
                self.turn_clock.audio_arrived(open.id, now_ms);
            }
            Mouth::Speech(synthesizer) => match self.lines.iter_mut().find(|line| line.id == open.id) {
                // "…" or an emoji: nothing to hear, and no fault of the voice.
                Some(line) if !line.has_words() => {
                    line.is_wordless = true;
                    self.given.drop_line(open.id);
                    synthesizer.cancel(now_ms, open.id);
                }
                _ if synthesizer.speaks_its_own_text() => synthesizer.finish(now_ms, open.id),
                _ => self.given.end(open.id),
            },
        }
        self.synthesized(now_ms);
    }

    /// Speaks a part of a line, up to the end of a sentence; [`say`](Self::say) completes the line. What is said of a line
    /// after it was cut is dropped.
    pub fn say_part(&mut self, now_ms: i64, text: &str) {
        if self.lines.is_empty() {
            self.begin_giving(now_ms);
        }
        let open = self.open_line.get_or_insert_with(|| {
            self.last_line += 1;
            self.turn_clock.line_said(self.last_line);
            self.lines.push_back(SpokenLine::new(self.last_line));
            self.spoken_text.push(' ');
            OpenLine { id: self.last_line, tone_text: String::new(), is_cut: false }
        });
        if open.is_cut {
            return;
        }
        self.spoken_text.push_str(text);
        let surplus = self.spoken_text.len().saturating_sub(SPOKEN_TEXT_BYTES_MAX);
        self.spoken_text.drain(..self.spoken_text.ceil_char_boundary(surplus));
        match &mut self.mouth {
            // A message of the tone code is sent as a whole.
            Mouth::Tone => open.tone_text.push_str(text),
            Mouth::Speech(synthesizer) => {
                let Some(line) = self.lines.iter_mut().find(|line| line.id == open.id) else { return };
                if synthesizer.speaks_its_own_text() {
                    line.add_even_text(text);
                    synthesizer.speak(now_ms, open.id, text);
                    return self.synthesized(now_ms);
                }
                let texts = line.add_text(text, &self.turn_taking.language);
                for spoken in texts.filter(|spoken| !spoken.trim().is_empty()) {
                    self.given.text(open.id, spoken);
                }
            }
        }
        self.synthesized(now_ms);
    }

    /// Whether the open line was cut, so that nothing more of it is spoken.
    #[must_use]
    pub fn is_open_line_cut(&self) -> bool {
        self.open_line.as_ref().is_some_and(|open| open.is_cut)
    }
}

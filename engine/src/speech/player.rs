//! Plays the assistant's lines on a line: frames are sent ahead of time, marks say how much was played, and playback can
//! pause and go on.
use std::collections::VecDeque;

use super::audio::{FRAME_MS, Rate};
use super::dtmf::KeyFrame;
use super::playback::Playback;
use super::playback_schedule::PlaybackSchedule;
use super::synthesizer::LineId;
use super::tone::ToneSymbol;
use crate::base::limits::{PHONE_AHEAD_MS, PHONE_MARK_LATE_MS, PHONE_MARK_MS};

/// An output to the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayerOutput {
    /// One frame to play.
    Audio(Vec<i16>),
    /// Requests a mark with this number: the line returns it when all earlier audio was played.
    Mark(u64),
    /// Discards audio that was not played.
    Clear,
}

/// How far the playback of a line has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineProgress {
    /// The line.
    pub line: LineId,
    /// How much of it was heard.
    pub heard_ms: i64,
    /// How much audio it has so far.
    pub audio_ms: i64,
    /// Whether that is all of its audio.
    pub is_complete: bool,
    /// When the last frame that was heard was over; as in the recording.
    pub heard_until_ms: Option<i64>,
}

/// Audio that was heard, for a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardFrame {
    /// When its playback ended, as planned from the sending and corrected by the marks.
    pub until_ms: i64,
    /// Its samples.
    pub samples: Vec<i16>,
}

/// What a frame sounds like.
#[derive(Debug)]
enum Sound {
    Samples(Vec<i16>),
    /// Becomes samples when it is sent: a line of the tone code may have minutes of audio that nobody has heard yet.
    Tone(ToneSymbol),
    /// Likewise.
    Key(KeyFrame),
}

/// Audio that was not heard yet.
#[derive(Debug)]
struct Frame {
    sound: Sound,
    /// When its playback begins, once it was sent.
    from_ms: i64,
}

impl Frame {
    const fn new(sound: Sound) -> Self {
        Self { sound, from_ms: 0 }
    }

    fn samples(&self, rate: Rate) -> Vec<i16> {
        match &self.sound {
            Sound::Samples(samples) => samples.clone(),
            Sound::Tone(symbol) => symbol.samples(rate),
            Sound::Key(frame) => frame.samples(rate),
        }
    }

    fn into_samples(self, rate: Rate) -> Vec<i16> {
        match self.sound {
            Sound::Samples(samples) => samples,
            Sound::Tone(symbol) => symbol.samples(rate),
            Sound::Key(frame) => frame.samples(rate),
        }
    }
}

/// A line whose playback is not over. Its frames are counted from the first frame ever queued.
#[derive(Debug, Clone, Copy)]
struct Line {
    id: LineId,
    from: i64,
    until: i64,
    is_complete: bool,
    /// Whether it is keys that are pressed. Nothing pauses or cuts them, and later lines are sent once they are over: a tone
    /// with a gap is two keys.
    is_keys: bool,
    /// When its first frame began to be heard, once that frame was heard.
    began_at_ms: Option<i64>,
    /// When its last frame that was heard was over.
    heard_until_ms: Option<i64>,
}

/// Plays lines one after the other. After each call, drain [`poll_output`](Self::poll_output), then wait no longer than
/// [`poll_timeout`](Self::poll_timeout) and call [`tick`](Self::tick).
pub struct Player {
    rate: Rate,
    lines: VecDeque<Line>,
    /// The audio that was not heard yet, in frames; the first `sent` of them were sent.
    unheard: VecDeque<Frame>,
    sent: usize,
    /// The number of frames before `unheard`.
    heard: i64,
    /// What playback said when that number was last corrected.
    heard_at_ms: i64,
    heard_frames_then: i64,
    /// When the last heard frame was over.
    heard_until_ms: i64,
    /// Samples of the last line that do not fill a frame yet.
    partial: Vec<i16>,
    playback: Playback,
    schedule: PlaybackSchedule,
    must_clear: bool,
    is_paused: bool,
    /// How often a mark is requested.
    mark_ms: i64,
    /// Audio sent since the last mark.
    unmarked_ms: i64,
    /// When audio was last sent, or a mark last returned.
    progress_at_ms: i64,
    /// When waiting frames are sent next.
    send_at_ms: Option<i64>,
    /// Whether a line may be over: a mark was returned, or a line has become complete.
    has_news: bool,
    /// Frames that were heard and not taken.
    recorded: VecDeque<HeardFrame>,
    is_recorded: bool,
}

impl Player {
    /// Nothing to play yet. With `is_recorded`, take what was heard with [`take_heard`](Self::take_heard).
    #[must_use]
    pub fn new(rate: Rate, is_recorded: bool) -> Self {
        Self {
            rate,
            lines: VecDeque::new(),
            unheard: VecDeque::new(),
            sent: 0,
            heard: 0,
            heard_at_ms: 0,
            heard_frames_then: 0,
            heard_until_ms: i64::MIN,
            partial: Vec::new(),
            playback: Playback::default(),
            schedule: PlaybackSchedule::default(),
            must_clear: false,
            is_paused: false,
            mark_ms: PHONE_MARK_MS,
            unmarked_ms: 0,
            progress_at_ms: 0,
            send_at_ms: None,
            has_news: false,
            recorded: VecDeque::new(),
            is_recorded,
        }
    }

    /// Requests a mark after this much audio: more of them say more exactly what was heard.
    pub const fn mark_every(&mut self, ms: i64) {
        self.mark_ms = ms;
    }

    /// Adds a line after the others. Lines get their audio in this order.
    pub fn begin_line(&mut self, line: LineId) {
        let from = self.queued_until();
        self.lines.push_back(Line {
            id: line,
            from,
            until: from,
            is_complete: false,
            is_keys: false,
            began_at_ms: None,
            heard_until_ms: None,
        });
    }

    /// Adds a message of the tone code, or a part of one, to the last line that was begun.
    pub fn add_tones(&mut self, line: LineId, symbols: impl IntoIterator<Item = ToneSymbol>) {
        if self.is_open(line) {
            self.unheard.extend(symbols.into_iter().map(|symbol| Frame::new(Sound::Tone(symbol))));
            self.extend_last_line();
        }
    }

    /// Adds keys, as a line that is complete. Only when there is no other line.
    pub fn add_keys(&mut self, line: LineId, frames: impl Iterator<Item = KeyFrame>) {
        self.begin_line(line);
        self.unheard.extend(frames.map(|frame| Frame::new(Sound::Key(frame))));
        self.extend_last_line();
        if let Some(line) = self.lines.back_mut() {
            (line.is_keys, line.is_complete) = (true, true);
        }
    }

    /// Whether there is nothing to play.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.lines.is_empty()
    }

    /// The keys that are being pressed.
    fn keys(&self) -> Option<&Line> {
        self.lines.front().filter(|line| line.is_keys)
    }

    /// Whether audio may be added to this line.
    fn is_open(&self, line: LineId) -> bool {
        self.lines.back().is_some_and(|last| last.id == line && !last.is_complete)
    }

    /// Adds audio to the last line that was begun.
    pub fn add_audio(&mut self, line: LineId, samples: &[i16]) {
        if !self.is_open(line) {
            return;
        }
        self.partial.extend_from_slice(samples);
        let whole = self.partial.len() - self.partial.len() % self.rate.frame_samples();
        let frames = self.partial.drain(..whole).collect::<Vec<_>>();
        let frames = frames.chunks_exact(self.rate.frame_samples());
        self.unheard.extend(frames.map(|samples| Frame::new(Sound::Samples(samples.to_vec()))));
        self.extend_last_line();
    }

    /// Forgets the samples of the last line that do not fill a frame.
    pub fn drop_partial(&mut self) {
        self.partial.clear();
    }

    /// The line has no more audio. Its last frame is filled with silence.
    pub fn finish_line(&mut self, line: LineId) {
        let Some(last) = self.lines.iter_mut().find(|known| known.id == line) else { return };
        last.is_complete = true;
        self.has_news = true;
        if !self.partial.is_empty() {
            let mut frame = std::mem::take(&mut self.partial);
            frame.resize(self.rate.frame_samples(), 0);
            self.unheard.push_back(Frame::new(Sound::Samples(frame)));
            self.extend_last_line();
        }
    }

    /// Whether what was heard is kept for [`take_heard`](Self::take_heard).
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// A mark was returned.
    pub fn played(&mut self, now_ms: i64, mark: u64) {
        let moved_ms = self.schedule.played(now_ms, mark);
        for frame in self.unheard.iter_mut().take(self.sent) {
            frame.from_ms += moved_ms;
        }
        self.playback.played(now_ms, mark);
        self.progress_at_ms = now_ms;
        self.has_news = true;
        self.advance(now_ms);
    }

    /// Treats all sent audio as played when the line returns no marks, or has lost them: otherwise playback would never end.
    pub fn tick(&mut self, now_ms: i64) {
        if self.awaits_marks() && now_ms >= self.marks_are_late_at_ms() {
            self.mark_sent(now_ms);
            self.playback.all_played(now_ms);
            self.schedule.cleared(now_ms);
            self.progress_at_ms = now_ms;
            self.has_news = true;
        }
        self.advance(now_ms);
    }

    /// Stops playback at once; [`resume`](Self::resume) goes on where it stopped.
    pub fn pause(&mut self, now_ms: i64) {
        if !self.is_paused {
            self.is_paused = true;
            if self.keys().is_none() {
                self.discard_sent(now_ms);
            }
        }
    }

    /// Ends a pause.
    pub fn resume(&mut self, now_ms: i64) {
        self.is_paused = false;
        self.progress_at_ms = now_ms;
        // A line that was over when the pause discarded its mark.
        self.has_news = true;
    }

    /// Discards all lines; returns how far each had come.
    pub fn cut(&mut self, now_ms: i64) -> Vec<LineProgress> {
        self.advance(now_ms);
        let progress = self.lines.iter().map(|line| self.progress_of(line, self.heard)).collect();
        self.partial.clear();
        self.is_paused = false;
        if let Some(frames) = self.frames_of_keys() {
            self.unheard.truncate(frames);
            self.lines.truncate(1);
            return progress;
        }
        self.discard_sent(now_ms);
        self.heard += self.unheard.len() as i64;
        self.heard_frames_then = self.heard;
        self.unheard.clear();
        self.lines.clear();
        progress
    }

    /// The lines whose playback is over, in order. The clock alone does not end a line: its mark does.
    pub fn take_played(&mut self, now_ms: i64) -> Vec<LineProgress> {
        self.advance(now_ms);
        let mut over = Vec::new();
        if !std::mem::take(&mut self.has_news) {
            return over;
        }
        while let Some(line) = self.lines.front().filter(|line| line.is_complete && line.until <= self.heard)
        {
            over.push(self.progress_of(line, line.until));
            self.lines.pop_front();
        }
        over
    }

    /// How far each line being played, or waiting, has come by `at_ms`. That may be in the past: the end of a call is
    /// noticed after it.
    #[must_use]
    pub fn progress(&self, at_ms: i64) -> Vec<LineProgress> {
        let heard = self.heard_by(at_ms);
        let then = |line: &Line| {
            let mut progress = self.progress_of(line, heard);
            // Marks came back since then. What was heard after it has its times.
            if let Some(since_ms) = line.heard_until_ms.map(|until_ms| until_ms - at_ms).filter(|ms| *ms > 0)
            {
                let by_now_ms = self.progress_of(line, self.heard).heard_ms;
                let then_ms = (by_now_ms - since_ms).max(0) / FRAME_MS * FRAME_MS;
                progress.heard_ms = progress.heard_ms.min(then_ms);
            }
            progress
        };
        self.lines.iter().map(then).collect()
    }

    /// When the playback of a line began, once a frame of it was heard; as in the recording.
    pub fn began_at_ms(&mut self, now_ms: i64, line: LineId) -> Option<i64> {
        self.advance(now_ms);
        self.lines.iter().find(|known| known.id == line)?.began_at_ms
    }

    /// Frames that were heard since the last call, in order.
    pub fn take_heard(&mut self, now_ms: i64) -> impl Iterator<Item = HeardFrame> + '_ {
        self.advance(now_ms);
        self.recorded.drain(..)
    }

    /// How much audio was heard, and how much waits.
    #[must_use]
    pub fn heard_and_waiting_ms(&mut self, now_ms: i64) -> (i64, i64) {
        self.advance(now_ms);
        (self.heard * FRAME_MS, self.unheard.len() as i64 * FRAME_MS)
    }

    /// When the first frame is played that was sent and not heard yet.
    #[must_use]
    pub fn awaited_ms(&self) -> Option<i64> {
        self.unheard.front().filter(|_| self.sent > 0).map(|frame| frame.from_ms)
    }

    /// The next output that is due.
    pub fn poll_output(&mut self, now_ms: i64) -> Option<PlayerOutput> {
        self.send_at_ms = None;
        if std::mem::take(&mut self.must_clear) {
            return Some(PlayerOutput::Clear);
        }
        let ready = match self.frames_of_keys() {
            Some(frames) => frames,
            None if self.is_paused => 0,
            None => self.unheard.len(),
        };
        let waiting = ready.saturating_sub(self.sent);
        if self.unmarked_ms > 0 && (self.unmarked_ms >= self.mark_ms || waiting == 0) {
            return Some(PlayerOutput::Mark(self.mark_sent(now_ms)));
        }
        if waiting == 0 {
            return None;
        }
        let ahead_ms = self.playback.sent_ms() - self.playback.heard_ms(now_ms) + self.unmarked_ms;
        if ahead_ms >= PHONE_AHEAD_MS {
            self.send_at_ms = Some(now_ms + PHONE_MARK_MS / 2);
            return None;
        }
        let rate = self.rate;
        let frame = self.unheard.get_mut(self.sent)?;
        frame.from_ms = self.schedule.sent(now_ms);
        let samples = frame.samples(rate);
        self.sent += 1;
        self.unmarked_ms += FRAME_MS;
        self.progress_at_ms = now_ms;
        Some(PlayerOutput::Audio(samples))
    }

    /// When [`tick`](Self::tick) and [`poll_output`](Self::poll_output) are due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let marks = self.awaits_marks().then(|| self.marks_are_late_at_ms());
        [marks, self.send_at_ms].into_iter().flatten().min()
    }

    /// Whether playback is paused.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Whether all audio so far of a line was heard, and more of it is to come.
    pub fn is_starved(&mut self, now_ms: i64) -> bool {
        self.advance(now_ms);
        let has_begun = |line: &Line| line.heard_until_ms.is_some() && !line.is_complete;
        self.unheard.is_empty() && self.lines.front().is_some_and(has_begun)
    }

    /// How much audio of the lines was not heard yet, in ms; `None` while more audio of the last line is to come.
    pub fn left_ms(&mut self, now_ms: i64) -> Option<i64> {
        self.advance(now_ms);
        self.lines.back().filter(|line| line.is_complete)?;
        Some(self.unheard.len() as i64 * FRAME_MS)
    }

    /// When everything will have been played and its last mark returned, if the line plays in real time.
    #[must_use]
    pub fn ends_at_ms(&self, now_ms: i64) -> i64 {
        let queued = self.unheard.len().saturating_sub(self.sent) as i64;
        self.playback.over_at_ms(now_ms) + self.unmarked_ms + queued * FRAME_MS + PHONE_MARK_LATE_MS
    }

    /// How many frames of the keys that are being pressed were not heard yet.
    fn frames_of_keys(&self) -> Option<usize> {
        self.keys().map(|keys| usize::try_from(keys.until - self.heard).unwrap_or(0))
    }

    fn extend_last_line(&mut self) {
        let until = self.queued_until();
        if let Some(line) = self.lines.back_mut() {
            line.until = until;
        }
    }

    /// The number of frames ever queued.
    fn queued_until(&self) -> i64 {
        self.heard + self.unheard.len() as i64
    }

    /// The number of frames heard by `at_ms`; a frame counts when it is over.
    fn heard_by(&self, at_ms: i64) -> i64 {
        let since = (self.playback.heard_ms(at_ms) - self.heard_at_ms) / FRAME_MS;
        (self.heard_frames_then + since).min(self.heard + self.sent as i64)
    }

    /// Forgets the frames that were heard, and keeps them for the recording.
    fn advance(&mut self, now_ms: i64) {
        let heard = self.heard_by(now_ms);
        while self.heard < heard {
            let Some(frame) = self.unheard.pop_front() else { break };
            let number = self.heard;
            self.heard += 1;
            self.sent = self.sent.saturating_sub(1);
            let from_ms = frame.from_ms.min(now_ms - FRAME_MS).max(self.heard_until_ms);
            let until_ms = from_ms + FRAME_MS;
            self.heard_until_ms = until_ms;
            let line = self.lines.iter_mut().find(|line| (line.from..line.until).contains(&number));
            if let Some(line) = line {
                line.began_at_ms.get_or_insert(from_ms);
                line.heard_until_ms = Some(until_ms);
            }
            if self.is_recorded {
                self.recorded.push_back(HeardFrame { until_ms, samples: frame.into_samples(self.rate) });
            }
        }
    }

    /// Takes back what was sent and not heard.
    fn discard_sent(&mut self, now_ms: i64) {
        self.advance(now_ms);
        self.must_clear |= self.sent > 0;
        self.sent = 0;
        self.unmarked_ms = 0;
        self.heard_at_ms = self.playback.cleared(now_ms);
        self.schedule.cleared(now_ms);
        self.heard_frames_then = self.heard;
    }

    fn progress_of(&self, line: &Line, heard: i64) -> LineProgress {
        LineProgress {
            line: line.id,
            heard_ms: (heard.min(line.until) - line.from).max(0) * FRAME_MS,
            audio_ms: (line.until - line.from) * FRAME_MS,
            is_complete: line.is_complete,
            heard_until_ms: line.heard_until_ms,
        }
    }

    fn awaits_marks(&self) -> bool {
        self.unmarked_ms > 0 || !self.playback.is_idle()
    }

    const fn marks_are_late_at_ms(&self) -> i64 {
        self.progress_at_ms + PHONE_AHEAD_MS + PHONE_MARK_LATE_MS
    }

    /// Moves the audio since the last mark to the sent total, and returns the mark to request.
    fn mark_sent(&mut self, now_ms: i64) -> u64 {
        let mark = self.playback.sent(now_ms, std::mem::take(&mut self.unmarked_ms));
        self.schedule.mark_sent(mark);
        mark
    }
}

#[cfg(test)]
mod tests;

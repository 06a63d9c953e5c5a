//! The media socket of a [`Phone`].
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::super::line::{self, Closed, Line, OpenError};
use super::super::server::TIMEOUT_MS;
use super::super::speaker::Cleared;
use super::super::wire::WireMessage;
use super::Phone;

/// The length of a frame of audio.
const FRAME_MS: u64 = 20;

impl Phone {
    /// Opens the media socket without sending anything.
    #[track_caller]
    pub fn open_socket(&mut self) {
        let headers = self.server.wire().socket_headers(self.media_url());
        self.open_socket_with(&headers);
    }

    /// The same with these headers.
    #[track_caller]
    pub fn open_socket_with(&mut self, headers: &[(&'static str, String)]) {
        let url = self.media_url().to_owned();
        match self.try_socket_with(&url, headers) {
            Ok(line) => self.line = Some(line),
            Err(OpenError::Refused(status, body)) => {
                panic!("the service rejects the media socket: {status}: {body}")
            }
            Err(OpenError::Broken(error)) => panic!("the media socket: {error}"),
        }
    }

    /// Opens the media socket for somebody who speaks the carrier's protocol himself: the connection after the handshake, and the
    /// first messages, which are still to be sent.
    #[track_caller]
    pub fn bare_socket(&self) -> Result<(TcpStream, Vec<WireMessage>), OpenError> {
        let url = self.media_url();
        let (address, path) = self.server.locate(url);
        let socket = line::handshake(address, &path, &self.server.wire().socket_headers(url))?;
        Ok((
            socket.get_ref().try_clone().expect("a socket has copies"),
            self.server.wire().media(&self.call).opening(),
        ))
    }

    /// Opens and starts the media socket; returns whether the service accepted it.
    #[track_caller]
    pub fn try_media(&mut self) -> bool {
        let url = self.media_url().to_owned();
        self.line = self.try_socket(&url).ok();
        self.line.iter().for_each(Line::begin);
        self.line.is_some()
    }

    /// Tries to open another media socket at any URL, with this carrier's headers. The error is the status of the rejection.
    #[track_caller]
    pub fn try_media_socket(&self, url: &str) -> Result<(), u16> {
        self.try_media_socket_with(url, &self.server.wire().socket_headers(url))
    }

    /// The same with these headers.
    #[track_caller]
    pub fn try_media_socket_with(&self, url: &str, headers: &[(&'static str, String)]) -> Result<(), u16> {
        match self.try_socket_with(url, headers) {
            Ok(_) => Ok(()),
            Err(OpenError::Refused(status, _)) => Err(status),
            Err(OpenError::Broken(error)) => panic!("{url}: {error}"),
        }
    }

    /// Sends the first messages on a media socket that was opened separately.
    #[track_caller]
    pub fn begin(&self) {
        self.line().begin();
    }

    /// Samples per second, in both directions.
    #[track_caller]
    pub fn rate_hz(&self) -> u32 {
        self.line().rate_hz()
    }

    /// Sends audio of the person in real time; returns when it was sent.
    #[track_caller]
    pub fn say(&self, samples: &[i16]) {
        self.line().say(samples);
    }

    /// Sends audio of the person as fast as the socket accepts it.
    #[track_caller]
    pub fn say_at_once(&self, samples: &[i16]) {
        self.line().say_at_once(samples);
    }

    /// Stops sending silence in pauses, unlike a telephone line.
    #[track_caller]
    pub fn mute(&self) {
        self.line().mute();
    }

    /// Presses a key.
    #[track_caller]
    pub fn key(&self, key: char) {
        self.line().key(key);
    }

    /// Sends any message over the media socket.
    #[track_caller]
    pub fn raw_media(&self, message: WireMessage) {
        self.line().raw(message);
    }

    /// One frame of audio as a message for [`Phone::raw_media`].
    #[track_caller]
    pub fn frame(&self, samples: &[i16]) -> WireMessage {
        self.line().encode(samples)
    }

    /// All audio played to the person so far, without pauses.
    #[track_caller]
    pub fn heard(&self) -> Vec<i16> {
        self.line().look(|state| state.speaker.heard().to_vec())
    }

    /// When each frame of the person was sent, silence included.
    #[track_caller]
    pub fn sent_at(&self) -> Vec<Instant> {
        self.line().look(|state| state.sent_at.clone())
    }

    /// When audio of the service arrived.
    #[track_caller]
    pub fn arrived_at(&self) -> Vec<Instant> {
        self.line().look(|state| state.arrived_at.clone())
    }

    /// Listens for this long and returns the audio played in that time.
    #[track_caller]
    pub fn heard_for(&self, ms: u64) -> Vec<i16> {
        let before = self.line().look(|state| state.speaker.heard().len());
        std::thread::sleep(Duration::from_millis(ms));
        self.line().look(|state| state.speaker.heard()[before..].to_vec())
    }

    /// Listens until `enough` returns a value for the audio played so far.
    #[track_caller]
    pub fn hear_until<T>(&self, what: &str, mut enough: impl FnMut(&[i16]) -> Option<T>) -> T {
        let found =
            self.line().wait(Duration::from_millis(TIMEOUT_MS), |state| enough(state.speaker.heard()));
        found.unwrap_or_else(|| {
            let seen = self.line().look(|state| (state.speaker.heard().len(), state.closed.clone()));
            panic!("{} did not hear {what}; samples and end: {seen:?}; {:?}", self.id(), self.problems())
        })
    }

    /// Waits for the rest of a line, if it is less than a frame: the test voice is understood 2 ms before its audio ends, and
    /// nobody hangs up that fast. Otherwise the last word of a line that was heard is sometimes cut.
    pub(super) fn hear_out(&self) {
        let Some(line) = &self.line else { return };
        line.wait(Duration::from_millis(TIMEOUT_MS), |state| {
            let goes_on = state.speaker.waiting() > Duration::from_millis(FRAME_MS);
            (state.speaker.is_idle() || goes_on || state.closed.is_some()).then_some(())
        });
    }

    /// Waits until audio has been played and the buffer has then been empty for this long.
    #[track_caller]
    pub fn until_quiet(&self, ms: u64) {
        let mut quiet_since = None;
        let quiet = self.line().wait(Duration::from_millis(TIMEOUT_MS), |state| {
            if !state.speaker.is_idle() || state.speaker.heard().is_empty() {
                quiet_since = None;
                return None;
            }
            let since = *quiet_since.get_or_insert_with(Instant::now);
            (since.elapsed() >= Duration::from_millis(ms)).then_some(())
        });
        assert!(quiet.is_some(), "{}: the service does not speak, or does not stop", self.id());
    }

    /// When the service discarded unplayed audio, and how much.
    #[track_caller]
    pub fn cleared(&self) -> Vec<Cleared> {
        self.line().look(|state| state.speaker.cleared().to_vec())
    }

    /// Violations of the carrier's media protocol by the service.
    pub fn problems(&self) -> Vec<String> {
        self.line.as_ref().map(|line| line.look(|state| state.problems.clone())).unwrap_or_default()
    }

    /// Number of messages received over the media socket.
    #[track_caller]
    pub fn messages(&self) -> usize {
        self.line().look(|state| state.messages)
    }

    /// Waits until the service closes the media socket; returns how.
    #[track_caller]
    pub fn socket_closed(&self) -> Closed {
        let closed = self.line().wait(Duration::from_millis(TIMEOUT_MS), |state| state.closed.clone());
        closed.unwrap_or_else(|| panic!("{}: the service does not close the media socket", self.id()))
    }

    /// Sends the last messages and leaves the socket open.
    #[track_caller]
    pub fn stop_media(&self) {
        self.line().stop();
    }

    /// Ends the media properly without reporting the end of the call.
    #[track_caller]
    pub fn close_media(&mut self) {
        if let Some(line) = self.line.take() {
            line.close();
            self.wait_for_close(&line);
        }
    }

    /// Drops the connection without reporting the end of the call. It is gone when this returns.
    #[track_caller]
    pub fn drop_connection(&mut self) {
        let line = self.line();
        line.drop_connection();
        line.wait(Duration::from_millis(TIMEOUT_MS), |state| state.closed.clone());
        self.line = None;
    }

    #[track_caller]
    fn try_socket(&self, url: &str) -> Result<Line, OpenError> {
        self.try_socket_with(url, &self.server.wire().socket_headers(url))
    }

    #[track_caller]
    fn try_socket_with(&self, url: &str, headers: &[(&'static str, String)]) -> Result<Line, OpenError> {
        let (address, path) = self.server.locate(url);
        Line::open(address, &path, headers, self.server.wire().media(&self.call), self.pace)
    }

    #[track_caller]
    fn line(&self) -> &Line {
        self.line.as_ref().unwrap_or_else(|| panic!("{} has no media socket", self.id()))
    }
}

//! Speech synthesis and recognition.
pub mod audio;
pub mod exchange;
pub mod g711;
pub mod playback;
pub mod synthesizer;
pub mod tone;
pub mod transcriber;
pub mod transcribers;

/// Whether a voice (`provider/name`) works on the telephone. Providers' voices are not supported yet.
pub fn can_speak(voice: &str) -> bool {
    voice == "builtin/tone"
}

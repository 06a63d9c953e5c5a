//! What speaks and what listens.
pub mod audio;
pub mod g711;
pub mod playback;
pub mod tone;

/// Whether assistants can speak with a voice (`provider/name`) on the telephone. A provider's voices follow.
pub fn can_speak(voice: &str) -> bool {
    voice == "builtin/tone"
}

//! Speech synthesis and recognition.
pub mod audio;
pub mod backchannel;
pub mod echo;
pub mod end_of_turn;
pub mod exchange;
pub mod g711;
pub mod heard_text;
pub mod playback;
pub mod resample;
pub mod sentence_cutter;
pub mod speakable;
pub mod synthesizer;
pub mod tone;
pub mod transcriber;
pub mod vocabulary;
pub mod voice_activity;

/// Whether a voice (`provider/name`) works on the telephone. Providers' voices are not supported yet.
pub fn can_speak(voice: &str) -> bool {
    voice == "builtin/tone"
}

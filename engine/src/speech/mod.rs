//! Speech synthesis and recognition.
pub mod audio;
pub mod exchange;
pub mod g711;
pub mod listener;
pub mod options;
pub mod playback;
pub mod player;
pub mod settings;
pub mod spoken_line;
pub mod synthesizer;
pub mod synthesizers;
pub mod tone;
pub mod transcriber;
pub mod transcribers;
pub mod voice;

//! Servers that stand in for other people's, over real sockets.
pub mod openai;

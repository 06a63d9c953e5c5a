//! Moving a workspace between hosts, from the command line: [`export`] writes a file, [`import`] sends it to another host.
//! [`database`] moves it between the databases of one.
//!
//! The hosts do the work, step by step, and each step can be repeated. A [`MoveHost`](host::MoveHost) is one of them: a
//! service, or the data folder of this machine. [`mod@file`] is what is between them.
mod asking;
pub mod database;
pub mod export;
pub mod file;
pub mod host;
pub mod import;
#[cfg(test)]
mod sample;
pub mod stop;
#[cfg(test)]
mod tests;
mod told;

pub use self::stop::Stop;

/// Is told how far a command is, line by line.
pub type Say<'a> = &'a mut dyn FnMut(&str);

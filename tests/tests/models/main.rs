//! Asking models over real HTTP, of a stand-in server that behaves as the model's name says; and, in
//! a sandbox, of scripted answers.
mod analyst;
mod assistant;
mod caller;
mod http;
mod judge;
mod patience;
mod sandbox;
mod support;

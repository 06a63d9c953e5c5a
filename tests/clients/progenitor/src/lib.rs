//! The client that progenitor made, which must compile without a warning.
#![deny(warnings)]
#![allow(dead_code)] // it brings helpers that this document does not need

include!(concat!(env!("OUT_DIR"), "/client.rs"));

//! The `sidetone` command.
fn main() {}

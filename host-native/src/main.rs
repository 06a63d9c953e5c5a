//! The `sidetone` command.
use std::process::ExitCode;

fn main() -> ExitCode {
    match sidetone::cli::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sidetone: {error}");
            ExitCode::FAILURE
        }
    }
}

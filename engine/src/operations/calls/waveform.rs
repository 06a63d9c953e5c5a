//! `GET /calls/{id}/waveform`: the waveform of a call's recording.
use crate::base::error::Code;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::fault::Fault;
use crate::storage::recordings::waveform::{Peaks, Waveform};
use crate::storage::recordings::{self, columns};

/// `GET /calls/{id}/waveform`
pub const OPERATION: Operation = Operation::get("get_waveform", "/calls/{id}/waveform", run!(run))
    .docs(
        "Get a recording's waveform",
        "Reads the peaks of each channel of a call's recording, to draw it. Returns 404 for a call without a \
        recording.",
    )
    .returns::<Waveform>()
    .errors(&[Code::RecordingNotReady]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let rows = context.read(vec![recordings::select(&id, columns::WAVEFORM)]).await?;
    let row = recordings::ready(&rows)?;
    let peaks = Peaks::from_text(row.str("peaks")?)?;
    let missing_ms = row.optional_integer("missing_ms")?.unwrap_or(0);
    Output::ok(&Waveform::new(id, row.integer("duration_ms")?, missing_ms, &peaks))
}

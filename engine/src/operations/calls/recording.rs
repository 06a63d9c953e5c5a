//! `/calls/{id}/recording`: a call's recording, downloaded or deleted.
use crate::base::error::Code;
use crate::operations::context::Context;
use crate::operations::operation::{File, Input, Operation, Output, Success};
use crate::storage::fault::Fault;
use crate::storage::recordings::{self, columns};

/// `GET /calls/{id}/recording`
pub const DOWNLOAD: Operation = Operation::get("download_recording", "/calls/{id}/recording", run!(download))
    .with_success(Success::Audio)
    .docs(
        "Download a recording",
        "Downloads the recording of a call as a WAV file (16-bit PCM, the caller on the first channel, the \
        assistant on the second), or one range of its bytes. Returns 404 for a call without a recording.",
    )
    .errors(&[Code::RecordingNotReady, Code::RangeNotSatisfiable]);

/// `DELETE /calls/{id}/recording`
pub const DELETE: Operation = Operation::delete("delete_recording", "/calls/{id}/recording", run!(delete))
    .docs(
        "Delete a recording",
        "Permanently deletes the recording of a call and its waveform. The call and its transcript stay.",
    )
    .errors(&[Code::RecordingNotReady]);

async fn download(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let call_id = input.id();
    let rows = context.read(vec![recordings::select(&call_id, columns::FILE)]).await?;
    let row = recordings::ready(&rows)?;
    let size_bytes = u64::try_from(row.integer("size_bytes")?).unwrap_or(0);
    Ok(Output::file(File {
        file: recordings::file(context.workspace_id()?, &call_id, &row)?,
        size_bytes,
        etag: format!("\"{}\"", row.str("sha256")?),
        media_type: "audio/wav",
        name: format!("{call_id}.wav"),
    }))
}

/// The row is deleted first: from then on the blob cannot be downloaded, and the sweep removes it if this fails.
async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let call_id = input.id();
    let mut statements = vec![recordings::select(&call_id, columns::BLOBS)];
    statements.extend(recordings::delete(&call_id, context.now_ms));
    let rows = context.write(statements).await?;
    let row = recordings::ready(&rows)?;
    if let Err(error) = recordings::remove(&context.services, context.workspace_id()?, &call_id, &row).await?
    {
        context.incident = Some(format!("a recording's blob is left to the sweep: {error:?}"));
    }
    Ok(Output::empty())
}

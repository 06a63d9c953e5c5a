//! Gives the peer the rows of the transcript, and a line that the model is still writing as far as it is written.
use super::Drive;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::live::peer::{Peer, PeerEvent};
use crate::ports::Gone;

/// How much of a line was given to the peer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said {
    /// The line's row.
    row: usize,
    bytes: usize,
}

impl Drive<'_> {
    /// Sends new transcript rows to the peer. A closed connection counts as a hang-up; of a telephone, its next event says what
    /// it was.
    pub(super) async fn send_rows(&mut self, peer: &mut dyn Peer) {
        for row in std::mem::take(&mut self.cut_rows) {
            if let Some(row) = self.conversation.transcript().get(row).filter(|row| row.interrupted) {
                // If the connection is closed, the next row or event says so.
                let _ = peer.cut_row(row).await;
            }
        }
        while let Some(row) = self.conversation.transcript().get(self.sent_rows) {
            let is_complete = self.conversation.being_written() != Some(row.index);
            let sent = match (say(&mut self.said, peer, row, is_complete).await, is_complete) {
                (Ok(()), true) => peer.send_row(row).await,
                (said, _) => said,
            };
            self.sent_rows += usize::from(is_complete);
            if sent.is_err() {
                if !self.session.on_phone {
                    self.peer_event(PeerEvent::Gone, &*peer);
                }
                return;
            }
            if !is_complete {
                return;
            }
        }
    }

    /// What was heard of a line, as a part of all that the model has written of it: the peer knows only what it was given.
    pub(super) fn of_whole_line(&self, event: PeerEvent) -> PeerEvent {
        let line = self.conversation.first_open_line().filter(|row| *row == self.said.row);
        let bytes = line.and_then(|row| self.conversation.transcript().get(row)).map(|row| row.text.len());
        let of_whole = |heard_permille: u32| match bytes.filter(|bytes| *bytes > self.said.bytes) {
            Some(bytes) => {
                // Rounded up, so that the last word that was heard is kept.
                let heard = u64::from(heard_permille).saturating_mul(self.said.bytes as u64);
                u32::try_from(heard.div_ceil(bytes as u64)).unwrap_or(heard_permille)
            }
            None => heard_permille,
        };
        match event {
            PeerEvent::Interrupted { heard_permille } => {
                PeerEvent::Interrupted { heard_permille: of_whole(heard_permille) }
            }
            PeerEvent::BrokeOff { heard_permille } => {
                PeerEvent::BrokeOff { heard_permille: of_whole(heard_permille) }
            }
            event => event,
        }
    }
}

/// Gives the peer what it was not given of a line of the assistant.
async fn say(
    said: &mut Said,
    peer: &mut dyn Peer,
    row: &TranscriptRow,
    is_complete: bool,
) -> Result<(), Gone> {
    if row.role != TranscriptRole::Assistant {
        return Ok(());
    }
    if said.row != row.index {
        *said = Said { row: row.index, bytes: 0 };
    }
    if row.interrupted && said.bytes == 0 {
        return Ok(());
    }
    // A line that was cut ends with what was given.
    let text = if row.interrupted { "" } else { row.text.get(said.bytes..).unwrap_or_default() };
    if peer.say(text, is_complete).await? {
        said.bytes += text.len();
    }
    Ok(())
}

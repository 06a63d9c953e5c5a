//! Server-sent events, parsed incrementally (WHATWG HTML, "9.2.6 Interpreting an event stream").
use std::mem::take;

use crate::base::limits::MODEL_EVENT_BYTES_MAX;

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event:` field; empty for none.
    pub name: String,
    /// The `data:` lines, joined by line feeds.
    pub data: Vec<u8>,
}

/// A line or an event exceeds [`MODEL_EVENT_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseTooLong;

/// Parses events from pieces of any size. The result does not depend on the division, not even inside a character or
/// between CR and LF.
///
/// Lines end with LF, CR LF or CR. Comments, `id:` and `retry:` are ignored.
#[derive(Debug, Clone, Default)]
pub struct SseReader {
    line: Vec<u8>,
    /// The last line ended with CR, so a following LF belongs to the same line ending.
    after_cr: bool,
    name: String,
    data: Vec<u8>,
    has_data: bool,
}

impl SseReader {
    /// Adds the next bytes and calls `each` with every completed event.
    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(SseEvent)) -> Result<(), SseTooLong> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len() + part.len() > MODEL_EVENT_BYTES_MAX {
                return Err(SseTooLong);
            }
            self.line.extend_from_slice(part);
            rest = after;
            if let Some((ending, after)) = rest.split_first() {
                self.after_cr = *ending == b'\r';
                rest = after;
                self.end_line(each)?;
            }
        }
        Ok(())
    }

    /// Ends the stream. An event without its blank line still counts: some servers close directly after the last one.
    pub fn finish(&mut self, each: &mut dyn FnMut(SseEvent)) -> Result<(), SseTooLong> {
        if !self.line.is_empty() {
            self.end_line(each)?;
        }
        self.dispatch(each);
        Ok(())
    }

    fn end_line(&mut self, each: &mut dyn FnMut(SseEvent)) -> Result<(), SseTooLong> {
        let line = take(&mut self.line);
        if line.is_empty() {
            self.dispatch(each);
            return Ok(());
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if self.data.len() + value.len() >= MODEL_EVENT_BYTES_MAX {
                    return Err(SseTooLong);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, each: &mut dyn FnMut(SseEvent)) {
        let (name, data) = (take(&mut self.name), take(&mut self.data));
        if take(&mut self.has_data) {
            each(SseEvent { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supports_every_line_ending() {
        for end in ["\n", "\r\n", "\r"] {
            let text = "data: a\n\n: comment\nevent:e\ndata:b\ndata:  c\nid: 1\n\n".replace('\n', end);
            assert_eq!(read(&[text.as_bytes()]), ["=a", "e=b\n c"], "{end:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(read(&bytes), ["=a", "e=b\n c"], "{end:?}");
        }
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(read(&[b"data: a\n\ndata: b"]), ["=a", "=b"]);
        assert_eq!(read(&[b"event: nothing\n\ndata\n\n"]), ["="]);
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let mut reader = SseReader::default();
        let piece = vec![b'x'; MODEL_EVENT_BYTES_MAX];
        assert_eq!(reader.push(&piece, &mut |_| {}), Ok(()));
        assert_eq!(reader.push(b"x", &mut |_| {}), Err(SseTooLong));
        let mut reader = SseReader::default();
        let line = [b"data:", &piece[..MODEL_EVENT_BYTES_MAX / 2], b"\n"].concat();
        assert_eq!(reader.push(&line, &mut |_| {}), Ok(()));
        assert_eq!(reader.push(&line, &mut |_| {}), Err(SseTooLong));
    }

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let (mut reader, mut events) = (SseReader::default(), Vec::new());
        let mut each = |event: SseEvent| {
            events.push(format!("{}={}", event.name, String::from_utf8_lossy(&event.data)));
        };
        for piece in pieces {
            reader.push(piece, &mut each).unwrap();
        }
        reader.finish(&mut each).unwrap();
        events
    }
}

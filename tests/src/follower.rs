//! A client of server-sent events, over TCP.
use std::io::{BufRead as _, BufReader, Read};
use std::net::TcpStream;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::reply::Reply;
use crate::{World, wire};

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its id.
    pub id: i64,
    /// Its kind.
    pub kind: String,
    /// What it says.
    pub data: Value,
}

/// A client that follows a call or a run.
pub struct Follower {
    body: BufReader<Chunked>,
    /// The head of the response.
    pub headers: HeaderMap,
}

impl Follower {
    /// Opens a stream. `Err` is the response if it is none.
    pub fn open(world: &World, path: &str, last_event_id: Option<i64>) -> Result<Self, Box<Reply>> {
        let mut request = world.request(Method::GET, path);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let stream = world.begin(&request.body(Bytes::new()).expect("a valid path"));
        let mut reader = BufReader::new(stream);
        let (status, headers) = wire::head(&mut reader).expect("a response");
        let is_stream = headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        if !is_stream {
            let body =
                if status == 204 { Vec::new() } else { wire::body(&mut reader, &headers).expect("a body") };
            return Err(Box::new(Reply::new(status, headers, body.into())));
        }
        assert_eq!(status, 200, "{headers:?}");
        Ok(Self { body: BufReader::new(Chunked { reader, left: 0 }), headers })
    }

    /// Expects an event of this kind next.
    #[track_caller]
    pub fn expect(&mut self, kind: &str) -> Event {
        match self.next() {
            Some(event) if event.kind == kind => event,
            other => panic!("not {kind}: {other:?}"),
        }
    }

    /// All events until the stream ends.
    pub fn rest(&mut self) -> Vec<Event> {
        self.collect()
    }
}

impl Iterator for Follower {
    type Item = Event;

    /// The next event; `None` after the stream has ended.
    fn next(&mut self) -> Option<Event> {
        let (mut id, mut kind, mut data) = (None, None, None);
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", text)) => id = Some(text.parse().expect("an id is a number")),
                Some(("event", text)) => kind = Some(text.to_owned()),
                Some(("data", text)) => data = Some(serde_json::from_str(text).expect("data is JSON")),
                _ => {}
            }
            if line.trim().is_empty()
                && let Some(data) = data.take()
            {
                return Some(Event { id: id.expect("an id"), kind: kind.expect("a kind"), data });
            }
        }
    }
}

/// The events of a body that has arrived.
pub fn events_of(body: &[u8]) -> Vec<Event> {
    let text = std::str::from_utf8(body).expect("UTF-8");
    let blocks = text.split("\n\n").filter(|block| block.contains("data: "));
    let field = |block: &str, name: &str| {
        let lines = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        lines.expect("a field").to_owned()
    };
    blocks
        .map(|block| Event {
            id: field(block, "id").parse().expect("a number"),
            kind: field(block, "event"),
            data: serde_json::from_str(&field(block, "data")).expect("JSON"),
        })
        .collect()
}

/// A chunked body (RFC 9112, 7.1), as it comes.
struct Chunked {
    reader: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                // The end of the chunk before.
                line.clear();
                self.reader.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        }
        let most = self.left.min(buffer.len());
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

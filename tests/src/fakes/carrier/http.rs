//! A minimal HTTP server for the carrier's API that can delay or cut off responses.
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use super::wire::{ApiReply, ApiRequest};

/// Larger requests are an error of the test or the service.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Reads one request; `None` when the other side has closed.
pub(super) fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<ApiRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = ApiRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    // workerd sends chunked bodies.
    request.body = match request.header("transfer-encoding") {
        Some(_) => chunks(reader)?,
        None => {
            let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            exactly(reader, length)?
        }
    };
    Ok(Some(request))
}

/// Writes a response and keeps the connection open.
pub(super) fn write(stream: &mut TcpStream, reply: &ApiReply) -> io::Result<()> {
    let ApiReply { status, content_type, body } = reply;
    let mut answer = format!("HTTP/1.1 {status} X\r\n");
    if *status != 204 {
        answer.push_str(&format!("content-type: {content_type}\r\ncontent-length: {}\r\n", body.len()));
    }
    answer.push_str("\r\n");
    if *status != 204 {
        answer.push_str(body);
    }
    stream.write_all(answer.as_bytes())
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        body.extend(exactly(reader, size)?);
        line.clear();
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
        if body.len() > BODY_BYTES_MAX {
            return Err(io::Error::other("the request is too large"));
        }
    }
}

fn exactly(reader: &mut impl BufRead, bytes: usize) -> io::Result<Vec<u8>> {
    if bytes > BODY_BYTES_MAX {
        return Err(io::Error::other("the request is too large"));
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body)?;
    Ok(body)
}

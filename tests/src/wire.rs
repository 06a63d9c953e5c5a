//! A minimal HTTP/1.1 client that can also send invalid requests.
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::net::TcpSocket;

use crate::reply::Reply;

/// How long to wait for a response.
const ANSWER_MS: u64 = 60_000;

/// Sends a well-formed request on a new connection.
pub fn send(address: SocketAddr, request: &http::Request<Bytes>) -> io::Result<Reply> {
    let (stream, sent) = begin(address, request)?;
    match receive(stream, *request.method() == http::Method::HEAD) {
        Err(error) => Err(sent.err().unwrap_or(error)),
        reply => reply,
    }
}
/// Sends a request without waiting for the response: returns the connection, and whether everything was sent. The service may
/// respond and close before it has read everything, which is not an error.
/// respond and close before it has read everything; the response then counts.
pub fn begin(address: SocketAddr, request: &http::Request<Bytes>) -> io::Result<(TcpStream, io::Result<()>)> {
    let mut head = Vec::new();
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    write!(head, "{} {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n", request.method())?;
    for (name, value) in request.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if !request.body().is_empty() {
        write!(head, "content-length: {}\r\n", request.body().len())?;
    }
    head.extend_from_slice(b"\r\n");
    head.extend_from_slice(request.body());
    let mut stream = connect(address)?;
    let sent = stream.write_all(&head);
    Ok((stream, sent))
}

/// Opens a connection for a test that writes raw bytes.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
    stream.set_write_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
    Ok(stream)
}

/// Opens a connection from this address of this machine, which has all of 127.0.0.0/8.
pub fn connect_from(source: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    connect_with(source, address, None)
}

/// The same, for a client that takes as few bytes as the system allows until it reads them.
pub fn connect_slowly(source: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    const BUFFER_BYTES: u32 = 4_096;
    connect_with(source, address, Some(BUFFER_BYTES))
}

/// The standard library binds no connecting socket.
fn connect_with(source: Ipv4Addr, address: SocketAddr, buffer_bytes: Option<u32>) -> io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((source, 0)))?;
        if let Some(bytes) = buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.connect(address).await
    })?;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
    stream.set_write_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
    Ok(stream)
}

/// Reads one response.
pub fn receive(stream: TcpStream, head_only: bool) -> io::Result<Reply> {
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader)?;
    let body = if head_only { Vec::new() } else { body(&mut reader, &headers)? };
    Ok(Reply::new(status, headers, body.into()))
}

/// Reads the head of a response: its status and its headers.
pub fn head(reader: &mut impl BufRead) -> io::Result<(u16, HeaderMap)> {
    let status_line = line(reader)?;
    let status = status_line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| malformed(&format!("status line {status_line:?}")))?;
    let mut headers = HeaderMap::new();
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header"))?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(io::Error::other)?;
        headers.append(name, HeaderValue::from_bytes(value.trim().as_bytes()).map_err(io::Error::other)?);
    }
}

/// Reads the body that follows a head.
pub fn body(reader: &mut impl BufRead, headers: &HeaderMap) -> io::Result<Vec<u8>> {
    let chunked = headers.get("transfer-encoding").is_some();
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let mut body = Vec::new();
    match length {
        Some(length) => {
            reader.take(length).read_to_end(&mut body)?;
            if body.len() as u64 != length {
                return Err(malformed("the body is cut off"));
            }
        }
        None if chunked => body = chunks(reader)?,
        None => {
            reader.read_to_end(&mut body)?;
        }
    }
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = u64::from_str_radix(&line(reader)?, 16).map_err(io::Error::other)?;
        reader.take(size).read_to_end(&mut body)?;
        line(reader)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
    }
    Ok(line.trim_end().to_owned())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed answer: {what}"))
}

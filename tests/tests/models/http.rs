//! Guarantees of the binary's HTTP client for streamed responses.
use std::io::{Read, Write};
use std::net::TcpListener;

use bytes::Bytes;
use serde_json::json;
use sidetone::http_client::HttpClient;
use sidetone::open_files::Outgoing;
use sidetone_engine::ports::{Egress, Http, HttpError, HttpRequest, Party};

use crate::support::{fake, wait};

#[test]
fn chunks_arrive_before_the_end_and_the_deadline_covers_the_whole_response() {
    wait(async {
        let mut stream = client().open(ask("hangs-halfway")).await.unwrap();
        assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
        assert!(stream.next().await.unwrap().unwrap().starts_with(b"data: "));
        assert_eq!(stream.next().await, Some(Err(HttpError::Timeout)));
        assert_eq!(stream.next().await, None, "an error ends the stream");
        assert_eq!(client().open(ask("hangs")).await.err(), Some(HttpError::Timeout));
    });
}

#[test]
fn no_more_than_requested_is_read() {
    wait(async {
        let mut stream = client().open(ask("endless")).await.unwrap();
        let mut bytes = 0;
        let error = loop {
            match stream.next().await.unwrap() {
                Ok(piece) => bytes += piece.len(),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, HttpError::TooLarge(_)), "{error:?}");
        assert!(bytes <= ask("").response_bytes_max);
        let sent = client().send(ask("endless")).await;
        assert!(matches!(sent, Err(HttpError::TooLarge(_))), "{sent:?}");
    });
}

#[test]
fn an_interrupted_response_is_an_error() {
    wait(async {
        let mut stream = client().open(ask("cut-always")).await.unwrap();
        let mut last = None;
        while let Some(piece) = stream.next().await {
            last = Some(piece);
        }
        assert!(matches!(last, Some(Err(HttpError::Failed(_)))), "{last:?}");
    });
}

#[test]
fn dropping_a_stream_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = socket.read(&mut head).unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").unwrap();
        // The client sends nothing more, so this returns when it closes the connection.
        socket.read(&mut head).unwrap_or(0)
    });
    wait(async {
        let request = HttpRequest { method: "GET", url, deadline_ms: 20_000, ..ask("") };
        let mut stream = client().open(request).await.unwrap();
        assert_eq!(stream.next().await, Some(Ok(Bytes::from_static(b"a"))));
        drop(stream);
        // The runtime owns the connection and needs a moment to close it.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    });
    assert_eq!(server.join().unwrap(), 0);
}

fn client() -> HttpClient {
    HttpClient::new(Outgoing::default()).unwrap()
}

fn ask(model: &str) -> HttpRequest {
    let body = json!({"model": model, "stream": true, "messages": [{"role": "user", "content": "Hello"}]});
    HttpRequest {
        method: "POST",
        url: format!("{}/chat/completions", fake().base_url()),
        headers: vec![("content-type", "application/json".to_owned())],
        body: Bytes::from(body.to_string()),
        deadline_ms: 400,
        response_bytes_max: 100_000,
        egress: Egress::Operator,
        party: Party::model("fake"),
        expected: &[],
    }
}

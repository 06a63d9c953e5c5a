//! What the box's HTTP client promises of a streamed answer.
use std::io::{Read, Write};
use std::net::TcpListener;

use bytes::Bytes;
use serde_json::json;
use sidetone::http_client::HttpClient;
use sidetone_engine::ports::{Egress, Http, HttpError, HttpRequest};

use crate::support::{fake, wait};

#[test]
fn pieces_come_before_the_end_and_the_deadline_counts_for_all() {
    wait(async {
        let mut stream = client().open(ask("hangs-halfway")).await.unwrap();
        assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
        assert!(stream.next().await.unwrap().unwrap().starts_with(b"data: "));
        assert_eq!(stream.next().await, Some(Err(HttpError::Timeout)));
        assert_eq!(stream.next().await, None, "after an error it is over");
        assert_eq!(client().open(ask("hangs")).await.err(), Some(HttpError::Timeout));
    });
}

#[test]
fn more_than_is_wanted_is_not_read() {
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
fn what_breaks_off_is_told() {
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
fn dropping_a_stream_ends_the_exchange() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = socket.read(&mut head).unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").unwrap();
        // Nothing more is sent by the client, so this waits for it to hang up.
        socket.read(&mut head).unwrap_or(0)
    });
    wait(async {
        let request = HttpRequest { method: "GET", url, deadline_ms: 20_000, ..ask("") };
        let mut stream = client().open(request).await.unwrap();
        assert_eq!(stream.next().await, Some(Ok(Bytes::from_static(b"a"))));
        drop(stream);
        // The connection belongs to the runtime: it gets a moment to close it.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    });
    assert_eq!(server.join().unwrap(), 0);
}

fn client() -> HttpClient {
    HttpClient::new().unwrap()
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
    }
}

//! `sidetone workspace move` against a service that is played.
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Method, Request, Response};
use serde_json::{Value, json};

use super::runtime;
use crate::moving::Stop;
use crate::moving::database::{Moving, to_database};
use crate::moving::host::MoveHost;
use crate::moving::sample::workspace;

/// What the service answers after it was asked for the workspace, one after the other, and what it was asked.
struct Played {
    answers: RefCell<VecDeque<(u16, Value)>>,
    asked: RefCell<Vec<(Method, Bytes)>>,
}

impl Played {
    fn new(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        Self { answers: RefCell::new(answers.into_iter().collect()), asked: RefCell::default() }
    }

    fn moved(&self, database: Option<&str>, wait_ms: u64) -> (Vec<String>, Result<String, Stop>) {
        let mut said = Vec::new();
        let wish = Moving {
            workspace: "Acme",
            database,
            without_late_prices: true,
            wait: Duration::from_millis(wait_ms),
            pause: Duration::from_millis(1),
        };
        let done = runtime().block_on(to_database(self, &wish, &mut |line: &str| said.push(line.to_owned())));
        (said, done)
    }
}

impl MoveHost for Played {
    fn ask(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response<Bytes>, Stop>> {
        let (status, body) = match request.uri().path() {
            "/operator/workspaces" => (200, json!({"id": workspace(), "name": "Acme"})),
            path => {
                assert_eq!(path, format!("/operator/workspaces/{}/database", workspace()));
                self.asked.borrow_mut().push((request.method().clone(), request.body().clone()));
                self.answers.borrow_mut().pop_front().unwrap()
            }
        };
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        Box::pin(ready(Ok(response)))
    }

    fn place(&self) -> &str {
        "https://edge.example.com"
    }

    fn option(&self) -> String {
        " --url https://edge.example.com".to_owned()
    }
}

fn state(state: &str) -> (u16, Value) {
    (200, json!({"state": state, "database": "DB", "other_database": "DB_2", "rows": 1_200}))
}

fn waits() -> (u16, Value) {
    (
        200,
        json!({"state": "closing", "database": "DB", "waiting_for": [{"what": "conversations", "count": 2}]}),
    )
}

#[test]
fn it_asks_until_the_workspace_is_in_one_database() {
    let over = (200, json!({"state": "at", "database": "DB_2"}));
    let closing = (200, json!({"state": "closing", "database": "DB"}));
    let [copying, comparing, settling] = ["copying", "comparing", "settling"].map(state);
    let answers = [closing, waits(), waits(), copying.clone(), copying, comparing, settling, over];
    let asked = answers.len();
    let service = Played::new(answers);
    let (said, done) = service.moved(Some("DB_2"), 60_000);
    assert_eq!(done.unwrap(), format!("Acme ({}) is in DB_2 at https://edge.example.com", workspace()));
    let begins = [
        "no call and no run",
        "waiting for 2 conversations",
        "Acme is frozen",
        "1,200 rows copied",
        "Acme belongs",
    ];
    assert_eq!(said.len(), begins.len(), "{said:?}");
    assert!(said.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{said:?}");
    let body = json!({"database": "DB_2", "without_late_prices": true}).to_string();
    let all = service.asked.borrow();
    assert!(all.iter().all(|(method, sent)| *method == Method::POST && *sent == body), "{all:?}");
    assert_eq!(all.len(), asked);
}

#[test]
fn it_waits_for_so_long_and_can_be_canceled() {
    let (_, done) = Played::new([waits()]).moved(Some("DB_2"), 0);
    let stop = done.unwrap_err();
    let told = format!("sidetone workspace move {} --cancel --url https://edge.example.com", workspace());
    assert!(stop.exit_code() == 1 && stop.to_string().contains(&told), "{stop}");

    let broken = (500, json!({"error": {"code": "internal", "message": "It is so."}}));
    let stop = Played::new([state("copying"), broken]).moved(Some("DB_2"), 0).1.unwrap_err();
    assert!(stop.exit_code() == 2 && stop.to_string().contains(&told), "{stop}");

    let service = Played::new([state("settling"), (200, json!({"state": "at", "database": "DB"}))]);
    assert!(service.moved(None, 0).1.unwrap().contains("is in DB at"));
    assert!(service.asked.borrow().iter().all(|(method, body)| *method == Method::DELETE && body.is_empty()));
}

#[test]
fn a_refusal_says_why() {
    for (reason, code) in [("has_people", 1), ("between_hosts", 1), ("decided", 1), ("no_such_database", 2)] {
        let error =
            json!({"error": {"code": "move_refused", "message": "It is so.", "details": {"reason": reason}}});
        let stop = Played::new([(409, error)]).moved(Some("DB_2"), 0).1.unwrap_err();
        assert_eq!((stop.exit_code(), stop.to_string().contains("It is so.")), (code, true), "{reason}");
        assert!(!stop.to_string().contains("--cancel"), "nothing has begun: {stop}");
    }
}

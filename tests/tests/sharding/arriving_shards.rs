//! A workspace that arrives where there are several databases: it has one of them, its keys are found, and its numbers are its own.
use http::Method;
use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone::sandbox::memory_shards;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_tests::process::bootstrap_key;

use crate::arriving::File;
use crate::cluster::Cluster;
use crate::handing_over::{frozen, hand_over};
use crate::product::{MINUTE_MS, assistant, bind_to, get, send};

/// A service with several databases, and the operator's requests.
struct Target {
    sandbox: Sandbox,
    operator: String,
    path: String,
}

impl Target {
    fn new(id: &WorkspaceId) -> Self {
        let operator = bootstrap_key(4_000_050);
        let settings = [
            ("SIDETONE_OPERATOR_KEY", operator.as_str()),
            ("SIDETONE_SECRET", "a secret of several databases"),
        ];
        let sandbox = Sandbox::over_shards(memory_shards(3), &settings);
        // Its ids and keys are others than those of the source.
        sandbox.advance(MINUTE_MS);
        sandbox.services().ports().random.fill(&mut [0; 320]);
        Self { sandbox, operator, path: format!("/operator/imports/{id}") }
    }

    fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let reply = send(&self.sandbox, &self.operator, method, path, body);
        (reply.status, reply.json)
    }

    /// Asks for a step until it has come to its end.
    fn until(&self, step: &str, body: &Value, last: &str) -> Value {
        for _ in 0..1_000 {
            let (status, told) = self.ask(Method::POST, &format!("{}{step}", self.path), Some(body.clone()));
            assert_eq!(status, 200, "{told}");
            if told["state"] == last {
                return told;
            }
        }
        panic!("{step} does not end");
    }

    fn begin(&self, file: &File) -> (u16, Value) {
        let head = serde_json::from_str(&file.head.to_line()).unwrap();
        self.ask(Method::POST, "/operator/imports", Some(head))
    }

    fn receive_all(&self, file: &File) {
        let (status, told) = self.begin(file);
        assert_eq!(status, 200, "{told}");
        for (n, part) in (1..).zip(&file.parts) {
            let request = http::Request::put(format!("{}/parts/{n}", self.path))
                .header("authorization", format!("Bearer {}", self.operator));
            let reply = self.sandbox.send(request.body(part.to_bytes()).unwrap());
            assert_eq!(reply.status, 200, "{:?}", reply.json);
        }
    }

    fn bind(&self, key: &str, number: &str) -> u16 {
        bind_to(&self.sandbox, key, &assistant(&self.sandbox, key), number)
    }
}

#[test]
fn a_workspace_that_arrives_has_one_database_and_its_numbers_are_claimed_before_the_hand_over() {
    let from = Cluster::new(1);
    // The first ones are made by both.
    from.workspace(0);
    let (tenant, id) = from.workspace(0);
    let id = WorkspaceId::from_stored(id);
    let number = tenant.binding().id;
    let services = frozen(&from, &tenant, &id);
    let file = File::of(&services, &id);
    let to = Target::new(&id);
    let neighbour = to.sandbox.create_workspace("beside");
    assert_eq!(get(&to.sandbox, tenant.key()).status, 401);

    // Somebody binds the number, in another database, before its page arrives.
    assert_eq!(to.begin(&file).0, 200);
    assert_eq!(to.bind(&neighbour, &number), 200);
    to.receive_all(&file);
    let (status, told) = loop {
        let (status, told) = to.ask(Method::POST, &format!("{}/verify", to.path), Some(json!({})));
        if status != 200 || told["state"] == "arrived" {
            break (status, told);
        }
    };
    assert_eq!((status, &told["error"]["details"]["reason"]), (409, &json!("numbers_taken")), "{told}");
    let unbind = format!("/numbers/{}", number.replace('+', "%2B"));
    assert_eq!(send(&to.sandbox, &neighbour, Method::DELETE, &unbind, None).status, 204);
    let import_id = to.until("/verify", &json!({}), "arrived")["import_id"].as_str().unwrap().to_owned();
    assert_eq!(to.bind(&neighbour, &number), 409, "it is claimed");

    // Canceled, it is anybody's.
    while to.ask(Method::DELETE, &to.path, None).0 != 204 {}
    assert_eq!(to.bind(&neighbour, &number), 200);
    let (status, told) = to.begin(&file);
    assert_eq!((status, &told["error"]["details"]["reason"]), (409, &json!("numbers_taken")), "{told}");
    assert_eq!(send(&to.sandbox, &neighbour, Method::DELETE, &unbind, None).status, 204);

    to.receive_all(&file);
    let again = to.until("/verify", &json!({}), "arrived")["import_id"].as_str().unwrap().to_owned();
    assert_ne!(again, import_id);
    let code = hand_over(&services, &id, &again, None).code.to_text();
    to.until("/open", &json!({"code": code}), "running");
    assert_eq!(get(&to.sandbox, tenant.key()).status, 200);
    assert_eq!(get(&to.sandbox.another_process(), tenant.key()).status, 200, "the directory knows its key");
    assert_eq!(to.bind(&neighbour, &number), 409);
    let bound = send(&to.sandbox, tenant.key(), Method::GET, "/numbers", None).json;
    assert_eq!(bound[0]["number"], json!(number), "{bound}");
}

//! Renders pages of the dashboard, for tests: each with answers as the operations give them.
use serde_json::{Map, Value};
use sidetone_engine::dashboard::frame::{Frame, Page, Provided, Role};
use sidetone_engine::dashboard::pages;
use sidetone_engine::interfaces::generated::Documents;
use sidetone_engine::operations;

/// Pages with answers, by name.
pub fn cases() -> Map<String, Value> {
    serde_json::from_str(include_str!("../dashboard_pages.json")).unwrap()
}

/// The page with this path.
pub fn page_at(path: &str) -> &'static Page {
    pages::PAGES.iter().find(|page| page.path == path).unwrap()
}

/// What an operation takes.
pub fn schema(id: &'static str) -> (&'static str, Value) {
    let operation = operations::by_id(id).unwrap();
    let schemas = Documents::derived().requests(operation).unwrap();
    (id, schemas.body.or(schemas.query).unwrap())
}

fn frame(page: &Page, case: &Value) -> Frame {
    let (path, query) = match case["url"].as_str() {
        Some(url) => url.split_once('?').unwrap_or((url, "")),
        None => (page.path, ""),
    };
    let texts = |name: &str| -> Vec<(String, String)> {
        let pairs = case[name].as_array().cloned().unwrap_or_default();
        pairs
            .iter()
            .map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned()))
            .collect()
    };
    Frame {
        workspace_name: "Blue Door Dental".to_owned(),
        workspace_id: "ws_01m80kbft3dp007vcvy2n4sbhm".to_owned(),
        person_email: "mira@bluedoor.example".to_owned(),
        role: if case["role"] == "member" { Role::Member } else { Role::Admin },
        path: path.to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        csrf: "csrf".to_owned(),
        once: "once".to_owned(),
        now_ms: 1_795_483_200_000,
        origin: "https://voice.bluedoor.example".to_owned(),
        problem: case.get("problem").cloned(),
        base: case["base"].clone(),
        typed: texts("typed"),
        carriers: vec!["twilio", "telnyx", "plivo", "vonage"],
        provided: Provided {
            defaults: vec![("model", "builtin/rules".to_owned()), ("voice", "builtin/tone".to_owned())],
            models: vec!["builtin".to_owned()],
            speech: Vec::new(),
        },
        has_mail: case["has_mail"] != false,
        has_style: case["has_style"] != false,
        notice: case["notice"].as_str().map(str::to_owned),
        secret_once: case.get("secret").cloned(),
        continues: texts("continues"),
        schemas: page.forms.iter().map(|id| schema(id)).collect(),
    }
}

/// The page of a case.
pub fn render(page: &Page, case: &Value) -> String {
    (page.render)(&frame(page, case), case["answers"].as_array().unwrap()).into_string()
}

//! Somebody with a browser in the dashboard: keeps cookies, reads forms, follows no redirect unasked.
use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use http::{Method, Request, header};

use crate::reply::Reply;
use crate::world::World;

const PEOPLE: &str = "/dashboard/people";

/// A browser.
#[derive(Clone)]
pub struct Visitor {
    world: World,
    /// The cookies that the service has set.
    pub cookies: BTreeMap<String, String>,
    /// Whether an error of the service is expected.
    may_fail: bool,
}

impl Visitor {
    /// A browser without cookies, at an address of its own.
    pub fn new(world: &World) -> Self {
        Self { world: world.from_elsewhere(), cookies: BTreeMap::new(), may_fail: false }
    }

    /// A browser without cookies at this address.
    pub fn at(world: &World, address: IpAddr) -> Self {
        Self { world: world.from_address(address), ..Self::new(world) }
    }

    /// One that has signed in with a code.
    #[track_caller]
    pub fn signed_in(world: &World, email: &str) -> Self {
        let mut visitor = Self::new(world);
        visitor.sign_in(email);
        visitor
    }

    /// Signs in with the code from the log.
    #[track_caller]
    pub fn sign_in(&mut self, email: &str) {
        let code = self.ask_for_code(email);
        let reply = self.submit("/dashboard/sign-in/code", "/dashboard/sign-in/code", &[("code", &code)]);
        assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard")), "{reply:?}");
    }

    /// Asks for a code and reads it from the log.
    #[track_caller]
    pub fn ask_for_code(&mut self, email: &str) -> String {
        let told = told_code(email);
        let before = self.world.count_logged(&told);
        let reply = self.submit("/dashboard/sign-in", "/dashboard/sign-in", &[("email", email)]);
        assert_eq!(reply.status, 303, "{reply:?}");
        code_in(&self.world.logged_after(&told, before))
    }

    /// The last code for an address.
    #[track_caller]
    pub fn code_of(&self, email: &str) -> String {
        code_in(&self.world.logged(&told_code(email)))
    }

    /// The path of the last link for an address.
    #[track_caller]
    pub fn link_of(&self, email: &str) -> String {
        let line = self.world.logged(&told_code(email));
        let at = line.find("/dashboard/sign-in/link?").expect("a link");
        line[at..].split(')').next().expect("a link").to_owned()
    }

    /// `GET path`
    pub fn get(&mut self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], Bytes::new())
    }

    /// Sends a form with exactly these fields.
    pub fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.post_with(path, fields, &[])
    }

    /// The same with further headers.
    pub fn post_with(&mut self, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Reply {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let headers = [&[("content-type", "application/x-www-form-urlencoded")], headers].concat();
        self.send(Method::POST, path, &headers, Bytes::from(body.finish()))
    }

    /// Loads `page` and sends its form to `action`, with the proof that it holds.
    #[track_caller]
    pub fn submit(&mut self, page: &str, action: &str, fields: &[(&str, &str)]) -> Reply {
        let csrf = self.csrf(page);
        self.post(action, &[&[("_csrf", csrf.as_str())], fields].concat())
    }

    /// The same for the form of the page at the same path, in a host that may answer with an error of its own.
    pub fn submit_any(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let csrf = self.csrf(path);
        self.may_fail = true;
        self.post(path, &[&[("_csrf", csrf.as_str())], fields].concat())
    }

    /// The proof in the forms of a page.
    #[track_caller]
    pub fn csrf(&mut self, page: &str) -> String {
        let reply = self.get(page);
        assert_eq!(reply.status, 200, "{page}: {reply:?}");
        let html = text(&reply);
        let at = html.find("name=\"_csrf\" value=\"").expect("a form") + 20;
        html[at..].split('"').next().expect("a value").to_owned()
    }

    /// Runs an operation with a form, and returns to `back`.
    #[track_caller]
    pub fn act(&mut self, operation: &str, back: &str, fields: &[(&str, &str)]) -> Reply {
        let path = format!("/dashboard/do/{operation}");
        self.submit(back, &path, &[&[("_back", back)], fields].concat())
    }

    /// The API, with a key that is made in the workspace that is open.
    #[track_caller]
    pub fn api(&mut self, world: &World) -> World {
        let made = self.act("create_api_key", "/dashboard/keys", &[("name", "Test")]);
        world.with_key(key_in(&text(&made)))
    }

    /// The id of the workspace that is open.
    #[track_caller]
    pub fn workspace(&mut self) -> String {
        self.get("/dashboard/api/workspace")["id"].as_str().expect("a workspace").to_owned()
    }

    /// Invites somebody to it; the path of the link.
    #[track_caller]
    pub fn invite(&mut self, email: &str, role: &str) -> String {
        let reply = self.act("invite_person", PEOPLE, &[("email", email), ("role", role)]);
        assert_eq!(reply.status, 200, "{reply:?}");
        let page = text(&reply);
        let at = page.find("/dashboard/join?token=").expect("a link");
        page[at..].split(['<', '"']).next().expect("a link").to_owned()
    }

    /// Accepts the invitation of a link, and returns the status. The workspace is open then.
    #[track_caller]
    pub fn join(&mut self, link: &str) -> u16 {
        let token = link.split("token=").nth(1).expect("a token");
        self.submit("/dashboard", "/dashboard/do/join_workspace", &[("token", token)]).status
    }

    /// The account of somebody in the workspace that is open.
    #[track_caller]
    pub fn account_of(&mut self, email: &str) -> String {
        let page = text(&self.get(PEOPLE));
        let row = page.split("<tr>").find(|row| row.contains(email) && row.contains("acct_"));
        let row = row.expect("a person");
        row[row.find("acct_").expect("an id")..][..31].to_owned()
    }

    /// Any request with the cookies.
    pub fn send(&mut self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request = request.header(header::COOKIE, cookies.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let reply = self.world.send_unchecked(request.body(body).expect("a valid path"));
        assert!(reply.status < 500 || self.may_fail, "{reply:?}");
        for cookie in reply.headers.get_all(header::SET_COOKIE) {
            self.keep(cookie.to_str().expect("a cookie is ASCII"));
        }
        reply
    }

    fn keep(&mut self, cookie: &str) {
        let (pair, attributes) = cookie.split_once("; ").expect("attributes");
        for needed in ["Path=/", "HttpOnly", "SameSite=Lax"] {
            assert!(attributes.split("; ").any(|one| one == needed), "{cookie}");
        }
        let (name, value) = pair.split_once('=').expect("a value");
        match value.is_empty() {
            true => self.cookies.remove(name),
            false => self.cookies.insert(name.to_owned(), value.to_owned()),
        };
    }
}

/// The text of a page.
pub fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

/// The key that a page shows once.
pub fn key_in(page: &str) -> &str {
    let at = page.find("sidetone_").expect("a key");
    &page[at..at + "sidetone_".len() + 49]
}

/// What the log says before a code.
fn told_code(email: &str) -> String {
    format!("the sign-in code for {email} is ")
}

#[track_caller]
fn code_in(line: &str) -> String {
    line.split(" is ").nth(1).and_then(|rest| rest.get(..6)).expect("six digits").to_owned()
}

//! Live calls at the edge: each has a Durable Object of its own, in which its conversation runs. So every isolate reaches it,
//! by the call's id, to tell it or to follow it. The object stores nothing: when the platform ends it, the call's job ends the
//! call as after any crash.
use std::sync::Arc;

use sidetone_engine::base::ids::{CallId, Id};
use sidetone_engine::ports::{BoxFuture, Clock, Home, Homes, Live, SocketHolder};
use worker::{DurableObject, Env, ObjectNamespace, Request, Response, State, durable_object};
use worker::{wasm_bindgen, web_sys};

use crate::server;
use crate::system::PlatformClock;

thread_local! {
    /// The calls whose objects are in this isolate.
    static HOMES: Homes = Homes::new(Arc::new(PlatformClock));
}

/// The binding of the objects.
pub const LIVE: &str = "LIVE";
/// Requests from isolates to an object. Those of clients are for the addresses of sockets, and never for these.
const ORIGIN: &str = "https://live.call";
const SIGNAL: &str = "signal";
const FOLLOW: &str = "follow";

fn homes() -> Homes {
    HOMES.with(Clone::clone)
}

/// The homes of all calls.
pub struct EdgeHomes(ObjectNamespace);

impl EdgeHomes {
    /// With the binding of the objects.
    pub fn new(objects: ObjectNamespace) -> Self {
        Self(objects)
    }

    async fn ask(&self, call_id: &CallId, path: &str) -> worker::Result<String> {
        let object = self.0.get_by_name(call_id.as_str())?;
        object.fetch_with_str(&format!("{ORIGIN}/{path}")).await?.text().await
    }
}

impl Live for EdgeHomes {
    fn own(&self, call_id: &CallId) -> Home {
        homes().own(call_id)
    }

    fn signal<'a>(&'a self, call_id: &'a CallId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // A signal that is lost is a delay.
            let _ = self.ask(call_id, &format!("{SIGNAL}/{call_id}")).await;
        })
    }

    fn follow<'a>(&'a self, call_id: &'a CallId, seen: u64, for_ms: u64) -> BoxFuture<'a, u64> {
        Box::pin(async move {
            let told = self.ask(call_id, &format!("{FOLLOW}/{call_id}/{seen}/{for_ms}")).await;
            match told.map(|change| change.parse()) {
                Ok(Ok(change)) => change,
                _ => {
                    PlatformClock.sleep(for_ms).await;
                    seen
                }
            }
        })
    }

    fn visit(&self, call_id: &CallId, visit: u32) -> Option<SocketHolder> {
        // The request for a socket is answered in the object of its call.
        homes().visit(call_id, visit)
    }
}

/// Passes the request for a call's socket on to its object.
pub async fn forward(
    env: &Env,
    call_id: &CallId,
    request: web_sys::Request,
) -> worker::Result<web_sys::Response> {
    let object = env.durable_object(LIVE)?.get_by_name(call_id.as_str())?;
    Ok(object.fetch_with_request(request.into()).await?.into())
}

/// The home of one live call.
#[durable_object(fetch)]
pub struct LiveCall {
    state: State,
    env: Env,
}

impl DurableObject for LiveCall {
    fn new(state: State, env: Env) -> Self {
        Self { state, env }
    }

    async fn fetch(&self, request: Request) -> worker::Result<Response> {
        let path = request.path();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match parts[..] {
            [SIGNAL, call_id] => {
                homes().signal(&CallId::from_stored(call_id)).await;
                Response::empty()
            }
            [FOLLOW, call_id, seen, for_ms] => {
                let number = |text: &str| text.parse().unwrap_or(0);
                let call_id = CallId::from_stored(call_id);
                let change = homes().follow(&call_id, number(seen), number(for_ms)).await;
                Response::ok(change.to_string())
            }
            _ => Ok(server::hold(request.inner(), &self.env, &self.state).await?.into()),
        }
    }
}

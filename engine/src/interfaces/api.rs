//! Shared by REST and MCP: the services, everything derived from the operation table, and the count of wrong keys.
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Response, header};

use crate::base::error::{Code, Error};
use crate::base::ids::RequestId;
use crate::base::response::{error_response, with_incident};
use crate::config::Config;
use crate::interfaces::Interfaces;
use crate::interfaces::generated::Documents;
use crate::interfaces::host::Bodies;
use crate::interfaces::host::probes::Probes;
use crate::interfaces::host::response_budget::ResponseBudget;
use crate::interfaces::mounted::Mounted;
use crate::interfaces::throttle::Throttle;
use crate::operations::auth::{self, Credential};
use crate::operations::context::{Context, Principal};
use crate::ports::{Incoming, Ports};
use crate::services::Services;
use crate::storage::fault::Fault;

/// The state of the interfaces, with the database that a request is about.
#[derive(Clone)]
pub struct Api {
    services: Services,
    shared: Arc<Shared>,
    /// Whether the key was looked up where it belonged the last time: there, it may not be wrong but have moved.
    is_place_remembered: bool,
}

/// The same for every database.
struct Shared {
    interfaces: Interfaces,
    throttle: Mutex<Throttle>,
    bodies: Bodies,
    responses: ResponseBudget,
    probes: Probes,
    dashboard: Mounted,
}

impl Api {
    /// Builds the interfaces from settings and ports. Fails only if the operation table is inconsistent.
    pub fn new(
        config: Config,
        ports: Ports,
        documents: Documents,
        dashboard: Mounted,
    ) -> Result<Self, Fault> {
        let interfaces = Interfaces::new(&config, documents)?;
        let shared = Shared {
            interfaces,
            throttle: Mutex::default(),
            bodies: Bodies::default(),
            responses: ResponseBudget::default(),
            probes: Probes::default(),
            dashboard,
        };
        let services = Services::new(config, ports);
        Ok(Self { services, shared: Arc::new(shared), is_place_remembered: false })
    }

    /// With the database that these services have.
    pub(crate) fn with(&self, services: Services) -> Self {
        Self { services, ..self.clone() }
    }

    /// The same where a key was found before: if it is not there any more, it is not counted as wrong.
    pub(crate) fn remembering(&self, services: Services) -> Self {
        Self { is_place_remembered: true, ..self.with(services) }
    }

    /// Settings, ports and ids.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Memory for bodies.
    pub(crate) fn bodies(&self) -> &Bodies {
        &self.shared.bodies
    }

    /// What `/healthz` and `/readyz` have found last.
    pub(crate) fn probes(&self) -> &Probes {
        &self.shared.probes
    }

    /// What answers the requests to the dashboard.
    pub(crate) fn dashboard(&self) -> Mounted {
        self.shared.dashboard
    }

    /// The interfaces derived from the operation table.
    pub fn interfaces(&self) -> &Interfaces {
        &self.shared.interfaces
    }

    /// The memory for responses that are being sent.
    pub(crate) fn responses(&self) -> &ResponseBudget {
        &self.shared.responses
    }

    /// The address under which a request without a valid key is counted.
    pub(crate) fn client_address(&self, incoming: &Incoming) -> IpAddr {
        let trusted = &self.services.config().trusted_proxies;
        auth::client_address(incoming.request.headers(), incoming.peer, trusted)
    }

    /// The state of a request, with the credential from its Authorization header.
    pub(crate) fn context(&self, headers: &HeaderMap, now_ms: i64) -> Result<Context, Error> {
        match Credential::from_headers(headers) {
            Credential::Absent => Err(auth::missing_key()),
            Credential::Malformed => Ok(Context::new(self.services.clone(), now_ms, Principal::Nobody)),
            Credential::Key { hash } => Ok(Context::new(self.services.clone(), now_ms, Principal::Key(hash))),
        }
    }

    /// The response to a fault. Counts wrong keys, and rejects an address that has sent too many of them.
    pub(crate) fn refuse(
        &self,
        fault: Fault,
        incoming: &Incoming,
        now_ms: i64,
        request_id: &RequestId,
    ) -> Response<Bytes> {
        let (error, incident) = fault.split();
        let error = self.count_wrong_key(&error, incoming, now_ms).unwrap_or(error);
        with_incident(error_response(&error, request_id), incident)
    }

    /// Whether the address of a request has sent too many wrong keys: for the next one, not every database is asked.
    pub(crate) fn is_throttled(&self, incoming: &Incoming, now_ms: i64) -> bool {
        let address = self.client_address(incoming);
        let throttle = self.shared.throttle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        throttle.is_over(address, now_ms)
    }

    /// The refusal of a key where it was found before, which it still belongs to: it counts as wrong now.
    pub(crate) fn wrong_where_remembered(
        &self,
        there: Self,
        refusal: Response<Bytes>,
        incoming: &Incoming,
        request_id: &RequestId,
    ) -> (Self, Response<Bytes>) {
        let throttled = self.count_wrong_key(&auth::wrong_key(), incoming, self.services.now().ms());
        let response = throttled.map_or(refusal, |error| error_response(&error, request_id));
        (there, response)
    }

    /// The error that replaces `error` after an address has sent too many wrong keys.
    fn count_wrong_key(&self, error: &Error, incoming: &Incoming, now_ms: i64) -> Option<Error> {
        let presented = incoming.request.headers().contains_key(header::AUTHORIZATION);
        if error.code != Code::Unauthorized || !presented || self.is_place_remembered {
            return None;
        }
        let address = self.client_address(incoming);
        let wait_s = {
            let mut throttle = self.shared.throttle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            throttle.wrong_key(address, now_ms)
        };
        let message = "Too many wrong API keys from this address. Wait, then try with a valid key.";
        let mut throttled = Error::new(Code::TooManyInvalidCredentials, message);
        throttled.retry_after_s = Some(wait_s?);
        Some(throttled)
    }
}

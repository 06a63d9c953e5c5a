//! The four carriers of one test process, and the service with an account at each.
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::plivo::PlivoWire;
use super::server::CarrierServer;
use super::telnyx::TelnyxWire;
use super::twilio::TwilioWire;
use super::vonage::VonageWire;
use crate::fakes;

/// The service's public URL: carriers connect their media only to `wss://`.
pub const BASE_URL: &str = "https://sidetone.example";

/// The carriers' names.
pub const PROVIDERS: [&str; 4] = ["twilio", "telnyx", "plivo", "vonage"];

/// The carrier that reports no price.
pub const PROVIDER_WITHOUT_PRICES: &str = "twilio";
/// The configured rate of that carrier, in millionths of a US dollar per minute.
pub const RATE_MICROUSD: i64 = 14_000;

/// Every service under test has an account with this carrier.
const DEFAULT: &str = "twilio";

/// Settings of the account with the default carrier.
pub fn default_account() -> Vec<(&'static str, String)> {
    Carriers::shared().get(DEFAULT).settings()
}

/// Whether this is a URL of the default carrier's API.
pub fn is_default_carrier(url: &str) -> bool {
    url.starts_with(&format!("http://{}/", Carriers::shared().get(DEFAULT).address()))
}

/// The running fakes of all carriers.
pub struct Carriers {
    servers: [CarrierServer; 4],
    /// For tests of features that only Vonage has.
    pub vonage: Arc<VonageWire>,
}

impl Carriers {
    /// Starts all four.
    pub fn start() -> Self {
        let vonage = Arc::new(VonageWire::default());
        let servers = [
            CarrierServer::start(TwilioWire),
            CarrierServer::start(TelnyxWire),
            CarrierServer::start(PlivoWire),
            CarrierServer::start_shared(vonage.clone()),
        ];
        Self { servers, vonage }
    }

    /// The carriers of this process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Carriers> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The fake of one carrier.
    #[track_caller]
    pub fn get(&self, provider: &str) -> &CarrierServer {
        let found = self.servers.iter().find(|server| server.provider() == provider);
        found.unwrap_or_else(|| panic!("{provider} is not a carrier"))
    }

    /// All fakes.
    pub fn iter(&self) -> impl Iterator<Item = &CarrierServer> {
        self.servers.iter()
    }

    /// Settings of a service with an account at each carrier and with the fake model provider. Each value is one line, as settings
    /// files require.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = fakes::settings();
        settings.push(("SIDETONE_BASE_URL", BASE_URL.to_owned()));
        settings
            .push(("SIDETONE_CARRIER_RATES", json!({PROVIDER_WITHOUT_PRICES: RATE_MICROUSD}).to_string()));
        let accounts = self.servers.iter().flat_map(CarrierServer::settings);
        settings.extend(accounts.map(|(name, value)| (name, value.replace('\n', "\\n"))));
        settings
    }

    /// Sets the address of the service.
    pub fn serve(&self, address: SocketAddr) {
        for server in &self.servers {
            server.serve(address, BASE_URL);
        }
    }
}

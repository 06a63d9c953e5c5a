//! How long the service remembers which request a token of Vonage's came with.
use sidetone_engine::base::limits::CARRIER_SIGNATURE_AGE_MS_MAX;
use sidetone_engine::sql;
use sidetone_tests::fakes::carrier::CallbackRequest;

use super::*;

struct VonageDesk {
    world: World,
    wire: VonageWire,
    call: PhoneCall,
}

impl VonageDesk {
    fn new() -> Self {
        let wire = VonageWire::default();
        let settings = wire.settings("http://vonage.example");
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let world = World::with_settings(&settings);
        let number = json!({"assistant_id": world.assistant().id, "provider": "vonage"});
        world.put(format!("/numbers/{OURS}"), number).ok();
        let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
        call.carrier_call_id = "63f61863-4a51-4f6b-86e1-46edebcf9356".to_owned();
        call.voice_url = format!("{BASE_URL}/carriers/vonage/voice");
        call.status_url = format!("{BASE_URL}/carriers/vonage/status");
        Self { world, wire, call }
    }

    fn sandbox(&self) -> &Sandbox {
        self.world.sandbox().unwrap()
    }

    fn announcement(&self, now_s: i64) -> CallbackRequest {
        let public = Public { base_url: BASE_URL.to_owned() };
        self.wire.callback(&public, &self.call, &CallEvent::Incoming, 0, now_s).unwrap()
    }

    fn send(&self, callback: &CallbackRequest) -> u16 {
        let path = callback.url.strip_prefix(BASE_URL).unwrap();
        let mut request = http::Request::builder().method(callback.method).uri(path);
        for (name, value) in &callback.headers {
            request = request.header(*name, value);
        }
        self.sandbox().send(request.body(Bytes::from(callback.body.clone())).unwrap()).status
    }

    /// How many tokens are stored.
    fn tokens(&self) -> i64 {
        let count = sql!("SELECT COUNT(*) AS tokens FROM carrier_tokens");
        let rows = block_on(self.sandbox().services().ports().database.read(vec![count])).unwrap();
        rows[0].first().unwrap().integer("tokens").unwrap()
    }

    fn sweep(&self) {
        while block_on(self.sandbox().services().sweep()).unwrap().more {}
    }
}

/// The token counts for as long as it would be accepted, also one from five minutes in the future.
#[test]
fn a_token_is_remembered_until_it_is_too_old() {
    for ahead_ms in [0, CARRIER_SIGNATURE_AGE_MS_MAX] {
        let desk = VonageDesk::new();
        let genuine = desk.announcement(START_S + ahead_ms / 1_000);
        let replay =
            CallbackRequest { url: genuine.url.replace(&THEIRS[1..], "447700900000"), ..genuine.clone() };
        assert_ne!(replay.url, genuine.url);
        assert_eq!((desk.send(&genuine), desk.tokens()), (200, 1));
        assert_eq!((desk.send(&genuine), desk.send(&replay), desk.tokens()), (200, 403, 1));
        desk.sandbox().advance(ahead_ms + CARRIER_SIGNATURE_AGE_MS_MAX);
        desk.sweep();
        assert_eq!(
            (desk.send(&replay), desk.send(&genuine), desk.tokens()),
            (403, 200, 1),
            "its last moment"
        );
        desk.sandbox().advance(1);
        desk.sweep();
        assert_eq!((desk.send(&replay), desk.send(&genuine), desk.tokens()), (403, 403, 0), "too old");
        assert_eq!(desk.world.get("/calls").ok()["stats"]["total"], 1);
    }
}

/// Nobody but Vonage fills the table.
#[test]
fn forged_tokens_are_not_stored() {
    let desk = VonageDesk::new();
    for nth in 0..10 {
        let mut forged = desk.announcement(START_S);
        let (_, token) = &mut forged.headers[0];
        let (signed, _) = token.rsplit_once('.').unwrap();
        *token = format!("{signed}.{}", STANDARD.encode([nth; 30]));
        assert_eq!(desk.send(&forged), 403);
    }
    assert_eq!(desk.send(&desk.announcement(START_S - 301)), 403);
    assert_eq!(desk.tokens(), 0);
}

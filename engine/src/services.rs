//! What every part of the service needs: the operator's settings, the ports that the host lends, ids, and the permits
//! for live conversations.
use std::sync::Arc;

use crate::base::ids::Ids;
use crate::base::permits::Permits;
use crate::config::Config;
use crate::ports::Ports;

/// Settings and ports of one process. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    ports: Ports,
    ids: Ids,
    live_permits: Arc<Permits>,
}

impl Services {
    /// Puts settings and ports together.
    pub fn new(config: Config, ports: Ports) -> Self {
        let inner = Inner { config, ports, ids: Ids::default(), live_permits: Arc::default() };
        Self { inner: Arc::new(inner) }
    }

    /// The operator's settings.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The ports that the host lends.
    pub fn ports(&self) -> &Ports {
        &self.inner.ports
    }

    /// A new id with `prefix`.
    pub fn id(&self, prefix: &str) -> String {
        let Ports { clock, random, .. } = self.ports();
        self.inner.ids.generate(prefix, clock.now_ms(), |bytes| random.fill(bytes))
    }

    /// The permits for live conversations in this process.
    pub(crate) fn live_permits(&self) -> &Arc<Permits> {
        &self.inner.live_permits
    }
}

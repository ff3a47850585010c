//! What changes on the server's side, for everybody who listens in this process.

use std::sync::Arc;

use mcp::Changed;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// How many changes may wait for a listener. One that is slower than that misses the oldest.
const WAITING_MAX: usize = 256;

#[derive(Debug, Clone)]
pub struct Feed(Sender<Arc<Changed>>);

impl Default for Feed {
    fn default() -> Self {
        Self(broadcast::channel(WAITING_MAX).0)
    }
}

impl Feed {
    pub fn tell(&self, changed: Changed) {
        // Where nobody listens there is nobody to tell.
        let _ = self.0.send(Arc::new(changed));
    }

    pub(crate) fn listen(&self) -> Receiver<Arc<Changed>> {
        self.0.subscribe()
    }
}

//! `--watch`: runs in the browser, while they go on.
//!
//! The [server](crate::web) serves the pages without data, and for each a stream of events that fills it. Every event is the whole page at that
//! moment. So the server keeps no state for a browser, and a slow or late browser gets the newest page.
//!
//! The server is for the users of this machine. It listens on the loopback interface unless it is given an address. It answers only requests
//! that name it by an address or as localhost. So a foreign page whose name resolves to this machine (DNS rebinding) reads nothing.

mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::live::Live;
use crate::web::Server;

/// How long the server is there after all runs have ended, so that a page that has just been opened is filled.
const LINGERS: Duration = Duration::from_secs(3);

/// A server that shows runs.
pub(super) struct Watch {
    server: Server,
    live: Arc<Live>,
}

impl Watch {
    /// Begins to serve at this address; port 0 is any that is free.
    pub(super) fn start(address: SocketAddr, live: Arc<Live>) -> anyhow::Result<Watch> {
        Ok(Watch { server: Server::start(address, server::router(live.clone()))?, live })
    }

    /// The URL to open in a browser.
    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// Ends the view a moment after the runs, or at once if `hurry` returns true.
    pub(super) fn finish(self, hurry: impl Fn() -> bool) {
        self.live.end();
        let until = Instant::now() + LINGERS;
        while Instant::now() < until && !hurry() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.live.end();
    }
}

#[cfg(test)]
mod tests;

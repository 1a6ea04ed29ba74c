//! `--watch`: runs in the browser, while they go on.
//!
//! A small HTTP server on its own thread serves the pages without data, and for each a stream of server-sent events (WHATWG HTML, section 9.2)
//! that fills it. Every event is the whole page at that moment. So the server keeps no state for a browser, and a slow or late browser gets
//! the newest page. The server is axum: it is well kept, and a waiting connection costs no thread. The front of all
//! web servers stands before it ([`transom_device::serving::front`]).
//!
//! The server is for the users of this machine. It listens on the loopback interface unless it is given an address. It answers only requests
//! that name it by an address or as localhost. So a foreign page whose name resolves to this machine (DNS rebinding) reads nothing.

mod address;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use tokio::sync::oneshot;

use super::live::Live;
pub(crate) use address::parse as parse_address;

/// How long the server is there after all runs have ended, so that a page that has just been opened is filled.
const LINGERS: Duration = Duration::from_secs(3);

/// A server that shows runs.
pub(super) struct Watch {
    address: SocketAddr,
    live: Arc<Live>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to serve at this address; port 0 is any that is free.
    pub(super) fn start(address: SocketAddr, live: Arc<Live>) -> anyhow::Result<Watch> {
        let (front, runtime) = crate::web::listen(address)?;
        let address = front.address();
        let (stop, stopped) = oneshot::channel();
        let shown = live.clone();
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || {
                // An error of the listener ends the view, and not the runs.
                let served = runtime.block_on(server::serve(front, shown, stopped));
                if let Err(error) = served {
                    crate::output::note(format_args!(
                        "the runs cannot be watched any more: {error}"
                    ));
                }
                // A browser that has not taken the last event by now does not get it.
                runtime.shutdown_background();
            })
            .context("cannot start a thread")?;
        Ok(Watch { address, live, stop: Some(stop), thread: Some(thread) })
    }

    /// The URL to open in a browser.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends the view a moment after the runs, or at once if `hurry` returns true.
    pub(super) fn finish(mut self, hurry: impl Fn() -> bool) -> anyhow::Result<()> {
        self.live.end();
        let until = Instant::now() + LINGERS;
        while Instant::now() < until && !hurry() {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.stop().ok_or_else(|| anyhow!("the server of the view has failed"))
    }

    fn stop(&mut self) -> Option<()> {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        self.thread.take().map_or(Some(()), |thread| thread.join().ok())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.live.end();
        self.stop();
    }
}

#[cfg(test)]
mod tests;

//! Private networks for programs' sockets, made for users who may not make them.
//!
//! Each has a thread, which lives as long as its client holds the socket. A network has no way out but the client's device, so nothing is lent that the policy
//! would have to guard: a rule for the user is enough, and says how many.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use transom_device::passing;
use transom_device::private::{Client, serve_client};

use crate::protocol::{ErrorKind, Refused};

/// So many networks there are at most, beside root's.
pub(super) const MOST: usize = 1024;
/// Each has its namespace, three netlink sockets and the client's; sockets come and go in between.
pub(super) const MOST_DESCRIPTORS: usize = 6 * MOST;

/// The networks that are served.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// The user, and a mark that the thread holds too.
    alive: Vec<(u32, Arc<()>)>,
}

impl Networks {
    /// How many a user has, and how many there are.
    pub(super) fn count(&mut self, user: u32) -> (usize, usize) {
        self.alive.retain(|(_, alive)| Arc::strong_count(alive) > 1);
        (self.alive.iter().filter(|(owner, _)| *owner == user).count(), self.alive.len())
    }

    /// Serves one more. Gives the client's end.
    pub(super) fn start(&mut self, client: Client) -> Result<OwnedFd, Refused> {
        let failed = |error| Refused::new(ErrorKind::Failed, format!("no network: {error}"));
        let (near, far) = passing::pair().map_err(failed)?;
        let alive = Arc::new(());
        let theirs = Arc::clone(&alive);
        let thread = thread::Builder::new().name("network".into()).spawn(move || {
            // Its client has been told, or has gone.
            let _ = serve_client(near, client);
            drop(theirs);
        });
        thread.map_err(failed)?;
        self.alive.push((client.user, alive));
        Ok(far)
    }
}

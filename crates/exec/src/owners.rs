//! The makers of the programs' sockets, where they have not the supervisor's own user, group and control group.
//!
//! What the supervisor does outside for such a socket, it does as the socket's maker: firewalls, routes and programs at control groups ask for it. On Linux a
//! socket stays its maker's, whoever it is passed to, and so here.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use transom_device::private::Caller;

/// So many sockets of others are remembered. More of them are refused, since they would be the supervisor's own outside.
const MAX_SOCKETS: usize = 1 << 18;

/// The makers of sockets, by the numbers of these.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    by_cookie: HashMap<u64, Arc<Caller>>,
    /// The one before: it is the same again as a rule.
    last: Option<Arc<Caller>>,
}

impl Owners {
    /// Notes who a new socket belongs to.
    pub(crate) fn note(&mut self, cookie: u64, caller: Caller) -> io::Result<()> {
        if self.by_cookie.len() >= MAX_SOCKETS {
            return Err(io::Error::from_raw_os_error(libc::ENFILE));
        }
        let known = self.last.take().filter(|last| **last == caller);
        let caller = known.unwrap_or_else(|| Arc::new(caller));
        self.by_cookie.insert(cookie, Arc::clone(&caller));
        self.last = Some(caller);
        Ok(())
    }

    /// Nothing if it is the supervisor's own.
    pub(crate) fn of(&self, cookie: u64) -> Option<Arc<Caller>> {
        self.by_cookie.get(&cookie).cloned()
    }

    /// Whether all sockets are the supervisor's own.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_cookie.is_empty()
    }

    /// A socket has ended. If that is not told, it is remembered for ever. To look for those that are left would be wrong: the kernel lists no socket that is
    /// neither bound nor connected, and one that is forgotten becomes the supervisor's.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.by_cookie.remove(&cookie);
    }
}

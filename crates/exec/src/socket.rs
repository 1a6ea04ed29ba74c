//! A socket as the supervisor knows it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use libc::c_int;
use transom_net::TcpListener;

use crate::listening::Listening;
use crate::options::Settings;
use crate::outer::OuterConnection;
use crate::pair;
use crate::pump::Pump;
use crate::supervisor::Watcher;

/// One socket. It is known by the inode of the program's end.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) inode: u64,
    /// Inodes are used again; this number is not.
    pub(crate) serial: u64,
    /// Our end of the pair.
    pub(crate) ours: OwnedFd,
    /// Whether room in the pair is reported.
    pub(crate) room_watched: bool,
    /// Whether it is a socket of IPv6.
    pub(crate) v6: bool,
    pub(crate) state: State,
    pub(crate) settings: Settings,
    /// The error for `SO_ERROR`, which tells it once.
    pub(crate) error: Option<c_int>,
    /// The connection is established, and no call of `connect` has returned 0 for it yet.
    pub(crate) connect_unreported: bool,
    /// The thread and the descriptor by which it was last used.
    pub(crate) last_used_as: (u32, i32),
}

/// The state of a socket.
#[derive(Debug)]
pub(crate) enum State {
    /// New: no call has changed it.
    New,
    /// It has an address.
    Bound(Bound),
    Connecting(Connecting),
    Connected(Pump),
    Listening(Listening),
}

/// An address that is kept for a socket.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) local: SocketAddr,
    pub(crate) holder: AddressHolder,
}

/// The holder of an address.
#[derive(Debug)]
pub(crate) enum AddressHolder {
    /// A listener that takes nothing.
    Transom(#[expect(dead_code, reason = "it is held")] TcpListener),
    Kernel(OwnedFd),
}

/// A connection that is on its way.
#[derive(Debug)]
pub(crate) struct Connecting {
    pub(crate) outer: OuterConnection,
    /// The program's end, for as long as it is needed to make it writable. Meanwhile our end does not hear that the program closes its own: then the
    /// attempt goes on until it has come to an end.
    pub(crate) theirs: OwnedFd,
    /// How many bytes fill it, so that it is not writable.
    pub(crate) filled: usize,
    /// The calls that wait for it.
    pub(crate) waiting: Vec<u64>,
}

impl Socket {
    pub(crate) fn new(inode: u64, serial: u64, ours: OwnedFd, v6: bool, state: State) -> Self {
        Socket {
            inode,
            serial,
            ours,
            room_watched: false,
            v6,
            state,
            settings: Settings::default(),
            error: None,
            connect_unreported: false,
            last_used_as: (0, -1),
        }
    }

    /// The connection was made: data may flow.
    pub(crate) fn open(&mut self, outer: OuterConnection) {
        // A socket of the kernel's was told before.
        if matches!(outer, OuterConnection::Transom(_)) {
            self.settings.apply(&outer);
        }
        self.state = State::Connected(Pump::new(outer));
    }

    /// Gives a watcher a sample of the connection, if it is Transom's.
    pub(crate) fn sample_for_watcher(&self, watcher: &mut dyn Watcher, last: bool) {
        let State::Connected(pump) = &self.state else { return };
        let outer = &pump.outer;
        if let (Ok(local), Ok(peer), Some(info)) =
            (outer.local_addr(), outer.peer_addr(), self.info())
        {
            watcher.sample(self.serial, [local, peer], &info, last);
        }
    }

    /// Whether the program has shut down a listener for reading.
    pub(crate) fn is_listener_shut_down(&self) -> bool {
        matches!(self.state, State::Listening(_)) && !pair::program_still_reads(&self.ours)
    }

    /// The outer connection, if there is one.
    pub(crate) fn outer(&self) -> Option<&OuterConnection> {
        match &self.state {
            State::Connecting(connecting) => Some(&connecting.outer),
            State::Connected(pump) => Some(&pump.outer),
            State::New | State::Bound(_) | State::Listening(_) => None,
        }
    }
}

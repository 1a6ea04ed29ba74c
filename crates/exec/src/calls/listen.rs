//! `listen`.

use transom_device::intercept::Call;
use transom_net::TcpListener;
use transom_stack::listener::ListenConfig;

use super::{Arguments, Outcome, fail};
use crate::address;
use crate::listening::{Listening, Source, listen_at_loopback, listen_kernel};
use crate::socket::{AddressHolder, State};
use crate::supervisor::Supervisor;

/// As many connections wait at a listener at most (`net.core.somaxconn`).
const MAX_BACKLOG: usize = 4096;

impl Supervisor {
    pub(super) fn listen(&mut self, call: &Call) -> Outcome {
        let inode = self.target_inode(call)?;
        let backlog = usize::try_from(call.int(1)).unwrap_or(MAX_BACKLOG).clamp(1, MAX_BACKLOG);
        let socket = self.socket_with_inode(inode)?;
        let (v6, v6_only) = (socket.v6, socket.settings.v6_only());
        let fast_open = socket.settings.fast_open();
        let bound = match std::mem::replace(&mut socket.state, State::New) {
            State::Bound(bound) => bound,
            State::New => self.reserve_address(address::unspecified(v6), v6_only)?,
            State::Listening(mut listening) => {
                listening.backlog = backlog;
                socket.state = State::Listening(listening);
                self.take_connections(inode);
                return Ok(0);
            }
            other @ (State::Connecting(_) | State::Connected(_)) => {
                socket.state = other;
                return fail(libc::EINVAL);
            }
        };
        let local = bound.local;
        let mut sources = Vec::new();
        match (bound.holder, &self.setup.stack) {
            (AddressHolder::Kernel(socket), _) => sources.push(listen_kernel(socket, backlog)?),
            (holder @ AddressHolder::Transom(_), Some(stack)) => {
                drop(holder);
                let config =
                    ListenConfig { backlog, v6_only, fast_open, ..ListenConfig::default() };
                let listener = TcpListener::bind_with(stack, local, config)?;
                listener.set_nonblocking(true)?;
                sources.push(Source::Transom(listener));
                if local.ip().to_canonical().is_unspecified() {
                    sources.extend(listen_at_loopback(local, v6_only, backlog));
                }
            }
            // Transom holds no address without Transom.
            (AddressHolder::Transom(_), None) => return fail(libc::EOPNOTSUPP),
        }
        for source in &sources {
            self.watch_source(inode, source)?;
        }
        let listening = Listening {
            local,
            sources,
            queue: Default::default(),
            waiting: Default::default(),
            backlog,
        };
        let socket = self.socket_with_inode(inode)?;
        socket.state = State::Listening(listening);
        // A shutdown of the program's for what comes in shows in no other event.
        socket.room_watched = true;
        self.watch_room(inode);
        Ok(0)
    }
}

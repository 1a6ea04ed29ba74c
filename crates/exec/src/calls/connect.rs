//! `bind` and `connect`.

use std::net::{IpAddr, SocketAddr};

use transom_device::intercept::Call;
use transom_net::TcpListener;
use transom_stack::listener::ListenConfig;
use transom_stack::mapped::is_mapped;

use super::{Arguments, Outcome, Refusal, fail};
use crate::address;
use crate::ledger::is_time_to_purge;
use crate::listening::bind_kernel;
use crate::outer::{ConnectProgress, OuterConnection, errno_of, kernel_socket};
use crate::pair;
use crate::program;
use crate::socket::{AddressHolder, Bound, Connecting, State};
use crate::supervisor::Supervisor;

impl Supervisor {
    pub(super) fn bind(&mut self, call: &Call) -> Outcome {
        let inode = self.target_inode(call)?;
        let v6 = self.socket_with_inode(inode)?.v6;
        let local = self.address(call, v6)?;
        let socket = self.socket_with_inode(inode)?;
        if !matches!(socket.state, State::New) {
            return fail(libc::EINVAL);
        }
        let v6_only = socket.settings.v6_only();
        let bound = self.reserve_address(local, v6_only)?;
        let socket = self.socket_with_inode(inode)?;
        if let AddressHolder::Kernel(kernel) = &bound.holder {
            socket.settings.apply_to_kernel(kernel);
        }
        socket.state = State::Bound(bound);
        Ok(0)
    }

    /// Keeps an address for a socket.
    pub(super) fn reserve_address(
        &self,
        local: SocketAddr,
        v6_only: bool,
    ) -> Result<Bound, Refusal> {
        let ip = local.ip().to_canonical();
        let any = ip.is_unspecified();
        let by_transom = any || self.setup.destinations.by_transom(ip, local.port());
        match self.setup.stack.as_ref().filter(|_| by_transom) {
            Some(stack) => {
                // It takes no connection before the program listens.
                let config = ListenConfig { backlog: 0, v6_only, ..ListenConfig::default() };
                match TcpListener::bind_with(stack, local, config) {
                    Ok(listener) => {
                        let local = listener.local_addr()?;
                        Ok(Bound { local, holder: AddressHolder::Transom(listener) })
                    }
                    // It may be the kernel's.
                    Err(error) if errno_of(&error) == libc::EADDRNOTAVAIL => {
                        reserve_at_kernel(local, v6_only)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            None => reserve_at_kernel(local, v6_only),
        }
    }

    pub(super) fn connect(&mut self, call: &Call) -> Outcome {
        // The address is read next, and then it is checked that the call still waits: so the socket was the thread's too.
        let socket = self.socket_of(call).map(|socket| (socket.inode, socket.v6));
        let Some((inode, v6)) = socket else { return Err(Refusal::NotOurs) };
        let remote = self.address(call, v6)?;
        let Some(socket) = self.sockets.get_mut(&inode) else { return fail(libc::EBADF) };
        match &mut socket.state {
            State::New | State::Bound(_) => {
                if let Some(error) = socket.error.take() {
                    return fail(error);
                }
            }
            State::Connecting(connecting) => {
                if pair::is_non_blocking(&connecting.theirs) {
                    return fail(libc::EALREADY);
                }
                if is_time_to_purge(connecting.waiting.len()) {
                    connecting.waiting.retain(|id| self.calls.is_valid(*id));
                }
                self.calls.record_pending(call.id)?;
                connecting.waiting.push(call.id);
                return Err(Refusal::Later);
            }
            State::Connected(_) if std::mem::take(&mut socket.connect_unreported) => return Ok(0),
            State::Connected(_) | State::Listening(_) => return fail(libc::EISCONN),
        }
        let outer = self.begin_connect(inode, remote)?;
        self.watch_outer(inode, &outer)?;
        // A peer on this machine has answered already. The acknowledgement leaves when the program has its answer.
        self.process_arrivals();
        match outer.connect_progress() {
            ConnectProgress::Failed(error) => return fail(error),
            // As the kernel does at loopback.
            ConnectProgress::Connected => {
                self.show_connection(&outer);
                self.socket_with_inode(inode)?.open(outer);
                self.run_later(inode);
                return Ok(0);
            }
            ConnectProgress::InProgress => {}
        }
        let theirs = program::socket_of(call.thread, call.int(0), inode)?;
        let Some(theirs) = theirs.filter(|_| self.calls.is_valid(call.id)) else {
            return self.descriptor_changed(call);
        };
        let waits = !pair::is_non_blocking(&theirs);
        let (filled, waiting) = if waits {
            self.calls.record_pending(call.id)?;
            (0, vec![call.id])
        } else {
            (pair::fill(&theirs)?, Vec::new())
        };
        self.socket_with_inode(inode)?.state =
            State::Connecting(Connecting { outer, theirs, filled, waiting });
        if waits { Err(Refusal::Later) } else { fail(libc::EINPROGRESS) }
    }

    /// Begins to connect a socket that is not connected. If it cannot begin, the socket has lost its address.
    fn begin_connect(
        &mut self,
        inode: u64,
        remote: SocketAddr,
    ) -> Result<OuterConnection, Refusal> {
        let remote = unspecified_to_loopback(remote);
        let by_transom = self.setup.destinations.by_transom(remote.ip(), remote.port());
        let stack = self.setup.stack.clone().filter(|_| by_transom);
        let socket = self.socket_with_inode(inode)?;
        let v6 = socket.v6;
        let bound = match std::mem::replace(&mut socket.state, State::New) {
            State::Bound(bound) => Some(bound),
            other => {
                socket.state = other;
                None
            }
        };
        let local = bound.as_ref().map(|bound| bound.local);
        let outer = match (stack, bound.map(|bound| bound.holder)) {
            (_, Some(AddressHolder::Kernel(kernel))) => OuterConnection::by_kernel(kernel, remote)?,
            (Some(stack), holder) => {
                // The port is free again for the connection itself.
                drop(holder);
                let local = local.map(|local| local_in_family_of(local, remote));
                let outer = OuterConnection::by_transom(&stack, local, remote)?;
                self.counts.by_transom += 1;
                return Ok(outer);
            }
            (None, Some(AddressHolder::Transom(_)) | None) => {
                let kernel = match local.filter(|local| local.ip().is_unspecified()) {
                    Some(local) if local.port() != 0 => bind_kernel(local, false)?.0,
                    _ => kernel_socket(v6)?,
                };
                self.socket_with_inode(inode)?.settings.apply_to_kernel(&kernel);
                OuterConnection::by_kernel(kernel, remote)?
            }
        };
        self.counts.by_kernel += 1;
        Ok(outer)
    }
}

fn reserve_at_kernel(local: SocketAddr, v6_only: bool) -> Result<Bound, Refusal> {
    let (socket, local) = bind_kernel(local, v6_only)?;
    Ok(Bound { local, holder: AddressHolder::Kernel(socket) })
}

/// Linux takes a connection to no address for one to its own host.
fn unspecified_to_loopback(remote: SocketAddr) -> SocketAddr {
    if remote.ip().to_canonical().is_unspecified() {
        let loopback: IpAddr = match address::unspecified(remote.is_ipv6()).ip() {
            IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) if is_mapped(remote.ip()) => {
                std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()
            }
            IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        return SocketAddr::new(loopback, remote.port());
    }
    remote
}

/// A local address of the same version as the remote one.
fn local_in_family_of(local: SocketAddr, remote: SocketAddr) -> SocketAddr {
    if local.ip().to_canonical().is_unspecified() {
        let v6 = remote.ip().to_canonical().is_ipv6();
        return SocketAddr::new(address::unspecified(v6).ip(), local.port());
    }
    local
}

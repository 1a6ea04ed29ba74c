//! The end of all TCP sockets of a network namespace, by the kernel's `SOCK_DESTROY` (Linux 4.5, `CONFIG_INET_DIAG_DESTROY`).
//!
//! A connection ends with `ECONNABORTED`: threads that wait are woken, and the peer is sent a reset if there is a way to it (`tcp_abort()`). A listener is closed: `accept`
//! fails with `EINVAL`. The descriptors stay their programs'. Sockets that are neither connected nor listening are not touched; they can wait for nothing.
//!
//! The kernel finds a socket by its addresses, ports and interface, so of several listeners at one port (`SO_REUSEPORT`) it chooses one. The look is
//! repeated until none is left.

use std::io;

use netlink_packet_core::Parseable;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{SockDiagDestroy, SockDiagMessage};

use super::{ANY_COOKIE, Diag, families};
use crate::kernel_tcp::KernelTcpState;

/// `TCP_BOUND_INACTIVE`, which only looks like a state.
const BOUND: u32 = 13;
/// So often is looked for sockets that are left. Programs may go on to make new ones.
const MOST_LOOKS: usize = 16;

/// The outcome of [`Diag::destroy_all`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Destroyed {
    /// Sockets that ended.
    pub destroyed: usize,
    /// Sockets that were there when it stopped looking.
    pub left: usize,
}

impl Diag {
    /// Ends every connection and every listener. Of a socket that another process has opened, the kernel asks both for the right: who opened it, and who uses it
    /// (`netlink_net_capable()`).
    ///
    /// # Errors
    /// The kernel's refusal: [`io::ErrorKind::PermissionDenied`] without `CAP_NET_ADMIN` in the namespace, [`io::ErrorKind::Unsupported`] if it was built
    /// without this.
    pub fn destroy_all(&mut self) -> io::Result<Destroyed> {
        let mut outcome = Destroyed::default();
        for _ in 0..MOST_LOOKS {
            let sockets = self.busy()?;
            outcome.left = sockets.len();
            let mut ended = 0;
            for socket in sockets {
                match self.destroy(socket) {
                    Ok(()) => ended += 1,
                    // It has ended by itself.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            outcome.destroyed += ended;
            if ended == 0 {
                break;
            }
        }
        Ok(outcome)
    }

    fn busy(&mut self) -> io::Result<Vec<InetRequest>> {
        let idle = 1 << u8::from(KernelTcpState::Close) | 1 << BOUND;
        let mut sockets = Vec::new();
        for (family, socket_id) in families() {
            let request = |states, socket_id| InetRequest {
                family,
                protocol: libc::IPPROTO_TCP as u8,
                extensions: ExtensionFlags::empty(),
                states,
                socket_id,
            };
            let busy = || StateFlags::from_bits_retain(!idle);
            let all = SockDiagMessage::InetRequest(request(busy(), socket_id));
            self.netlink.dump(all, |answer| {
                if let Ok(InetResponseHeader { socket_id, .. }) = InetResponseHeader::parse(answer)
                {
                    let socket_id = SocketId { cookie: ANY_COOKIE, ..socket_id };
                    sockets.push(request(busy(), socket_id));
                }
            })?;
        }
        Ok(sockets)
    }

    fn destroy(&mut self, socket: InetRequest) -> io::Result<()> {
        let message = SockDiagDestroy::new(SockDiagMessage::InetRequest(socket));
        self.netlink.execute(0, message).map(drop)
    }
}

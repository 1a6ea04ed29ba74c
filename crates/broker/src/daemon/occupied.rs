//! Ports where the kernel has other sockets than the one that stands for the port.
//!
//! With SO_REUSEADDR on both sides, bind(2) gives a port to any user while nobody listens there, also while others have connections from it. Their
//! packets would go to whoever has the port lent.

use std::net::SocketAddr;

use transom_device::{KernelTcpState, TcpSocket};

use super::{Daemon, DaemonError};

impl Daemon {
    /// The first of these endpoints, all at one port, where the kernel has a socket besides the one with this cookie.
    pub(super) fn occupied(
        &mut self,
        endpoints: &[SocketAddr],
        cookie: u64,
    ) -> Result<Option<SocketAddr>, DaemonError> {
        let Some(first) = endpoints.first() else { return Ok(None) };
        let sockets = self
            .diag
            .at_port(first.port())
            .map_err(DaemonError::io("cannot ask the kernel for its sockets (CONFIG_INET_DIAG)"))?;
        Ok(endpoints.iter().copied().find(|at| is_occupied(*at, cookie, &sockets)))
    }
}

fn is_occupied(at: SocketAddr, cookie: u64, sockets: &[TcpSocket]) -> bool {
    let own_user = sockets.iter().find(|socket| socket.cookie == cookie).map(|socket| socket.user);
    sockets.iter().any(|socket| {
        let conflicts = match socket.state {
            // Nobody has it any more.
            KernelTcpState::TimeWait => false,
            // Bound, and nothing else. With SO_REUSEPORT a user may bind several; those of another user may connect later.
            KernelTcpState::Close => own_user != Some(socket.user),
            _ => true,
        };
        conflicts && socket.cookie != cookie && covers(socket, at)
    })
}

/// Whether a socket's address is this one, or stands for it.
fn covers(socket: &TcpSocket, at: SocketAddr) -> bool {
    let bound = socket.local.ip();
    let both = bound.is_ipv6() && !socket.only_v6;
    bound == at.ip() || (bound.is_unspecified() && (both || bound.is_ipv6() == at.is_ipv6()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(local: &str, state: KernelTcpState, user: u32, cookie: u64) -> TcpSocket {
        TcpSocket {
            local: local.parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            cookie,
            user,
            inode: 0,
            control_group: None,
            only_v6: false,
            state,
            congestion: None,
            info: None,
        }
    }

    #[test]
    fn connections_and_sockets_of_other_users_occupy_a_port() {
        let at: SocketAddr = "192.0.2.1:80".parse().unwrap();
        let own = socket("0.0.0.0:80", KernelTcpState::Close, 5, 1);
        let occupied = |other: TcpSocket| is_occupied(at, 1, &[own.clone(), other]);
        assert!(!is_occupied(at, 1, std::slice::from_ref(&own)));
        for state in [1, 2, 3, 4, 5, 8, 9, 10, 11, 12] {
            assert!(occupied(socket("192.0.2.1:80", state.into(), 5, 2)), "{state}");
        }
        assert!(!occupied(socket("192.0.2.1:80", KernelTcpState::TimeWait, 0, 2)));
        assert!(!occupied(socket("192.0.2.2:80", KernelTcpState::Established, 6, 2)));
        assert!(!occupied(socket("192.0.2.1:80", KernelTcpState::Close, 5, 2)));
        assert!(occupied(socket("192.0.2.1:80", KernelTcpState::Close, 6, 2)));
        assert!(occupied(socket("0.0.0.0:80", KernelTcpState::Close, 6, 2)));
        // An unspecified IPv6 address stands for IPv4's too, unless the socket says otherwise.
        let mut any = socket("[::]:80", KernelTcpState::Close, 6, 2);
        assert!(occupied(any.clone()));
        any.only_v6 = true;
        assert!(!occupied(any));
        // Without our own in the list, nothing is known to be of the same user.
        assert!(is_occupied(at, 1, &[socket("192.0.2.1:80", KernelTcpState::Close, 5, 2)]));
    }
}

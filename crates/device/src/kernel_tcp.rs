//! Looking into the kernel's own TCP connections: `TCP_INFO`.
//!
//! The structure has grown with the kernel, always at its end. It is kept as bytes, here and where netlink brings it of other programs' connections
//! ([`crate::diag`]). `transom_tcp` reads them, because it knows what they say.

use std::io;
use std::os::fd::AsFd;

use crate::socket_option;

/// As many bytes as are kept: more than any kernel so far tells.
const LONGEST: usize = 320;
/// Bytes of the first version that was complete (Linux 2.6).
const LEAST: usize = 104;

/// The kernel's report on one of its connections, as it gave it: a `struct tcp_info`. `transom_tcp::ConnectionState::of_tcp_info` reads it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelTcpInfo {
    bytes: [u8; LONGEST],
    len: usize,
}

impl std::fmt::Debug for KernelTcpInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KernelTcpInfo").field(&self.as_bytes()).finish()
    }
}

/// The counts of accurate ECN (RFC 9768) of one of the kernel's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAccurateEcn {
    /// Segments that arrived with congestion experienced.
    pub received_ce: u32,
    /// Payload bytes that arrived with ECT(0), with ECT(1) and with congestion experienced.
    pub received_bytes: [u32; 3],
    /// Payload bytes that the peer says have arrived so.
    pub delivered_bytes: [u32; 3],
}

/// The states of the kernel's TCP (`TCP_ESTABLISHED` and so on of linux/tcp_states.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTcpState(pub u8);

impl KernelTcpState {
    /// Data can be exchanged.
    pub const ESTABLISHED: KernelTcpState = KernelTcpState(1);
    /// A SYN was answered, and the handshake is not complete.
    pub const SYN_RECV: KernelTcpState = KernelTcpState(3);
    /// It is over, or has not begun; it may be bound to a port.
    pub const CLOSE: KernelTcpState = KernelTcpState(7);
    /// It is over; what is late is waited for.
    pub const TIME_WAIT: KernelTcpState = KernelTcpState(6);
    /// It waits for others to connect.
    pub const LISTEN: KernelTcpState = KernelTcpState(10);
}

impl KernelTcpInfo {
    /// Keeps a `struct tcp_info` of any length; `None` if it is shorter than the first version that was complete (Linux 2.6).
    pub(crate) fn new(told: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        let len = told.len().min(LONGEST);
        bytes.get_mut(..len)?.copy_from_slice(told.get(..len)?);
        (len >= LEAST).then_some(KernelTcpInfo { bytes, len })
    }

    /// The structure, as long as the kernel knows it.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Payload bytes that the peer has acknowledged, if the kernel tells (4.1).
    pub fn bytes_acked(&self) -> Option<u64> {
        Some(u64::from_ne_bytes(*self.as_bytes().get(120..)?.first_chunk()?))
    }

    /// Payload bytes that have arrived in order, if the kernel tells (4.1).
    pub fn bytes_received(&self) -> Option<u64> {
        Some(u64::from_ne_bytes(*self.as_bytes().get(128..)?.first_chunk()?))
    }

    /// The TCP state.
    pub fn state(&self) -> KernelTcpState {
        KernelTcpState(self.bytes[0])
    }

    /// The counters of accurate ECN, if the kernel reports them (6.18); zeros where it is not in use.
    pub fn accurate_ecn(&self) -> Option<KernelAccurateEcn> {
        let word = |at: usize| Some(u32::from_ne_bytes(*self.as_bytes().get(at..)?.first_chunk()?));
        let received_ce_bytes = word(272)?;
        Some(KernelAccurateEcn {
            received_ce: word(248)?,
            received_bytes: [word(268)?, word(264)?, received_ce_bytes],
            delivered_bytes: [word(256)?, word(252)?, word(260)?],
        })
    }
}

/// Asks the kernel about `socket`, a TCP socket of its own.
///
/// # Errors
/// The kernel's, for one if `socket` is not a TCP socket.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<KernelTcpInfo> {
    let mut bytes = [0u8; LONGEST];
    let len = socket_option::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let told = bytes.get(..len).and_then(KernelTcpInfo::new);
    told.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_loopback_connection_tells_and_a_datagram_socket_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert_eq!(info.state(), KernelTcpState::ESTABLISHED);
        assert!(info.as_bytes().len() >= LEAST, "{info:?}");
        assert!(tcp_info(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
        assert_eq!(tcp_info(&listener).unwrap().state(), KernelTcpState::LISTEN);
    }

    /// The structure of linux/tcp.h, by hand.
    #[test]
    fn counters_of_accurate_ecn_are_where_the_kernel_has_them() {
        // tcpi_received_ce, then the bytes delivered and received: ECT(1), ECT(0), CE.
        let counts = (1..=7u32).flat_map(u32::to_ne_bytes);
        let newer: Vec<u8> = [0; 248].into_iter().chain(counts).collect();
        let accurate = KernelTcpInfo::new(&newer).unwrap().accurate_ecn().unwrap();
        assert_eq!(accurate.received_ce, 1);
        assert_eq!((accurate.delivered_bytes, accurate.received_bytes), ([3, 2, 4], [6, 5, 7]));
        assert_eq!(KernelTcpInfo::new(&newer[..248]).unwrap().accurate_ecn(), None);
        assert_eq!(KernelTcpInfo::new(&newer[..50]), None);
    }
}

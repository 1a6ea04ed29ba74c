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

/// The states of the kernel's TCP (linux/tcp_states.h) that are told apart here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelTcpState {
    /// Data can be exchanged.
    Established,
    /// A SYN was answered, and the handshake is not complete.
    SynReceived,
    /// It is over; what is late is waited for.
    TimeWait,
    /// It is over, or has not begun; it may be bound to a port.
    Close,
    /// It waits for others to connect.
    Listen,
    /// Another, by its number.
    Other(u8),
}

impl KernelTcpState {
    const NUMBERS: [(u8, KernelTcpState); 5] = [
        (1, KernelTcpState::Established),
        (3, KernelTcpState::SynReceived),
        (6, KernelTcpState::TimeWait),
        (7, KernelTcpState::Close),
        (10, KernelTcpState::Listen),
    ];
}

impl From<u8> for KernelTcpState {
    fn from(number: u8) -> Self {
        let known = Self::NUMBERS.iter().find(|(known, _)| *known == number);
        known.map_or(KernelTcpState::Other(number), |(_, state)| *state)
    }
}

impl From<KernelTcpState> for u8 {
    fn from(state: KernelTcpState) -> Self {
        match state {
            KernelTcpState::Other(number) => number,
            known => KernelTcpState::NUMBERS
                .iter()
                .find(|(_, state)| *state == known)
                .map_or(0, |(number, _)| *number),
        }
    }
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

    /// The TCP state.
    pub fn state(&self) -> KernelTcpState {
        self.bytes[0].into()
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
        assert_eq!(info.state(), KernelTcpState::Established);
        assert!(info.as_bytes().len() >= LEAST, "{info:?}");
        assert_eq!(KernelTcpInfo::new(&info.as_bytes()[..50]), None);
        assert!(tcp_info(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
        assert_eq!(tcp_info(&listener).unwrap().state(), KernelTcpState::Listen);
    }
}

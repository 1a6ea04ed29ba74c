//! Why there is no tunnel.

use std::io;
use std::net::SocketAddr;

use crate::open::kind_of;

/// Why a tunnel in UDP could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UdpError {
    #[error("cannot send to UDP port {} of {}", remote.port(), remote.ip())]
    Connect { remote: SocketAddr, source: io::Error },
    #[error("nobody answers at UDP port {} of {}", remote.port(), remote.ip())]
    Silent {
        remote: SocketAddr,
        /// The kernel's information about it.
        source: io::Error,
    },
    #[error("the other end at UDP port {} of {} refuses the tunnel", remote.port(), remote.ip())]
    Refused { remote: SocketAddr, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot wait at UDP port {} of {}", local.port(), local.ip())]
    Listen { local: SocketAddr, source: io::Error },
    /// None, or two of one version.
    #[error(
        "a tunnel has one address of each IP version at most, and the end that listens has at least one"
    )]
    Addresses,
    #[error("packets of {wanted} bytes do not fit: the maximum is {fits}")]
    Mtu {
        /// The length asked for, or the least that makes sense.
        wanted: usize,
        /// The longest that fits a datagram on this path.
        fits: usize,
    },
    /// The kernel gives no descriptor or no randomness.
    #[error("the system refuses memory or sockets for the tunnel")]
    System(#[source] io::Error),
}

impl UdpError {
    /// The meaning of the kernel's error number.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        match self {
            UdpError::Refused { .. } => io::ErrorKind::ConnectionRefused,
            _ => kind_of(self, io::ErrorKind::InvalidInput),
        }
    }
}

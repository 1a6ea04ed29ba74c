//! Why there is no tunnel.

use std::io;
use std::net::SocketAddr;

use crate::open::kind_of;

/// Why a tunnel in UDP could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UdpError {
    /// There is no way to the other end.
    #[error("cannot send to UDP port {} of {}", remote.port(), remote.ip())]
    Connect {
        /// The address that was tried.
        remote: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Nobody answers.
    #[error("nobody answers at UDP port {} of {}", remote.port(), remote.ip())]
    Silent {
        /// The address that was tried.
        remote: SocketAddr,
        /// The kernel's information about it.
        source: io::Error,
    },
    /// The other end does not let us in.
    #[error("the other end at UDP port {} of {} refuses the tunnel", remote.port(), remote.ip())]
    Refused {
        /// The address of the other end.
        remote: SocketAddr,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The port is not to be had.
    #[error("cannot wait at UDP port {} of {}", local.port(), local.ip())]
    Listen {
        /// The address to listen at.
        local: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// None, or two of one version.
    #[error(
        "a tunnel has one address of each IP version at most, and the end that listens has at least one"
    )]
    Addresses,
    /// An impossible length.
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

//! Why a device could not be opened.

use std::io;
use std::path::PathBuf;

use super::advice::advice;
use crate::interface::IpPrefix;
use crate::packet::PacketError;
use crate::tun::TunError;
use crate::udp::UdpError;
use crate::word::DeviceWord;

/// A device could not be opened: which, why, and one thing to do about it, in this order. Its text has the whole reason, so it has no
/// [`source`](std::error::Error::source): also a caller that shows one error alone, as a C program does, shows the cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the device {word}: {}{}", with_causes(.reason), in_brackets(.advice))]
#[non_exhaustive]
pub struct OpenError {
    /// The device.
    pub word: DeviceWord,
    advice: Option<String>,
    pub(crate) reason: Box<Reason>,
}

/// The meaning of the kernel's error number at the bottom of an error; `otherwise` if there is none.
pub(crate) fn kind_of(
    error: &(dyn std::error::Error + 'static),
    otherwise: io::ErrorKind,
) -> io::ErrorKind {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(system) = error.downcast_ref::<io::Error>() {
            return system.kind();
        }
        #[cfg(any(feature = "bpf", feature = "xdp"))]
        if let Some(bpf) = error.downcast_ref::<transom_bpf::BpfError>() {
            return bpf.kind();
        }
        next = error.source();
    }
    otherwise
}

/// An error with its causes, in a line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn in_brackets(advice: &Option<String>) -> String {
    advice.as_ref().map(|advice| format!(" ({advice})")).unwrap_or_default()
}

impl OpenError {
    pub(crate) fn new(word: DeviceWord, reason: Reason) -> Self {
        let advice = advice(&word, &reason);
        OpenError { word, advice, reason: Box::new(reason) }
    }

    /// The meaning of the kernel's error number.
    pub fn kind(&self) -> io::ErrorKind {
        self.reason.kind()
    }

    /// The same with other advice, of a caller who knows better what helps.
    #[must_use]
    pub fn with_advice(self, advice: impl Into<String>) -> Self {
        OpenError { advice: Some(advice.into()), ..self }
    }

    /// Advice: a remedy, or a device that works instead.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// Why a device could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("the broker is not available at {}", socket.display())]
    Broker { socket: PathBuf, source: io::Error },
    #[error("the process at {} gives no device", socket.display())]
    Demux { socket: PathBuf, source: io::Error },
    #[error(transparent)]
    Tun(#[from] TunError),
    #[error("it is an interface, but not a TUN interface")]
    NoTun,
    #[error("it exists, and its MTU is set with `ip link`")]
    MtuIsFixed,
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// An Ethernet interface, by AF_XDP.
    #[cfg(feature = "xdp")]
    #[error(transparent)]
    Xdp(#[from] crate::xdp::XdpError),
    #[error(transparent)]
    Udp(#[from] UdpError),
    #[error("cannot look up {host}")]
    Resolve { host: String, source: io::Error },
    #[error("the network {prefix} has no second address, which the kernel's end needs")]
    NoRoom { prefix: IpPrefix },
    #[error("the kernel at {kernel} does not find {own}, which is in another network")]
    Apart { own: IpPrefix, kernel: IpPrefix },
    #[error("the stack on it needs an address")]
    NoAddress,
    #[error("the system refuses descriptors for the memory device")]
    Memory(#[source] io::Error),
    #[error("cannot ask the kernel for its interfaces")]
    Netlink(#[source] io::Error),
    #[cfg(not(feature = "xdp"))]
    #[error("this program was built without it")]
    NotBuilt,
}

impl Reason {
    fn kind(&self) -> io::ErrorKind {
        match self {
            Reason::Tun(error) => error.kind(),
            Reason::Packet(error) => error.kind(),
            #[cfg(feature = "xdp")]
            Reason::Xdp(error) => error.kind(),
            Reason::Udp(error) => error.kind(),
            #[cfg(not(feature = "xdp"))]
            Reason::NotBuilt => io::ErrorKind::Unsupported,
            _ => kind_of(self, io::ErrorKind::InvalidInput),
        }
    }
}

//! Why there is no private network, or why it cannot be changed.

use std::io;

use super::maker::MakerError;
use crate::interface::InterfaceError;
use crate::namespace::NamespaceError;
use crate::open::kind_of;
use crate::tun::TunError;

/// Why there is no private network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// There is no network namespace: the process has not the right, and no user namespace to have it in.
    #[error("no network namespace for the program's sockets: it takes root, or a user namespace")]
    Namespace(#[source] NamespaceError),
    /// The namespace is there, and neither kind of interface can be had in it.
    #[error("no interface for the program's sockets: neither TUN ({tun}) nor veth ({veth})")]
    NoInterface {
        /// What is wrong with TUN.
        tun: TunError,
        /// What is wrong with a veth pair and its packet socket.
        #[source]
        veth: io::Error,
    },
    /// The TUN interface that was asked for cannot be had.
    #[error("no TUN interface for the program's sockets")]
    Tun(#[source] TunError),
    /// The veth pair that was asked for cannot be had.
    #[error("no veth pair for the program's sockets")]
    Veth(#[source] io::Error),
    /// A parameter of the namespace could not be set.
    #[error("cannot set net/{name} in the private network")]
    Parameter {
        /// Its name below `/proc/sys/net`.
        name: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// An address or a setting of the interface was refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A rule or a route was refused.
    #[error("cannot {action} in the private network")]
    Paths {
        /// The action that failed.
        action: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A setting is impossible.
    #[error("{0}")]
    Config(&'static str),
    /// The process that makes the network for an ordinary user has none.
    #[error(transparent)]
    Maker(#[from] MakerError),
}

impl PrivateError {
    /// The meaning of the kernel's error number.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        match self {
            PrivateError::Maker(error) => error.kind(),
            _ => kind_of(self, io::ErrorKind::InvalidInput),
        }
    }
}

impl From<PrivateError> for io::Error {
    fn from(error: PrivateError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

impl From<NamespaceError> for PrivateError {
    fn from(error: NamespaceError) -> Self {
        PrivateError::Namespace(error)
    }
}

pub(super) fn paths_error(action: &'static str) -> impl FnOnce(io::Error) -> PrivateError {
    move |source| PrivateError::Paths { action, source }
}

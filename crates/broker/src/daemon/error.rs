//! Why there is no broker.

use std::io;
use std::path::PathBuf;

use transom_bpf::BpfError;
use transom_device::interface::InterfaceError;
use transom_device::tun::TunError;

/// A part that is missing, or an action that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The object was compiled for machines with the other byte order.
    #[error("the broker is for little-endian machines")]
    BigEndian,
    /// The kernel has no type information.
    #[error("this kernel has no type information (/sys/kernel/btf/vmlinux; CONFIG_DEBUG_INFO_BTF)")]
    NoTypes,
    /// The user is not root.
    #[error(
        "the broker takes root's rights: CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN"
    )]
    NotRoot,
    /// There is no interface to work at.
    #[error("no interface is named: give --uplink, or `uplinks` in the policy file")]
    NoUplink,
    /// Another broker works there.
    #[error("there is a broker already: it has locked {}", path.display())]
    Running {
        /// Its lock.
        path: PathBuf,
    },
    /// An earlier broker has left the state of another version.
    #[error(
        "{} is the state of a broker of another version: `transom broker stop` ends its leases and removes it",
        path.display()
    )]
    OtherLayout {
        /// The directory of pins.
        path: PathBuf,
    },
    /// The BPF system call, or libbpf.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// A device could not be made.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// A device could not be set up.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Something else.
    #[error("{action}")]
    Io {
        /// The action.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl DaemonError {
    pub(super) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> DaemonError {
        let action = action.into();
        move |source| DaemonError::Io { action, source }
    }
}

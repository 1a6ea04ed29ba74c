//! The crate's errors.

use std::io;

use transom_bpf::BpfError;

/// Why extensions were not attached to sockets of the kernel's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The kernel does not take a program, or a map.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// An extension that cannot run on sockets of the kernel's.
    #[error("{0}")]
    Refused(String),
    /// No control group of version 2, or not this one.
    #[error("{0}")]
    Cgroup(String),
    /// The system's.
    #[error("{action}")]
    Io {
        /// The action that failed.
        action: String,
        /// The system's error.
        source: io::Error,
    },
}

impl KernelError {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> KernelError {
        let action = action.into();
        move |source| KernelError::Io { action, source }
    }
}

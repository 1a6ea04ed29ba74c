//! Loads BPF objects, attaches their programs to interfaces, and pins what is to outlive the process.
//!
//! It is libbpf (`libbpf-rs`) with what that lacks: links at interfaces (TCX). Without the feature `libbpf` the crate is empty, so that nobody needs
//! libelf who does not load programs.

#[cfg(feature = "libbpf")]
mod bytes;
#[cfg(feature = "libbpf")]
mod object;
#[cfg(feature = "libbpf")]
mod pins;

#[cfg(feature = "libbpf")]
pub use bytes::Aligned;
#[cfg(feature = "libbpf")]
pub use libbpf_rs;
#[cfg(feature = "libbpf")]
pub use object::{BpfError, attach_tcx, open, update};
#[cfg(feature = "libbpf")]
pub use pins::{PinDirectory, mount, tcx_device};

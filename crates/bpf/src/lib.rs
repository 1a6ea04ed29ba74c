//! Loads BPF objects, and attaches their programs.
//!
//! It is libbpf (`libbpf-rs`) with the calls that the crate lacks: links at interfaces (TCX, XDP) and costs. All programs of Transom are loaded
//! here: the broker's, the router's, that of AF_XDP, and the controller for the kernel's own sockets. Without the feature `libbpf` the crate is empty, so that the default build does not need
//! libelf.
#![cfg(feature = "libbpf")]

mod attach;
mod bytes;
mod cost;
mod error;
mod object;

pub use attach::{attach_tcx, attach_xdp, attached_tcx, update};
pub use bytes::Aligned;
pub use cost::{cost, count_cost};
pub use error::{BpfError, attempt};
pub use libbpf_rs;
pub use object::{Loaded, open, set_callbacks_name, set_capacity, set_constants};

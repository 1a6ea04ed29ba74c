//! smoltcp, the other user-level TCP in Rust, set up as well as its interface allows.
//!
//! A comparison is worth something only if the other side is given its best. So smoltcp's devices here reuse their
//! buffers instead of allocating one per packet as its own do, and where the device can segment, smoltcp's own
//! support for segmentation offload is used. Over TUN it sends timestamps, as the kernel and Transom do.

pub mod loopback;
pub mod tun;

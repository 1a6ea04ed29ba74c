//! Tests of the whole crate: hosts, their sockets, and whoever asks there.

mod attacks;
mod outputs;
mod sockets;

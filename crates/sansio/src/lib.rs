//! x
pub mod address;
pub mod config;
pub mod errno;
pub mod ffi;
pub mod host;
pub mod info;
mod opening;
pub mod options;
pub mod readiness;
pub mod socket;
pub mod stream;
pub mod urgent;

//! What peers of the remote protocol say; see `sequences/remote.rs`.
#![no_main]

#[allow(dead_code)] // each target uses its part
#[path = "../sequences/bytes.rs"]
mod bytes;
#[path = "../sequences/remote.rs"]
mod remote;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    remote::play(bytes);
});

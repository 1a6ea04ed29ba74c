//! Window control of a router that arbitrary packets pass; see `sequences/window.rs`.
#![no_main]

#[allow(dead_code)] // each target uses its part
#[path = "../sequences/bytes.rs"]
mod bytes;
#[path = "../sequences/window.rs"]
mod window;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    window::play(bytes);
});

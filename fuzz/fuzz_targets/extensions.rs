//! Extensions that ask for anything, on two connections that exchange data; see `sequences/extensions.rs`.
#![no_main]

#[allow(dead_code)] // each target uses its part
#[path = "../sequences/bytes.rs"]
mod bytes;
#[path = "../sequences/extensions.rs"]
mod extensions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    extensions::play(bytes);
});

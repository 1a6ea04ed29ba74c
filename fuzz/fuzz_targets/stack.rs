//! A host fed arbitrary packets, application calls and time; see `sequences/stack.rs`.
#![no_main]

#[allow(dead_code)] // each target uses its part
#[path = "../sequences/bytes.rs"]
mod bytes;
#[path = "../sequences/stack.rs"]
mod stack;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    stack::play(bytes);
});

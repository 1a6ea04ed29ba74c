//! Messages to the broker and from it, and its policy; see `sequences/broker.rs`.
#![no_main]

#[path = "../sequences/broker.rs"]
mod broker;
#[allow(dead_code)] // each target uses its part
#[path = "../sequences/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    broker::play(bytes);
});

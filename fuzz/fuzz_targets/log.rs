//! Files of the event log; see `sequences/log.rs`.
#![no_main]

#[allow(dead_code)] // each target uses its part
#[path = "../sequences/bytes.rs"]
mod bytes;
#[path = "../sequences/log.rs"]
mod log;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    log::play(bytes);
});

//! One connection fed arbitrary segments, application calls, ICMP errors and time; see `sequences/connection.rs`.
#![no_main]

#[allow(dead_code)] // each target uses its part
#[path = "../sequences/bytes.rs"]
mod bytes;
#[path = "../sequences/connection.rs"]
mod connection;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    connection::play(bytes);
});

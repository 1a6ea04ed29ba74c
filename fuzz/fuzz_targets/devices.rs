//! Datagrams and frames of strangers for devices; see `crates/device/src/hostile.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    transom_device::hostile::play(bytes);
});

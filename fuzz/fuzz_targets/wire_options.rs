//! The TCP option codec: what is read survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use transom_wire::*;

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(40)];
    let Ok(options) = Options::parse(bytes) else { return };
    let mut out = [0xee; 40];
    match options.emit(&mut out) {
        Ok(len) => {
            assert_eq!(len, options.encoded_len());
            assert!(len.is_multiple_of(4));
            assert_eq!(Options::parse(&out[..len]), Ok(options));
        }
        // Aligned, they may need more than the 40 bytes there are.
        Err(error) => {
            assert_eq!(error, Error::TooLong);
            assert!(options.encoded_len() > 40);
        }
    }
});

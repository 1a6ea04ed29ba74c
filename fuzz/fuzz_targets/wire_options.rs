//! The TCP option codec: what is read survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use transom_wire::*;

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(40)];
    let Ok(options) = Options::parse(bytes) else { return };
    assert_eq!((options.mss, options.window_scale), read_again(bytes));
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

/// A second reader, of two options: the last of each kind counts.
fn read_again(mut bytes: &[u8]) -> (Option<u16>, Option<u8>) {
    let (mut mss, mut scale) = (None, None);
    while let [kind, rest @ ..] = bytes {
        match (kind, rest) {
            (0, _) => break,
            (1, rest) => bytes = rest,
            (kind, [len, ..]) => {
                let (option, rest) = bytes.split_at(usize::from(*len));
                match (kind, option) {
                    (2, [_, _, high, low]) => mss = Some(u16::from_be_bytes([*high, *low])),
                    (3, [_, _, shift]) => scale = Some(*shift),
                    _ => {}
                }
                bytes = rest;
            }
            (_, []) => break,
        }
    }
    (mss, scale)
}

//! Consistent Overhead Byte Stuffing: any bytes as bytes of which none is zero.
//!
//! The encoded form is a sequence of blocks. A block is a code byte `c` and `c − 1` bytes behind it, none of which is zero. It represents
//! those bytes and a zero behind them, except that there is no zero after a block with code 255, nor after the last block. An empty unit
//! is the single block 1.

/// The byte before and behind each unit.
pub(crate) const DELIMITER: u8 = 0;

/// The code of a block without a zero.
const FULL: u8 = 255;
/// The bytes in such a block.
const FULL_LEN: usize = FULL as usize - 1;

/// The most bytes that a unit of `len` bytes takes in the stream, with both delimiters.
pub(crate) const fn max_encoded_len(len: usize) -> usize {
    len.saturating_add(len / FULL_LEN + 3)
}

/// How many bytes `unit` takes in the stream, with both delimiters.
pub(crate) fn encoded_len(unit: &[u8]) -> usize {
    let mut len = 0;
    encode_unit(unit, |bytes| len += bytes.len());
    len
}

/// Gives the stream's bytes for `unit`, with both delimiters, to `put`, one piece after the other.
pub(crate) fn encode_unit(unit: &[u8], mut put: impl FnMut(&[u8])) {
    put(&[DELIMITER]);
    let mut rest = unit;
    loop {
        let reach = &rest[..rest.len().min(FULL_LEN)];
        let run = memchr::memchr(0, reach).unwrap_or(reach.len());
        // At most 254, so that the code fits.
        put(&[run as u8 + 1]);
        put(&rest[..run]);
        rest = match rest.get(run) {
            // The zero is the block's, unless the block is full.
            Some(0) if run < FULL_LEN => &rest[run + 1..],
            Some(_) => &rest[run..],
            None => break,
        };
    }
    put(&[DELIMITER]);
}

/// The data is not an encoded unit: a block reaches beyond its end, or there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not an encoded data unit")]
pub(crate) struct Malformed;

/// The length of the unit that `encoded`, the bytes between two delimiters, represents.
pub(crate) fn decoded_len(encoded: &[u8]) -> Result<usize, Malformed> {
    let mut len = 0;
    decode(encoded, |bytes| len += bytes.len())?;
    Ok(len)
}

/// Decodes the unit in `encoded`, the bytes between two delimiters, and gives it to `put` piece by piece.
pub(crate) fn decode(encoded: &[u8], mut put: impl FnMut(&[u8])) -> Result<(), Malformed> {
    let mut rest = encoded;
    loop {
        let (&code, behind) = rest.split_first().ok_or(Malformed)?;
        let len = usize::from(code).checked_sub(1).ok_or(Malformed)?;
        let (block, behind) = behind.split_at_checked(len).ok_or(Malformed)?;
        put(block);
        if behind.is_empty() {
            return Ok(());
        }
        if code != FULL {
            put(&[0]);
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn encoded(unit: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_unit(unit, |bytes| out.extend_from_slice(bytes));
        out
    }

    fn decoded(encoded: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        decode(encoded, |bytes| out.extend_from_slice(bytes))?;
        Ok(out)
    }

    /// The examples that every description of the algorithm has, here between delimiters.
    #[test]
    fn the_known_examples() {
        let with = |middle: &[u8]| [&[0], middle, &[0]].concat();
        assert_eq!(encoded(&[]), with(&[1]));
        assert_eq!(encoded(&[0]), with(&[1, 1]));
        assert_eq!(encoded(&[0, 0]), with(&[1, 1, 1]));
        assert_eq!(encoded(&[0, 0x11, 0]), with(&[1, 2, 0x11, 1]));
        assert_eq!(encoded(&[0x11, 0x22, 0, 0x33]), with(&[3, 0x11, 0x22, 2, 0x33]));
        assert_eq!(encoded(&[0x11, 0x22, 0x33, 0x44]), with(&[5, 0x11, 0x22, 0x33, 0x44]));
        let run: Vec<u8> = (1..=254).collect();
        assert_eq!(encoded(&run), with(&[&[255], &run[..]].concat()));
        let zero_first = [&[0], &run[..]].concat();
        assert_eq!(encoded(&zero_first), with(&[&[1, 255], &run[..]].concat()));
        let longer: Vec<u8> = (1..=255).collect();
        assert_eq!(encoded(&longer), with(&[&[255], &run[..], &[2, 255]].concat()));
        let zero_last = [&run[1..], &[255, 0]].concat();
        assert_eq!(encoded(&zero_last), with(&[&[255], &run[1..], &[255, 1, 1]].concat()));
    }

    #[test]
    fn an_encoder_may_add_an_empty_block_behind_a_full_one() {
        let run: Vec<u8> = (1..=254).collect();
        assert_eq!(decoded(&[&[255], &run[..], &[1]].concat()), Ok(run));
    }

    #[test]
    fn malformed_units_are_refused() {
        assert_eq!(decoded(&[]), Err(Malformed));
        assert_eq!(decoded(&[2]), Err(Malformed));
        assert_eq!(decoded(&[3, 1]), Err(Malformed));
        assert_eq!(decoded(&[2, 7, 0, 1]), Err(Malformed));
        assert_eq!(decoded(&[255, 1, 2, 3]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn every_unit_comes_back(
            unit in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..2000),
                prop::collection::vec(prop_oneof![9 => Just(1u8), 1 => Just(0u8)], 0..2000),
                prop::collection::vec(1u8..=255, 0..2000),
            ],
        ) {
            let stream = encoded(&unit);
            prop_assert_eq!(stream.len(), encoded_len(&unit));
            prop_assert!(stream.len() <= max_encoded_len(unit.len()));
            let inner = &stream[1..stream.len() - 1];
            prop_assert_eq!((stream[0], stream[stream.len() - 1]), (0, 0));
            prop_assert!(!inner.contains(&0));
            prop_assert_eq!(decoded_len(inner), Ok(unit.len()));
            prop_assert_eq!(decoded(inner), Ok(unit));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(unit) = decoded(&bytes) {
                prop_assert!(unit.len() < bytes.len());
            }
        }
    }
}

//! One pass gives the same bytes and the same sum as separate passes, for every length, alignment and split.

use super::*;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Adds its place in the data to each byte: it notices every byte that is missing, doubled or out of order.
struct Placed(u64);

impl Manipulation for Placed {
    fn change(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = byte.wrapping_add((self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8);
            self.0 += 1;
        }
    }
}

fn kinds() -> [fn() -> Box<dyn Manipulation>; 6] {
    [
        || Box::new(Unchanged),
        || Box::new(SwapWords),
        || Box::new(Xor::new(core::array::from_fn(|at| (at * 37 + 11) as u8))),
        || Box::new(Placed(0)),
        || Box::new((SwapWords, Placed(0))),
        || Box::new((Xor::new([0x5a; 32]), (Placed(0), SwapWords))),
    ]
}

/// Copy, change, sum: three loops over all of the data.
fn separately(manipulation: &mut dyn Manipulation, from: &[u8]) -> (Vec<u8>, Sum) {
    let mut bytes = from.to_vec();
    manipulation.change(&mut bytes);
    let sum = Sum::of(&bytes);
    (bytes, sum)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) >> 3) as u8 ^ at as u8).collect()
}

#[test]
fn every_length_and_alignment() {
    let data = pattern(PIECE + 200);
    for kind in kinds() {
        let lengths = (0..140).chain(PIECE - 5..PIECE + 70);
        for len in lengths {
            for (from_at, to_at) in [(0, 0), (1, 0), (0, 3), (5, 6), (7, 7)] {
                let from = &data[from_at..from_at + len];
                let mut memory = vec![0xee; len + to_at + 9];
                let sum = pass(&mut *kind(), &mut memory[to_at..], from).unwrap();
                let (bytes, wanted) = separately(&mut *kind(), from);
                assert_eq!(memory[to_at..to_at + len], bytes);
                assert_eq!(sum, wanted, "{len} bytes from {from_at} to {to_at}");
                // Nothing before and behind is touched.
                assert!(memory[..to_at].iter().all(|byte| *byte == 0xee));
                assert!(memory[to_at + len..].iter().all(|byte| *byte == 0xee));
            }
        }
    }
}

#[test]
fn too_little_room_is_refused_and_nothing_is_done() {
    let mut to = [0; 3];
    assert_eq!(pass(&mut Xor::new([1; 32]), &mut to, &[9; 4]), Err(Error::BufferTooSmall));
    assert_eq!(to, [0; 3]);
}

#[test]
fn words_are_swapped_and_the_rest_stays() {
    let mut to = [0; 7];
    pass(&mut SwapWords, &mut to, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
    assert_eq!(to, [4, 3, 2, 1, 5, 6, 7]);
}

#[test]
fn a_unit_is_a_power_of_two_within_bounds() {
    struct Strange(usize);
    impl Manipulation for Strange {
        fn unit(&self) -> usize {
            self.0
        }
        fn change(&mut self, _: &mut [u8]) {}
    }
    let counted = [0, 1, 3, 16, 63, 64, 65, usize::MAX].map(|unit| unit_of(&Strange(unit)));
    assert_eq!(counted, [1, 1, 4, 16, 64, 64, 64, 64]);
    assert_eq!((SwapWords, Strange(16)).unit(), 16);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_into_slices_gives_the_same(
        len in 0usize..20_000,
        kind in 0usize..6,
        cuts in prop::collection::vec(0usize..20_000, 0..12),
        at in 0usize..8,
    ) {
        let data = pattern(len + at);
        let from = &data[at..];
        let (wanted, wanted_sum) = separately(&mut *kinds()[kind](), from);
        let mut one = kinds()[kind]();
        let unit = unit_of(&*one);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.min(&len) / unit * unit).collect();
        cuts.extend([0, len]);
        cuts.sort_unstable();
        let mut to = vec![0; len];
        let mut sum = Sum(0);
        for ends in cuts.windows(2) {
            let (from, to) = (&from[ends[0]..ends[1]], &mut to[ends[0]..ends[1]]);
            sum = sum.followed_by(ends[0], pass(&mut *one, to, from).unwrap());
        }
        prop_assert_eq!(to, wanted);
        prop_assert_eq!(sum, wanted_sum);
    }
}

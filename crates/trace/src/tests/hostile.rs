//! Bytes that mean harm: whatever they are, reading ends and gives something.

use proptest::prelude::*;

use super::made::{ETHERNET, frames, pcap, pcapng, transfer};
use crate::Capture;

fn files() -> Vec<Vec<u8>> {
    let ethernet = frames(&transfer(), &ETHERNET, 65_535);
    let raw = frames(&transfer(), &[], 65_535);
    vec![
        pcap(1, &ethernet, false),
        pcap(101, &raw, true),
        pcapng(1, &ethernet, true),
        pcapng(101, &raw, false),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The magic numbers are there, so that reading goes on.
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), which in 0..4usize) {
        let mut file = files()[which][..24].to_vec();
        file.extend(&bytes);
        let _ = Capture::read(&file[..]);
        let _ = Capture::read(&bytes[..]);
    }

    #[test]
    fn mutated_captures(
        which in 0..4usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = files()[which].clone();
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        file.truncate(cut.index(file.len()).max(file.len() / 2));
        if let Ok(capture) = Capture::read(&file[..]) {
            let followed: u64 = capture.connections.iter().map(|one| one.packets).sum();
            let skipped: u64 = capture.skipped.values().sum();
            prop_assert_eq!(followed + skipped, capture.packets);
        }
    }

    /// Numbers at the ends of their ranges: segments from anywhere to anywhere.
    #[test]
    fn any_sequence_numbers(
        numbers in prop::collection::vec((any::<bool>(), any::<u32>(), any::<u32>(), 0..2000usize, any::<u16>()), 1..60),
    ) {
        let made: Vec<_> = numbers
            .into_iter()
            .map(|(client, seq, ack, len, flags)| {
                let flags = transom_wire::Flags::from_bits_truncate(flags & 0x17);
                super::made::from(client, u64::from(seq), flags, seq, ack, len).sack(&[(ack, seq)])
            })
            .collect();
        let capture = Capture::read(&pcap(101, &frames(&made, &[], 80), false)[..]).unwrap();
        prop_assert!(!capture.connections.is_empty());
    }
}

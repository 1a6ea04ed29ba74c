//! Segments that pass unchanged because of their options, and headers that are not looked at. All numbers by hand.

use std::vec;
use std::vec::Vec;

use transom_wire::tcp::{Flags, Options};

use super::super::config::PolicyConfig;
use super::*;
use crate::window::tests::{Path, SYN_ACK, always, packet};

/// A segment with these options instead of its own.
fn with_options(packet: &[u8], options: &[u8]) -> Vec<u8> {
    let header = 20 + usize::from(packet[32] >> 4) * 4;
    let mut changed = packet[..40].to_vec();
    changed.extend(options);
    changed.resize(changed.len().next_multiple_of(4), 0);
    changed[32] = ((changed.len() - 20) as u8 / 4) << 4;
    changed.extend(&packet[header..]);
    let total = (changed.len() as u16).to_be_bytes();
    changed[2..4].copy_from_slice(&total);
    changed
}

impl Path {
    fn forward_with(&mut self, flags: Flags, numbers: (u32, u32), options: &[u8]) {
        let none = Options::default();
        let plain = packet(self.sender, self.receiver, flags, numbers, 500, &none, 0);
        let packet = with_options(&plain, options);
        self.control.forward(self.now, &packet, packet.len(), Length::default());
    }

    /// Whether a returning segment with these options came out as it was.
    fn passes_with(
        &mut self,
        flags: Flags,
        numbers: (u32, u32),
        window: u16,
        options: &[u8],
    ) -> bool {
        let none = Options::default();
        let plain = packet(self.receiver, self.sender, flags, numbers, window, &none, 0);
        let original = with_options(&plain, options);
        let mut packet = original.clone();
        let (len, state) = (packet.len(), ChecksumState::Complete);
        let queue = Length::default();
        let verdict = self.control.returning(self.now, &mut packet, len, state, queue);
        assert_eq!(verdict.rewritten, packet != original);
        packet == original
    }
}

/// MSS 1000 and a scale of 7.
const PLAIN: [u8; 8] = [2, 4, 3, 232, 3, 3, 7, 1];
const SIGNATURE: [u8; 20] = [1, 1, 19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const AUTHENTICATION: [u8; 16] = [29, 16, 100, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const MULTIPATH: [u8; 8] = [30, 8, 0x20, 1, 0, 0, 0, 1];

#[test]
fn a_flow_whose_segments_are_signed_passes() {
    for signature in [&SIGNATURE[..], &AUTHENTICATION[..], &[14, 3, 1][..]] {
        for by_sender in [true, false] {
            let mut path = Path::new(always(2000));
            let options = [&PLAIN[..], signature].concat();
            if by_sender {
                path.forward_with(Flags::SYN, (100, 0), &options);
                assert!(path.passes_with(SYN_ACK, (900, 101), 10_000, &options));
                path.forward_with(Flags::ACK, (101, 901), signature);
            } else {
                assert!(path.passes_with(Flags::SYN, (900, 0), 10_000, &options));
                path.forward_with(SYN_ACK, (100, 901), &options);
            }
            for ack in [101, 5101, 9101] {
                assert!(path.passes_with(Flags::ACK, (901, ack), 500, signature));
            }
            let counters = path.control.report().counters;
            assert_eq!((counters.covered, counters.acks, counters.opened), (4, 3, 0));
            assert_eq!((counters.unknown, counters.rewritten), (0, 0));
            assert_eq!(path.control.report().table.flows, 0, "there is nothing to remember");
        }
    }
}

/// A segment between others passes, and what it tells the sender holds for those.
#[test]
fn an_edge_that_a_covered_segment_tells_is_kept() {
    for option in [&SIGNATURE[..], &MULTIPATH[..], &[77, 2][..], &[8, 77][..]] {
        let mut path = Path::new(always(2000));
        path.call();
        let options = path.options(Some(7));
        path.back(SYN_ACK, (900, 101), 10_000, &options);
        path.forward(Flags::ACK, (101, 901), &Options::default(), 0);
        assert_eq!(path.ack(9101, 500), 16);
        assert!(path.passes_with(Flags::ACK, (901, 9101), 500, option), "{option:?}");
        // 9101 + 500 · 128 = 73,101; 50,000 before it are 390.6 units.
        assert_eq!(path.ack(23_101, 500), 391, "{option:?}");
        let counters = path.control.report().counters;
        assert_eq!((counters.covered, counters.rewritten, counters.implausible), (1, 2, 0));
    }
}

/// An offer that the other side does not take has no force.
#[test]
fn an_unknown_option_counts_when_the_answer_has_it() {
    let offer = [&PLAIN[..], &MULTIPATH[..]].concat();
    for (answer, opened, window) in [(&PLAIN[..], 1, false), (&offer[..], 0, true)] {
        let mut path = Path::new(always(2000));
        path.forward_with(Flags::SYN, (100, 0), &offer);
        assert!(path.passes_with(SYN_ACK, (900, 101), 10_000, answer));
        path.forward_with(Flags::ACK, (101, 901), &[]);
        assert_eq!(path.passes_with(Flags::ACK, (901, 9101), 500, &[]), window);
        assert_eq!(path.control.report().counters.opened, opened);
    }
}

#[test]
fn policies_without_a_memory_look_as_well() {
    let config: PolicyConfig = "explicit-window(queue=30 packets, mss=1000B)".parse().unwrap();
    let config = ControlConfig::new(config);
    let mut path = Path::new(WindowControl::new(&config, [3; 16]).unwrap());
    assert!(!path.passes_with(Flags::ACK, (901, 101), 65_535, &[]));
    assert!(path.passes_with(Flags::ACK, (901, 101), 65_535, &SIGNATURE));
    assert_eq!(path.control.report().counters.covered, 1);
    // To hold an acknowledgement does not change it.
    let config =
        ControlConfig::new("ack-delay(above=1B, rate=10Mbit/s, most=50ms)".parse().unwrap());
    let mut control = WindowControl::new(&config, [3; 16]).unwrap();
    let none = Options::default();
    let plain = packet(path.receiver, path.sender, Flags::ACK, (901, 101), 500, &none, 0);
    let mut signed = with_options(&plain, &SIGNATURE);
    let (len, queue) = (signed.len(), Length { packets: 50, bytes: 50_000 });
    let verdict = control.returning(path.now, &mut signed, len, ChecksumState::Complete, queue);
    assert!(!verdict.rewritten && !verdict.hold.is_zero(), "{verdict:?}");
}

/// A checksum that was wrong stays so: nothing that arrives damaged gets through because of the control.
#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut path = Path::new(always(2000));
    path.call();
    let options = path.options(Some(7));
    path.back(SYN_ACK, (900, 101), 10_000, &options);
    path.forward(Flags::ACK, (101, 901), &Options::default(), 0);
    let none = Options::default();
    for damage in [1u16, 0x8000, 0x1234, 0xfffe] {
        let mut packet = packet(path.receiver, path.sender, Flags::ACK, (901, 9101), 500, &none, 0);
        let sum = u16::from_be_bytes([packet[36], packet[37]]).wrapping_add(damage);
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
        assert!(!crate::window::tests::is_sound(&packet), "{damage}");
        let (len, state) = (packet.len(), ChecksumState::Complete);
        let verdict = path.control.returning(path.now, &mut packet, len, state, Length::default());
        assert!(verdict.rewritten);
        assert!(!crate::window::tests::is_sound(&packet), "{damage}");
    }
}

/// Extension headers of IPv6 between the fixed header and the segment.
#[test]
fn chains_of_extension_headers() {
    let at = "[2001:db8::1]:1".parse().unwrap();
    let plain = packet(at, at, Flags::ACK, (1, 1), 500, &Options::default(), 10);
    // Types and the fourth byte of each, which is the number of segments left in a routing header.
    let with = |chain: &[(u8, u8)]| {
        let mut changed = plain[..40].to_vec();
        changed[6] = chain.first().map_or(6, |(kind, _)| *kind);
        for (number, (_, fourth)) in chain.iter().enumerate() {
            let next = chain.get(number + 1).map_or(6, |(kind, _)| *kind);
            changed.extend([next, 0, 4, *fourth, 0, 0, 0, 0]);
        }
        changed.extend(&plain[40..]);
        let payload = (changed.len() as u16 - 40).to_be_bytes();
        changed[4..6].copy_from_slice(&payload);
        changed
    };
    let long = vec![(60, 0); 8];
    for chain in [&[][..], &[(0, 0)], &[(60, 1)], &[(43, 0)], &[(0, 0), (60, 0), (43, 0)], &long] {
        let packet = with(chain);
        let segment = Segment::read(&packet, packet.len()).unwrap();
        assert_eq!((segment.window, segment.payload), (500, 10), "{chain:?}");
    }
    // An authentication header covers all behind it, ESP hides it. Hop-by-hop options count in the first place only.
    let too_long = vec![(60, 0); 9];
    let others = [
        &[(51, 0)][..],
        &[(50, 0)],
        &[(60, 0), (51, 0)],
        &[(60, 0), (0, 0)],
        &[(135, 0)],
        &too_long,
    ];
    for chain in others {
        let packet = with(chain);
        let read = Segment::read(&packet, packet.len());
        assert_eq!(read, Err(Unreadable::NotTcp), "{chain:?}");
    }
    for chain in [&[(44, 0)][..], &[(0, 0), (44, 0)], &[(43, 1)], &[(60, 0), (43, 2)]] {
        let packet = with(chain);
        let read = Segment::read(&packet, packet.len());
        assert_eq!(read, Err(Unreadable::Broken), "{chain:?}");
    }
}

//! Partial reliability and the kernel's TCP, which knows nothing of it, in real time over a path that loses: what would not be sent
//! again is, and a receiver that loses patience skips what a kernel sends.

use std::io::Write;
use std::net::Shutdown;
use std::thread;

use crate::support::{Lab, ROLES, Role, Version, both_ways, start, tun};
use transom_device::tun::TunOffload;
use transom_lab::{Emulated, PathConfig};
use transom_net::{Profile, Received};
use transom_tcp::compose::compose_classic as compose;

const KIB: u64 = 1 << 10;

/// A kernel and a Transom of this profile, a path between them. `None`, and a word about it, where the system refuses.
fn lab(link: &str, tcp: &str) -> Option<Lab> {
    let link = || link.parse().unwrap_or_else(|error| panic!("{error}"));
    let path = PathConfig { egress: link(), ingress: link(), seed: 11 };
    let (namespace, tun) = tun(TunOffload::Segmentation)?;
    let device = Emulated::new(tun, &path).unwrap();
    let monitor = device.monitor();
    let profile: Profile = compose(tcp).unwrap_or_else(|error| panic!("{error}"));
    Some(Lab::new(namespace, start(device, profile), Some(monitor)))
}

#[test]
fn with_a_kernel_everything_is_sent_until_it_has_arrived() {
    for tcp in
        ["no-retransmission", "retransmit(times=1, lifetime=10ms) + rack-tlp", "accept-holes"]
    {
        let Some(lab) = lab("delay=3ms, loss=2%", tcp) else { return };
        for (role, seed) in ROLES.into_iter().zip(1..) {
            let info = both_ways(&lab, Version::V4, role, 512 * KIB, true, seed);
            let partial = info.partial.unwrap();
            assert!(!partial.agreed && partial.persistence.is_none(), "{tcp}: {partial:?}");
            assert_eq!((partial.given_up_bytes, partial.skipped_bytes), (0, 0), "{tcp}");
            assert!(info.counters.retransmitted_bytes > 0, "{tcp}: {info:?}");
        }
    }
}

/// The kernel learns of a loss half a round trip after it shows here, and its repair takes as long to arrive: 20 ms, and we wait for 8.
#[test]
fn a_late_repair_of_the_kernel_is_skipped() {
    let Some(lab) = lab("delay=10ms, loss=5%", "skip-holes(after=8ms)") else { return };
    let (ours, mut theirs) = lab.connect(Version::V4, Role::Client);
    let bytes = 2048 * KIB;
    let byte = |offset: u64| (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    let content: Vec<u8> = (0..bytes).map(byte).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            theirs.write_all(&content).unwrap();
            theirs.shutdown(Shutdown::Write).unwrap();
        });
        let mut buffer = vec![0; 100_000];
        let (mut offset, mut missing) = (0usize, 0);
        loop {
            match ours.read_or_hole(&mut buffer).unwrap() {
                Received::Bytes(0) => break,
                Received::Bytes(count) => {
                    assert!(buffer[..count] == content[offset..offset + count], "at {offset}");
                    offset += count;
                }
                Received::Hole(hole) => {
                    assert_eq!(hole.offset, offset as u64);
                    offset += hole.len as usize;
                    missing += hole.len;
                }
            }
        }
        assert_eq!(offset as u64, bytes, "the kernel believes that all has arrived");
        let info = ours.info().unwrap();
        let partial = info.partial.unwrap();
        println!("{missing} of {bytes} bytes skipped, {} came late", partial.late_bytes);
        assert!(missing > 0 && partial.skipped_bytes == missing);
        assert_eq!(info.counters.bytes_accepted, bytes - missing);
        // The kernel went on repairing for a while: it had learned of the losses.
        assert!(partial.late_bytes > 0);
    });
}

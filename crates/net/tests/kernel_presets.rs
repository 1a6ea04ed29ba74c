//! Every preset against the kernel's TCP: a file both ways, whoever opens the connection, over a good path and over one that loses, with
//! ECN and without. And ECN itself, both ways: what a queue marks comes back as an echo, and the echo ends when the sender says that it has
//! reduced its window (RFC 3168 section 6.1).

use crate::support;

use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{
    Lab, ROLES, Role, VERSIONS, Version, both_ways, set_kernel_ecn, start, transom_address, tun,
};
use transom_device::tun::TunOffload;
use transom_device::{Capture, Tapped};
use transom_lab::{Emulated, PathConfig};
use transom_tcp::compose::{PRESETS, compose};
use transom_wire::ip::Ecn;
use transom_wire::{Flags, IpPacket, TcpPacket};

const KIB: u64 = 1 << 10;

/// One preset's file, both ways at once, in both roles.
fn moves_a_file(
    preset: &str,
    link: &str,
    lossy: bool,
    bytes: u64,
    kernel_ecn: bool,
) -> Option<u64> {
    let profile = compose(preset).unwrap();
    let uses_ecn = profile.ecn.config().is_some_and(|config| config.offer);
    let link = || link.parse().unwrap_or_else(|error| panic!("{error}"));
    let path = PathConfig { egress: link(), ingress: link(), seed: bytes };
    let lab = Lab::with(&path, profile.clone(), kernel_ecn.into())?;
    // Not every combination with every version: versions take turns.
    let versions = if kernel_ecn { VERSIONS } else { [Version::V6, Version::V4] };
    for (role, version) in ROLES.into_iter().zip(versions) {
        let info = both_ways(&lab, version, role, bytes, true, bytes ^ role as u64);
        let what = format!("{preset}, {role:?}, {version:?}: {info:?}");
        // A host that does not offer ECN accepts it, unless the profile has no ECN at all.
        let agrees = uses_ecn || (role == Role::Server && profile.ecn.config().is_some());
        // A SYN that was lost is repeated without the offer (RFC 3168 section 6.1.1.1).
        let agreed = info.ecn.is_some();
        assert!(agreed == (kernel_ecn && agrees) || (lossy && !agreed), "{what}");
        assert_eq!(info.sack, profile.options.sack, "{what}");
        assert_eq!(info.timestamps, profile.options.timestamps, "{what}");
        assert_eq!(info.congestion, profile.congestion.name(), "{what}");
        assert_eq!(info.counters.bytes_accepted, bytes, "{what}");
    }
    let report = lab.monitor.as_ref().unwrap().report();
    Some(report.egress.lost.packets.min(report.ingress.lost.packets))
}

fn every_preset(link: &str, bytes: u64, lossy: bool) {
    for kernel_ecn in [false, true] {
        // A few at a time: each has threads and a path of its own.
        for some in PRESETS.chunks(4) {
            thread::scope(|scope| {
                let runs: Vec<_> = some
                    .iter()
                    .map(|one| {
                        scope.spawn(move || moves_a_file(one.name, link, lossy, bytes, kernel_ecn))
                    })
                    .collect();
                for run in runs {
                    let Some(lost) = run.join().unwrap() else { return };
                    assert!(!lossy || lost > 0, "a test of losses without a loss");
                }
            });
        }
    }
}

#[test]
fn over_a_good_path() {
    every_preset("delay=2ms", 4096 * KIB, false);
}

#[test]
fn over_a_path_that_loses() {
    every_preset("delay=2ms, loss=1%", 1024 * KIB, true);
}

/// A capture in memory.
#[derive(Clone, Debug, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl io::Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What matters of a packet, as it passes Transom's end of the path.
#[derive(Clone, Copy, Debug)]
struct Seen {
    from_transom: bool,
    ecn: Ecn,
    flags: Flags,
    data: usize,
}

impl Tape {
    /// The packets of a pcapng file: enhanced packet blocks (draft-ietf-opsawg-pcapng section 4.3) have type 6, and the captured length is their fourth
    /// word after the header.
    fn packets(&self) -> Vec<Seen> {
        let file = self.0.lock().unwrap();
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut seen) = (0, Vec::new());
        while at + 8 <= file.len() {
            if word(at) == 6 {
                let bytes = &file[at + 28..at + 28 + word(at + 20)];
                let ip = IpPacket::parse(bytes).expect("an IP packet");
                if let Ok(tcp) = TcpPacket::parse(ip.payload()) {
                    seen.push(Seen {
                        from_transom: ip.src() == transom_address(Version::V4),
                        ecn: ip.ecn(),
                        flags: tcp.header.flags,
                        data: tcp.payload.len(),
                    });
                }
            }
            at += word(at + 4);
        }
        seen
    }
}

/// Sends a file one way through a queue that marks instead of dropping, and returns what was seen at Transom's end, how many packets were
/// marked and how often Transom reduced its window.
fn marked(up: bool, preset: &str) -> Option<(Vec<Seen>, u64, u64, u64)> {
    let (namespace, tun) = tun(TunOffload::Segmentation)?;
    set_kernel_ecn(&namespace, 1);
    // Marked when it waits for more than 2 ms, and room for everything there is.
    let queue =
        "rate=40Mbit/s, delay=5ms, queue=codel(20000 packets, target=2ms, interval=20ms, ecn)";
    let (egress, ingress) = if up { (queue, "delay=5ms") } else { ("delay=5ms", queue) };
    let path =
        PathConfig { egress: egress.parse().unwrap(), ingress: ingress.parse().unwrap(), seed: 1 };
    let device = Emulated::new(tun, &path).unwrap();
    let monitor = device.monitor();
    let tape = Tape::default();
    let device = Tapped::new(device, Capture::new(tape.clone()).unwrap(), "transom");
    let stack = start(device.unwrap(), compose(preset).unwrap());
    let lab = Lab::new(namespace, stack, Some(monitor.clone()));
    let (ours, theirs) = lab.connect(Version::V4, Role::Client);
    const BYTES: u64 = 16 << 20;
    thread::scope(|scope| {
        let (from, to): (Box<dyn io::Write + Send>, Box<dyn io::Read + Send>) = match up {
            true => (Box::new(&ours), Box::new(&theirs)),
            false => (Box::new(&theirs), Box::new(&ours)),
        };
        let received = scope.spawn(|| support::receive(to.take(BYTES)).unwrap());
        let sent = support::send(from, 9, BYTES).unwrap();
        assert_eq!(received.join().unwrap(), sent);
    });
    let info = ours.info().unwrap();
    assert!(info.ecn.is_some(), "ECN was not agreed: {info:?}");
    let report = monitor.report();
    let link = if up { report.egress } else { report.ingress };
    assert_eq!(link.queue_full.packets + link.lost.packets, 0, "nothing is dropped");
    if up && info.counters.retransmitted_segments > 0 {
        // Nothing was lost: a timer went off because somebody was late.
        eprintln!("SKIPPED: this machine is too busy: something was sent again without a loss");
        return None;
    }
    drop((ours, theirs, lab));
    let ecn = info.ecn.unwrap();
    Some((tape.packets(), link.marked, ecn.reductions, ecn.marked_segments))
}

/// How often, in `packets` as seen at Transom's end, an echo of the receiver was followed by the sender's CWR, and that by an acknowledgement without
/// the echo.
fn answered(packets: &[Seen], sender_is_transom: bool) -> u64 {
    #[derive(PartialEq)]
    enum Wanted {
        Echo,
        Reduced,
        Quiet,
    }
    let (mut wanted, mut rounds) = (Wanted::Echo, 0);
    for one in packets.iter().filter(|one| !one.flags.contains(Flags::SYN)) {
        let by_sender = one.from_transom == sender_is_transom;
        match wanted {
            Wanted::Echo if !by_sender && one.flags.contains(Flags::ECE) => {
                wanted = Wanted::Reduced
            }
            Wanted::Reduced if by_sender && one.flags.contains(Flags::CWR) && one.data > 0 => {
                wanted = Wanted::Quiet;
            }
            Wanted::Quiet if !by_sender && !one.flags.contains(Flags::ECE) => {
                wanted = Wanted::Echo;
                rounds += 1;
            }
            _ => {}
        }
    }
    rounds
}

/// Transom's data is marked on its way, the kernel echoes the marks, Transom answers.
#[test]
fn the_kernel_echoes_and_transom_answers() {
    let Some((packets, marked, reductions, _)) = marked(true, "modern") else { return };
    let data = packets.iter().filter(|one| one.from_transom && one.data > 0);
    // Nothing was sent again, so all data is ECN-capable (section 6.1.5).
    assert!(data.clone().count() > 0 && data.clone().all(|one| one.ecn == Ecn::Ect0));
    let rounds = answered(&packets, true);
    eprintln!("{marked} marks, {reductions} reductions, {rounds} times echo, CWR and silence");
    assert!(marked > 0 && rounds > 0 && reductions > 0);
    // At most once for each echo that is news: a CWR for each reduction, but for one whose data has not left.
    let told = data.filter(|one| one.flags.contains(Flags::CWR)).count() as u64;
    assert!(told == reductions || told + 1 == reductions, "{told} CWR, {reductions} reductions");
    assert!(reductions <= marked, "{reductions} reductions for {marked} marks");
}

/// The other way round.
#[test]
fn transom_echoes_and_the_kernel_answers() {
    let Some((packets, marked, _, arrived)) = marked(false, "modern") else { return };
    let kernels = || packets.iter().filter(|one| !one.from_transom && one.data > 0);
    let ce = kernels().filter(|one| one.ecn == Ecn::Ce).count() as u64;
    assert!(kernels().any(|one| one.ecn == Ecn::Ect0), "the kernel's data is ECN-capable");
    let rounds = answered(&packets, false);
    eprintln!("{marked} marks, {ce} seen, {arrived} taken, {rounds} times echo, CWR and silence");
    assert!(marked > 0 && ce > 0 && rounds > 0);
    assert_eq!(arrived, ce, "every mark is noticed");
    // No echo before the first mark.
    let first = packets.iter().position(|one| !one.from_transom && one.ecn == Ecn::Ce).unwrap();
    let early = packets[..first].iter().filter(|one| {
        one.from_transom && one.flags.contains(Flags::ECE) && !one.flags.contains(Flags::SYN)
    });
    assert_eq!(early.count(), 0);
}

/// DCTCP's feedback towards a kernel that speaks RFC 3168: each mark is echoed, and none where nothing was marked. The kernel, which takes an echo
/// for a whole window's, is held back more than by its own peer, and all arrives.
#[test]
fn feedback_packet_by_packet_is_understood() {
    let Some((packets, marked, _, arrived)) = marked(false, "datacentre") else { return };
    let echoes = packets
        .iter()
        .filter(|one| one.from_transom && !one.flags.contains(Flags::SYN))
        .filter(|one| one.flags.contains(Flags::ECE))
        .count() as u64;
    eprintln!("{marked} marks, {arrived} taken, {echoes} echoes");
    assert!(marked > 0 && echoes > 0 && echoes <= arrived, "{echoes} echoes for {arrived} marks");
}

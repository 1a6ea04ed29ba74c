//! The receiving side's units against the kernel's TCP, which knows nothing of them, in real time over a path that loses and reorders.
//! A kernel sends to an unordered reader, a kernel's program reads and writes data units by their encoding alone, and a kernel sends
//! to a receiver without flow control that is slower than it.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use crate::support::{Lab, ROLES, Role, Tally, Version, receive, send, start, tun};
use sha2::{Digest, Sha256};
use transom_device::tun::TunOffload;
use transom_lab::{Emulated, PathConfig};
use transom_net::{Adu, Piece, Profile, TcpStream};
use transom_tcp::compose::compose_classic as compose;

const KIB: u64 = 1 << 10;
const LOSSY: &str = "delay=3ms, loss=2%, reorder=1% by 2ms";

/// A kernel and a Transom of this profile, a path between them. `None`, and a word about it, where the system refuses.
fn lab(link: &str, tcp: &str) -> Option<Lab> {
    let link = || link.parse().unwrap_or_else(|error| panic!("{error}"));
    let path = PathConfig { egress: link(), ingress: link(), seed: 7 };
    let (namespace, tun) = tun(TunOffload::Segmentation)?;
    let device = Emulated::new(tun, &path).unwrap();
    let monitor = device.monitor();
    let profile: Profile = compose(tcp).unwrap_or_else(|error| panic!("{error}"));
    Some(Lab::new(namespace, start(device, profile), Some(monitor)))
}

/// Reads pieces to the end, each once, and puts them where they belong. Also says how many came before something that precedes them.
fn receive_unordered(stream: &TcpStream, bytes: u64) -> (Tally, usize) {
    let mut all = vec![0; bytes as usize];
    let mut had = vec![false; bytes as usize];
    let mut buffer = vec![0; 100_000];
    let (mut prefix, mut early, mut count) = (0, 0, 0);
    loop {
        match stream.read_unordered(&mut buffer).unwrap() {
            Piece::Data { offset, len, total } => {
                assert!(total.is_none_or(|total| total == bytes));
                let range = offset as usize..offset as usize + len;
                assert!(!had[range.clone()].contains(&true), "bytes at {offset} came twice");
                early += usize::from(range.start > prefix);
                had[range.clone()].fill(true);
                all[range].copy_from_slice(&buffer[..len]);
                prefix += had[prefix..].iter().take_while(|&&had| had).count();
                count += len as u64;
            }
            Piece::Hole(_) => panic!("a kernel gives nothing up"),
            Piece::End { total } => {
                assert_eq!((total, prefix as u64), (count, count));
                return ((count, Sha256::digest(&all).into()), early);
            }
        }
    }
}

#[test]
fn a_kernel_sends_to_an_unordered_reader() {
    let Some(lab) = lab(LOSSY, "unordered") else { return };
    for (role, seed) in ROLES.into_iter().zip(1..) {
        let (ours, theirs) = lab.connect(Version::V4, role);
        let bytes = 2048 * KIB;
        thread::scope(|scope| {
            let sent = scope.spawn(|| {
                let sent = send(&theirs, seed, bytes).unwrap();
                theirs.shutdown(Shutdown::Write).unwrap();
                sent
            });
            let (received, early) = receive_unordered(&ours, bytes);
            assert_eq!(received, sent.join().unwrap());
            assert!(early > 0, "with losses on the way something came early");
            // The other direction is a stream like any other.
            let back = scope.spawn(|| receive(&theirs).unwrap());
            let sent = send(&ours, !seed, 256 * KIB).unwrap();
            ours.shutdown(Shutdown::Write).unwrap();
            assert_eq!(back.join().unwrap(), sent);
        });
        let lost = lab.monitor.as_ref().unwrap().report().ingress.lost.packets;
        println!("{role:?}: {bytes} bytes, {lost} packets lost so far");
    }
}

/// A data unit's encoding as its definition has it, byte by byte, and nothing of Transom's in it.
fn encode(unit: &[u8]) -> Vec<u8> {
    let mut stream = vec![0];
    let mut block = Vec::new();
    let mut flush = |block: &mut Vec<u8>| {
        stream.push(block.len() as u8 + 1);
        stream.append(block);
    };
    for &byte in unit {
        if block.len() == 254 {
            flush(&mut block);
        }
        match byte {
            0 => flush(&mut block),
            _ => block.push(byte),
        }
    }
    flush(&mut block);
    stream.push(0);
    stream
}

/// The units in a stream, likewise.
fn decode(stream: &[u8]) -> Vec<Vec<u8>> {
    let runs = stream.split(|&byte| byte == 0).filter(|run| !run.is_empty());
    runs.map(|run| {
        let (mut unit, mut at) = (Vec::new(), 0);
        while at < run.len() {
            let code = usize::from(run[at]);
            unit.extend_from_slice(&run[at + 1..at + code]);
            at += code;
            if code < 255 && at < run.len() {
                unit.push(0);
            }
        }
        unit
    })
    .collect()
}

/// Units of all sizes and sorts.
fn some_units(count: usize) -> Vec<Vec<u8>> {
    let byte = |i: usize, j: usize| match i % 3 {
        0 => (i * 31 + j * 7) as u8,
        1 => u8::from(j % 5 == 4),
        _ => 1 + (j % 255) as u8,
    };
    (0..count).map(|i| (0..i * 37 % 3000).map(|j| byte(i, j)).collect()).collect()
}

#[test]
fn a_kernels_program_reads_data_units_by_their_encoding() {
    let Some(lab) = lab(LOSSY, "adu + nodelay") else { return };
    let (ours, mut theirs) = lab.connect(Version::V6, Role::Server);
    let units = some_units(300);
    let stream = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut stream = Vec::new();
            theirs.read_to_end(&mut stream).unwrap();
            stream
        });
        for unit in &units {
            ours.send_adu(unit).unwrap();
        }
        ours.shutdown(Shutdown::Write).unwrap();
        reader.join().unwrap()
    });
    assert_eq!(decode(&stream), units);
}

#[test]
fn a_kernels_program_writes_data_units_by_their_encoding() {
    for tcp in ["adu", "adu-unordered"] {
        let Some(lab) = lab(LOSSY, tcp) else { return };
        let (ours, mut theirs) = lab.connect(Version::V4, Role::Client);
        let units = some_units(1000);
        thread::scope(|scope| {
            scope.spawn(|| {
                let stream: Vec<u8> = units.iter().flat_map(|unit| encode(unit)).collect();
                // In pieces that have nothing to do with units.
                for piece in stream.chunks(1013) {
                    theirs.write_all(piece).unwrap();
                }
                theirs.shutdown(Shutdown::Write).unwrap();
            });
            let (mut got, mut unit) = (Vec::new(), Vec::new());
            while let Adu::Unit { offset } = ours.recv_adu(&mut unit).unwrap() {
                got.push((offset, unit.clone()));
            }
            let in_order = got.is_sorted();
            println!("{tcp}: {} units, in order: {in_order}", got.len());
            assert!(in_order == (tcp == "adu"), "with losses on the way some overtake others");
            got.sort();
            assert!(got.into_iter().map(|(_, unit)| unit).eq(units.iter().cloned()));
            assert_eq!(ours.info().unwrap().unit_faults.total(), 0);
        });
    }
}

#[test]
fn a_kernel_sends_faster_than_a_reader_without_flow_control_reads() {
    let Some(lab) = lab("delay=2ms", "no-flow-control(memory=64KiB)") else { return };
    let (ours, theirs) = lab.connect(Version::V4, Role::Client);
    let bytes = 512 * KIB;
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let sent = send(&theirs, 3, bytes).unwrap();
            theirs.shutdown(Shutdown::Write).unwrap();
            sent
        });
        // While nothing is read more arrives than there is room for.
        let mut waited = 0;
        while ours.info().unwrap().rcv_dropped == 0 {
            thread::sleep(Duration::from_millis(20));
            waited += 1;
            assert!(waited < 3000, "nothing was dropped: {:?}", ours.info());
        }
        let info = ours.info().unwrap();
        assert!(info.readable <= 65_536, "{info:?}");
        assert!(info.rcv_wnd > 1 << 29, "the window is as wide as can be: {info:?}");
        assert_eq!(receive(&ours).unwrap(), sent.join().unwrap());
        println!("{} bytes dropped of {bytes}", ours.info().unwrap().rcv_dropped);
    });
}

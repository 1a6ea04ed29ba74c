use super::*;
use crate::memory::{MemoryConfig, MemoryDevice, pair};
use crate::open::Opened;
use crate::{Device, TxPacket};
use std::path::Path;
use std::time::Duration;

const NO_TIME: Duration = Duration::ZERO;
const OWN: [u8; 4] = [10, 9, 0, 2];
const PEER: [u8; 4] = [10, 9, 0, 1];

/// A TCP segment without data, in IPv4 without options; checksums are nobody's business here.
fn packet(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    (bytes[0], bytes[3], bytes[8], bytes[9]) = (0x45, 40, 64, 6);
    bytes[12..16].copy_from_slice(&from.0);
    bytes[16..20].copy_from_slice(&to.0);
    bytes[20..22].copy_from_slice(&from.1.to_be_bytes());
    bytes[22..24].copy_from_slice(&to.1.to_be_bytes());
    bytes[32] = 0x50;
    bytes
}

/// A demultiplexer in front of one end of a memory device, and the other end.
fn demultiplexer(path: &Path) -> (Demultiplexer, MemoryDevice) {
    let (near, far) = pair(&MemoryConfig::default()).unwrap();
    let addresses = vec!["10.9.0.2/24".parse().unwrap()];
    let opened = Opened { device: Box::new(near), addresses, place: "memory".into(), lease: None };
    (Demultiplexer::new(path, opened).unwrap(), far)
}

/// Connects from a thread, as the other end is served by this one.
fn connect(
    demux: &mut Demultiplexer,
    path: &Path,
    ports: &[RangeInclusive<u16>],
) -> io::Result<DemuxDevice> {
    std::thread::scope(|scope| {
        let client = scope.spawn(|| DemuxDevice::connect(path, ports));
        while !client.is_finished() {
            demux.turn(Duration::from_millis(1)).unwrap();
        }
        client.join().unwrap()
    })
}

fn turns(demux: &mut Demultiplexer) {
    (0..4).for_each(|_| demux.turn(NO_TIME).unwrap());
}

#[test]
fn a_packet_comes_to_the_owner_of_its_port_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demux.sock");
    let (mut demux, mut wire) = demultiplexer(&path);
    let mut web = connect(&mut demux, &path, &[80..=80, 8000..=8010]).unwrap();
    let mut other = connect(&mut demux, &path, &[]).unwrap();
    assert_eq!(web.addresses(), ["10.9.0.2/24".parse().unwrap()]);
    // A port that it sends from becomes the other's own.
    let out = packet((OWN, 40_000), (PEER, 443));
    other.send(&TxPacket::whole(&out)).unwrap();
    turns(&mut demux);
    assert_eq!(wire.recv().unwrap().bytes(), out);
    for (port, owner) in [(80, 0), (8005, 0), (40_000, 1), (81, 2)] {
        let come = packet((PEER, 443), (OWN, port));
        wire.send(&TxPacket::whole(&come)).unwrap();
        turns(&mut demux);
        for (number, device) in [&mut web, &mut other].into_iter().enumerate() {
            match device.recv() {
                Ok(found) => assert!(number == owner && found.bytes() == come, "{port}"),
                Err(error) => {
                    assert_eq!((error.kind(), number == owner), (io::ErrorKind::WouldBlock, false));
                }
            }
        }
    }
    let counters = demux.counters();
    assert_eq!((counters.handed, counters.strange, counters.sent), (3, 1, 1));
}

#[test]
fn nobody_sends_in_the_name_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demux.sock");
    let (mut demux, mut wire) = demultiplexer(&path);
    let _web = connect(&mut demux, &path, &[80..=80]).unwrap();
    let mut other = connect(&mut demux, &path, &[]).unwrap();
    let mut udp = packet((OWN, 50_000), (PEER, 9));
    udp[9] = 17;
    let mut fragment = packet((OWN, 50_000), (PEER, 9));
    fragment[6] = 0x20;
    let mut long = packet((OWN, 50_000), (PEER, 9));
    long.push(0);
    let forged = [
        packet((OWN, 80), (PEER, 9)),
        packet((PEER, 50_000), (PEER, 9)),
        packet((OWN, 0), (PEER, 9)),
        udp,
        fragment,
        long,
        vec![0x45],
    ];
    for bytes in &forged {
        other.send(&TxPacket::whole(bytes)).unwrap();
        turns(&mut demux);
        assert_eq!(wire.recv().unwrap_err().kind(), io::ErrorKind::WouldBlock, "{bytes:?}");
    }
    assert_eq!(demux.counters().refused, forged.len() as u64);
}

#[test]
fn ports_are_free_again_when_their_process_has_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demux.sock");
    let (mut demux, _wire) = demultiplexer(&path);
    let first = connect(&mut demux, &path, &[80..=90]).unwrap();
    let refused = connect(&mut demux, &path, &[85..=85]).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    assert_eq!(refused.to_string(), "another process has port 85");
    drop(first);
    turns(&mut demux);
    assert_eq!(demux.clients(), 0);
    connect(&mut demux, &path, &[85..=85]).unwrap();
}

#[test]
fn a_process_sees_that_the_other_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demux.sock");
    let (mut demux, _wire) = demultiplexer(&path);
    let mut client = connect(&mut demux, &path, &[]).unwrap();
    drop(demux);
    assert_eq!(client.recv().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    assert!(DemuxDevice::connect(&path, &[]).is_err());
}

#[test]
fn the_beginning_is_read_as_it_is_written() {
    let ports = [80..=80, 8000..=8999];
    assert_eq!(asked(&hello(&ports)).unwrap(), ports);
    assert_eq!(asked(&hello(&[])).unwrap(), []);
    for wrong in [
        "",
        "transom-demux 2\n",
        "transom-demux 1\n0-5",
        "transom-demux 1\n9-5",
        "transom-demux 1\nx",
    ] {
        assert!(asked(wrong).is_none(), "{wrong}");
    }
    let addresses = ["10.9.0.2/24".parse().unwrap(), "fd00::2/64".parse().unwrap()];
    assert_eq!(welcomed(&welcome(1500, &addresses)).unwrap(), (1500, addresses.to_vec()));
    assert_eq!(welcomed(&refusal("no")).unwrap_err().to_string(), "no");
    assert!(welcomed("HTTP/1.1 400").is_err());
}

//! Mode user between two TUN interfaces, whose frames are IP packets without anything before them.

use std::io;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use crate::inject::{FAR, NEAR, segment};
use crate::support::{Offloads, wire};
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunError, TunOffload};
use transom_device::{Device, TxPacket};
use transom_forwarder::{Deployment, PolicyFile, Refusal, User};
use transom_router::window::Segment;
use transom_wire::ip::IpPacket;
use transom_wire::offload::{RxChecksum, SegmentKind, Segmentation, TxChecksum, TxOffload};
use transom_wire::tcp::{Flags, Options};
use transom_wire::{Protocol, checksum};

const TEXT: &str = "policy = 'target-window(upper=40kB, lower=20kB, initial=20kB, most=20kB, rule=section-3.2)'\nrate = '1Gbit/s'";
const PATIENCE: Duration = Duration::from_secs(20);

fn tun(namespace: &Namespace, name: &str, offload: TunOffload) -> Option<Tun> {
    match namespace.run(|| Tun::builder().name(name).offload(offload).open()).unwrap() {
        Ok(tun) => Some(tun),
        Err(TunError::Open(error)) => {
            eprintln!("SKIPPED: no access to TUN here: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

fn start(namespace: &Namespace, from: &str, device: &str) -> Option<User> {
    let policy: PolicyFile = TEXT.parse().unwrap();
    match namespace.run(|| User::start(from, device, &policy)).unwrap() {
        Ok(user) => Some(user),
        Err(error @ Refusal::Capability { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// The next TCP packet that comes out of the interface, and whether its checksum is still open. The kernel says things of its own as well.
fn receive(tun: &mut Tun) -> (Vec<u8>, bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        match tun.recv() {
            Ok(packet) => {
                let bytes = packet.bytes().to_vec();
                let open = packet.offload.checksum == RxChecksum::Valid;
                tun.recycle(packet.buffer);
                if IpPacket::parse(&bytes).is_ok_and(|ip| ip.protocol() == Protocol::TCP) {
                    return (bytes, open);
                }
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
        assert!(Instant::now() < end, "nothing came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn passes(offload: TunOffload) {
    let Ok(namespace) = Namespace::new() else {
        eprintln!("SKIPPED: no network namespaces here");
        return;
    };
    let Some(mut near) = tun(&namespace, "near", offload) else { return };
    let Some(mut far) = tun(&namespace, "far", offload) else { return };
    let Some(mut user) = start(&namespace, "near", "far") else { return };
    let (sender, receiver) = (SocketAddrV4::new(NEAR, 40_000), SocketAddrV4::new(FAR, 80));
    let (none, syn) = (
        Options::default(),
        Options { mss: Some(1460), window_scale: Some(7), ..Options::default() },
    );
    let syn_ack = Flags::SYN | Flags::ACK;
    let handshake = [
        segment(sender, receiver, Flags::SYN, (100, 0), 60_000, &syn, &[]),
        segment(receiver, sender, syn_ack, (900, 101), 60_000, &syn, &[]),
        segment(sender, receiver, Flags::ACK, (101, 901), 500, &none, b"data of the sender's"),
        segment(sender, receiver, Flags::ACK, (121, 901), 500, &none, &[]),
    ];
    for (number, packet) in handshake.iter().enumerate() {
        let (from, to) = if number == 1 { (&mut far, &mut near) } else { (&mut near, &mut far) };
        from.send(&TxPacket::whole(packet)).unwrap();
        assert_eq!(receive(to).0, *packet, "packet {number}");
    }
    // 60,000 bytes were told, of which 50,000 have been acknowledged: 20,000 are 157 units of 128.
    let ack = segment(receiver, sender, Flags::ACK, (901, 50_101), 500, &none, b"and back");
    far.send(&TxPacket::whole(&ack)).unwrap();
    let (new, open) = receive(&mut near);
    assert_eq!(Segment::peek(&new, new.len()).unwrap().window, 157);
    assert_eq!((&new[..34], &new[38..]), (&ack[..34], &ack[38..]));
    assert!(open || IpPacket::parse(&new).unwrap().transport_checksum_ok());
    let counters = user.status(0).unwrap().counters;
    assert_eq!((counters.confirmed, counters.rewritten, counters.unknown), (1, 1, 0));

    if offload == TunOffload::Segmentation {
        super_segment(&mut near, &mut far, (sender, receiver));
    }
}

/// A super-segment arrives with all its bytes, whole or cut.
fn super_segment(near: &mut Tun, far: &mut Tun, (sender, receiver): (SocketAddrV4, SocketAddrV4)) {
    let payload: Vec<u8> = (0..10_000u32).map(|at| (at * 7 % 251) as u8).collect();
    let (flags, none) = (Flags::ACK, Options::default());
    let mut packet = segment(sender, receiver, flags, (121, 901), 500, &none, &payload);
    let (src, dst) = (NEAR.into(), FAR.into());
    let sum = checksum::pseudo_header(src, dst, Protocol::TCP, packet.len() as u32 - 20);
    packet[36..38].copy_from_slice(&(!sum.checksum()).to_be_bytes());
    let cut = Segmentation { kind: SegmentKind::Tcp4, segment_size: 1400, header_len: 40 };
    let offload = TxOffload {
        checksum: TxChecksum::Partial { start: 20, offset: 16 },
        segmentation: Some(cut),
    };
    near.send(&TxPacket { headers: &packet, payload: [&[], &[]], offload }).unwrap();
    let mut arrived = Vec::new();
    while arrived.len() < payload.len() {
        let (bytes, _) = receive(far);
        let at = Segment::peek(&bytes, bytes.len()).unwrap().seq.get() - 121;
        assert_eq!(at as usize, arrived.len(), "in order");
        arrived.extend_from_slice(&bytes[40..]);
    }
    assert!(arrived == payload, "other bytes arrived");
}

#[test]
fn packets_pass_and_windows_are_rewritten() {
    passes(TunOffload::None);
}

#[test]
fn offloaded_packets_pass() {
    passes(TunOffload::Segmentation);
}

#[test]
fn a_tun_and_an_ethernet_interface_are_refused() {
    let Some(net) = wire(Offloads::Off) else { return };
    let Some(_tun) = tun(&net.router, "raw", TunOffload::None) else { return };
    let policy: PolicyFile = TEXT.parse().unwrap();
    let refused = net.router.run(|| User::start("in", "raw", &policy)).unwrap().unwrap_err();
    assert!(refused.to_string().contains("do not carry the same kind of frames"), "{refused}");
}

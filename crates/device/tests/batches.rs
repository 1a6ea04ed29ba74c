//! Packets that are sent together and leave with a flush, and packets that arrive together: over TUN, and over a packet socket.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::support::by_hand::{ByHand, addresses, pattern};
use crate::support::*;
use transom_device::namespace::Namespace;
use transom_device::open::{OpenOptions, open};
use transom_device::tun::{Tun, TunBuilder, TunOffload};
use transom_device::{Device, TxPacket};

fn plain() -> TunBuilder {
    Tun::builder()
        .name("tb%d")
        .offload(TunOffload::None)
        .joining(true)
        .address("192.0.2.1/24".parse().unwrap())
        .address("2001:db8::1/64".parse().unwrap())
}

/// A TUN interface whose packets the kernel joins.
fn joining() -> Option<(Namespace, Tun)> {
    let namespace = namespace()?;
    let tun = tun(&namespace, plain())?;
    if !tun.joins() {
        eprintln!("SKIPPED: this system lets nobody set gro_flush_timeout, or has no IFF_NAPI");
        return None;
    }
    Some((namespace, tun))
}

/// A datagram to a socket of the kernel's, with a number in it.
fn numbered(ours: IpAddr, socket: &UdpSocket, number: u32) -> Vec<u8> {
    udp((ours, 999).into(), socket.local_addr().unwrap(), &number.to_be_bytes(), Checksum::Right)
}

/// The numbers of so many datagrams, as they come.
fn numbers(socket: &UdpSocket, count: u32) -> Vec<u32> {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = [0; 4];
    let mut next = || {
        assert_eq!(socket.recv(&mut bytes).unwrap(), 4);
        u32::from_be_bytes(bytes)
    };
    (0..count).map(|_| next()).collect()
}

/// More packets than a device keeps, and packets that are to be sent at once among those that it may keep.
fn all_arrive_in_order(device: &mut impl Device, ours: IpAddr, socket: &UdpSocket) {
    const COUNT: u32 = 150;
    for number in 0..COUNT {
        let packet = numbered(ours, socket, number);
        let (headers, payload) = packet.split_at(28);
        let packet = TxPacket { payload: [payload, &[]], ..TxPacket::whole(headers) };
        match number % 50 {
            30 => device.send(&packet).unwrap(),
            _ => device.send_more(&packet).unwrap(),
        }
    }
    assert_eq!(device.flush(), 0);
    assert_eq!(device.flush(), 0);
    assert!(numbers(socket, COUNT).into_iter().eq(0..COUNT), "out of order");
}

#[test]
fn packets_that_a_tun_keeps_arrive_in_order() {
    for builder in [plain(), plain().joining(false), plain().offload(TunOffload::Segmentation)] {
        let Some(namespace) = namespace() else { return };
        let Some(mut tun) = tun(&namespace, builder) else { return };
        let (kernel, ours) = addresses(false);
        let socket = namespace.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
        all_arrive_in_order(&mut tun, ours, &socket);
    }
}

/// A data segment without PSH.
fn segment(hand: &mut ByHand, payload: &[u8]) -> Vec<u8> {
    let mut transport = Vec::new();
    transport.extend_from_slice(&hand.ours.port().to_be_bytes());
    transport.extend_from_slice(&hand.kernels.port().to_be_bytes());
    transport.extend_from_slice(&hand.seq.to_be_bytes());
    transport.extend_from_slice(&hand.ack.to_be_bytes());
    transport.extend_from_slice(&[0x50, ACK, 0xff, 0xff, 0, 0, 0, 0]);
    transport.extend_from_slice(payload);
    hand.seq = hand.seq.wrapping_add(payload.len() as u32);
    ip_packet(hand.ours.ip(), hand.kernels.ip(), 6, transport, 0, 16, Checksum::Right)
}

/// The kernel acknowledges a batch as one segment. One by one it would acknowledge each of the first segments of a connection.
#[test]
fn the_kernel_gets_the_segments_of_a_batch_as_one() {
    let Some((namespace, mut tun)) = joining() else { return };
    for v6 in [false, true] {
        let (mut hand, mut stream) = ByHand::accept(&mut tun, &namespace, v6);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let data = pattern(12_000);
        for part in data.chunks(1200) {
            tun.send_more(&TxPacket::whole(&segment(&mut hand, part))).unwrap();
        }
        assert_eq!(tun.flush(), 0);
        let mut acknowledgements = 0;
        loop {
            let packet = receive(&mut tun, is_protocol(6));
            let seen = Seen::of(packet.bytes()).unwrap();
            acknowledgements += 1;
            if seen.ack() == hand.seq {
                break;
            }
        }
        // The reader's window may be told in another one.
        assert!(acknowledgements <= 2, "{acknowledgements} for a batch");
        let mut read = vec![0; data.len()];
        stream.read_exact(&mut read).unwrap();
        assert!(read == data, "the bytes differ");
        hand.send(&mut tun, RST | ACK, &[]);
    }
}

/// Sets how long the kernel keeps segments, beyond the patience of this test.
fn keep_for_a_minute(namespace: &Namespace, interface: &str) {
    use rustix::mount::*;
    let set = || {
        let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::empty();
        let files = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let path = format!("class/net/{interface}/gro_flush_timeout");
        let (flags, mode) = (rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty());
        let file = rustix::fs::openat(&files, path, flags, mode)?;
        rustix::io::write(&file, b"60000000000")
    };
    namespace.run(set).unwrap().unwrap();
}

/// Whatever the time is for which the kernel keeps segments, a batch does not wait for it, nor does a segment that is sent alone.
#[test]
fn nothing_waits_for_the_kernels_timer() {
    let Some((namespace, mut tun)) = joining() else { return };
    keep_for_a_minute(&namespace, tun.name());
    for v6 in [false, true] {
        let (mut first, _stream) = ByHand::accept(&mut tun, &namespace, v6);
        let (mut second, _other) = ByHand::accept(&mut tun, &namespace, v6);
        // Two connections in turns, which end with an acknowledgement of the first.
        for _ in 0..3 {
            tun.send_more(&TxPacket::whole(&segment(&mut first, &[1; 1000]))).unwrap();
            tun.send_more(&TxPacket::whole(&segment(&mut second, &[2; 1000]))).unwrap();
        }
        tun.send_more(&TxPacket::whole(&segment(&mut first, &[]))).unwrap();
        assert_eq!(tun.flush(), 0);
        let (mut one, mut other) = (false, false);
        while !(one && other) {
            let packet = receive(&mut tun, is_protocol(6));
            let seen = Seen::of(packet.bytes()).unwrap();
            one |= seen.ports().0 == first.kernels.port() && seen.ack() == first.seq;
            other |= seen.ports().0 == second.kernels.port() && seen.ack() == second.seq;
        }
        tun.send(&TxPacket::whole(&segment(&mut first, &[3; 1000]))).unwrap();
        first.wait_acknowledged(&mut tun);
        first.send(&mut tun, RST | ACK, &[]);
        second.send(&mut tun, RST | ACK, &[]);
    }
}

#[test]
fn an_interface_joins_only_where_that_makes_sense() {
    let Some((namespace, tun)) = joining() else { return };
    drop(tun);
    for builder in [
        plain().joining(false),
        plain().offload(TunOffload::Checksum),
        plain().offload(TunOffload::Segmentation),
        plain().mtu(9000),
    ] {
        assert!(!namespace.run(|| builder.open()).unwrap().unwrap().joins());
    }
}

#[test]
fn packets_to_an_interface_that_is_gone_are_counted() {
    let Some((namespace, mut tun)) = joining() else { return };
    let mut command = std::process::Command::new("ip");
    command.args(["link", "del", tun.name()]);
    let Ok(mut removing) = namespace.spawn(&mut command) else {
        eprintln!("SKIPPED: there is no ip(8)");
        return;
    };
    assert!(removing.wait().unwrap().success());
    for _ in 0..3 {
        tun.send_more(&TxPacket::whole(&[0x45; 20])).unwrap();
    }
    assert_eq!(tun.flush(), 3);
    assert_eq!(tun.flush(), 0);
}

/// A packet device on one end of a wire, and the kernel's namespace at the other.
fn on_a_wire() -> Option<(Namespace, Namespace, Box<dyn Device>)> {
    let (here, there) = (quiet_namespace()?, quiet_namespace()?);
    here.add_veth("near", &there, "far").unwrap();
    here.interfaces().set_up("near", true).unwrap();
    let mut interfaces = there.interfaces();
    interfaces.set_up("far", true).unwrap();
    interfaces.add_address("far", "192.0.2.1/24".parse().unwrap()).unwrap();
    assert!(interfaces.wait_until_local(addresses(false).0, PATIENCE).unwrap());
    drop(interfaces);
    let word = "packet:near".parse().unwrap();
    let options = OpenOptions::default().with_addresses(vec!["192.0.2.2/24".parse().unwrap()]);
    match here.run(|| open(&word, &options)).unwrap() {
        Ok(opened) => Some((here, there, opened.device)),
        Err(error) => {
            eprintln!("SKIPPED: no packet socket: {error}");
            None
        }
    }
}

#[test]
fn packets_that_a_packet_socket_keeps_arrive_in_order() {
    let Some((_here, there, mut device)) = on_a_wire() else { return };
    let (kernel, ours) = addresses(false);
    let socket = there.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
    // The first one waits for its neighbour.
    device.send_more(&TxPacket::whole(&numbered(ours, &socket, 7))).unwrap();
    assert_eq!(device.flush(), 0);
    socket.set_nonblocking(true).unwrap();
    let deadline = std::time::Instant::now() + PATIENCE;
    while socket.recv(&mut [0; 4]).is_err() {
        assert!(std::time::Instant::now() < deadline, "no neighbour");
        wait_readable(&device, PATIENCE);
        let _ = device.recv_batch(16, &mut Vec::new());
    }
    socket.set_nonblocking(false).unwrap();
    all_arrive_in_order(&mut device, ours, &socket);
}

#[test]
fn a_packet_socket_hands_out_several_packets_at_once() {
    const COUNT: u32 = 40;
    let Some((_here, there, mut device)) = on_a_wire() else { return };
    let (kernel, ours) = addresses(false);
    let socket = there.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
    let to = SocketAddr::from((ours, 9));
    let mut packets = Vec::new();
    // The kernel asks who we are before it sends the first one.
    socket.send_to(&u32::MAX.to_be_bytes(), to).unwrap();
    while packets.is_empty() {
        assert!(wait_readable(&device, PATIENCE), "nobody asks");
        let _ = device.recv_batch(16, &mut packets);
    }
    packets.clear();
    for number in 0..COUNT {
        socket.send_to(&number.to_be_bytes(), to).unwrap();
    }
    assert!(device.receives_many());
    assert_eq!(device.recv_batch(0, &mut packets).unwrap(), 0);
    let mut seen = Vec::new();
    while seen.len() < COUNT as usize {
        assert!(wait_readable(&device, PATIENCE), "{seen:?} is all");
        let count = device.recv_batch(16, &mut packets).unwrap();
        assert_eq!(count, packets.len());
        assert!(count <= 16);
        if seen.is_empty() {
            assert_eq!(count, 16, "all of them are there");
        }
        for packet in packets.drain(..) {
            let transport = Seen::of(packet.bytes()).unwrap().transport.to_vec();
            seen.push(u32::from_be_bytes(*transport[8..].first_chunk().unwrap()));
            device.recycle(packet.buffer);
        }
    }
    assert!(seen.into_iter().eq(0..COUNT), "out of order");
    let nothing = device.recv_batch(16, &mut packets).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

//! TUN against the kernel's own UDP and TCP, in a network namespace made for each test.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::Command;

use crate::support::by_hand::{ByHand, addresses, is_open_checksum, pattern};
use crate::support::*;
use transom_device::namespace::Namespace;
use transom_device::open::{OpenOptions, open};
use transom_device::tun::{Tun, TunError, TunOffload};
use transom_device::{Device, SendError, TxPacket};
use transom_wire::offload::{RxChecksum, SegmentKind, Segmentation, TxChecksum, TxOffload};

fn setup(offload: TunOffload) -> Option<(Namespace, Tun)> {
    let namespace = namespace()?;
    let builder = Tun::builder()
        .name("tt%d")
        .offload(offload)
        .address("192.0.2.1/24".parse().unwrap())
        .address("2001:db8::1/64".parse().unwrap());
    let tun = tun(&namespace, builder)?;
    Some((namespace, tun))
}

#[test]
fn the_kernels_datagrams_arrive() {
    for offload in [TunOffload::None, TunOffload::Checksum, TunOffload::Segmentation] {
        let Some((namespace, mut tun)) = setup(offload) else { return };
        for v6 in [false, true] {
            let (kernel, ours) = addresses(v6);
            let socket = namespace.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
            assert_eq!(socket.send_to(b"to the user", (ours, 4242)).unwrap(), 11);
            let packet = receive(&mut tun, is_protocol(17));
            let seen = Seen::of(packet.bytes()).unwrap();
            assert_eq!((seen.source, seen.destination), (kernel, ours));
            assert_eq!(seen.ports(), (socket.local_addr().unwrap().port(), 4242));
            assert_eq!(&seen.transport[8..], b"to the user");
            if packet.offload.checksum == RxChecksum::Unverified {
                assert!(seen.checksum_is_right(), "{offload:?}: neither checked nor right");
            }
            if offload == TunOffload::None {
                assert_eq!(packet.offload, Default::default());
            }
            assert_eq!(packet.offload.segmentation, None);
            tun.recycle(packet.buffer);
        }
    }
}

#[test]
fn injected_datagrams_reach_a_kernel_socket_unless_their_checksum_is_wrong() {
    for offload in [TunOffload::None, TunOffload::Segmentation] {
        let Some((namespace, mut tun)) = setup(offload) else { return };
        for v6 in [false, true] {
            let (kernel, ours) = addresses(v6);
            let socket = namespace.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let (from, to) = (SocketAddr::from((ours, 999)), socket.local_addr().unwrap());

            let wrong = udp(from, to, b"damaged", Checksum::Wrong);
            tun.send(&TxPacket::whole(&wrong)).unwrap();
            // In parts, cut at odd places.
            let right = udp(from, to, b"sound", Checksum::Right);
            let (headers, rest) = right.split_at(23);
            let (first, second) = rest.split_at(5);
            let payload = [first, second];
            let offload_request = TxOffload::default();
            tun.send(&TxPacket { headers, payload, offload: offload_request }).unwrap();

            let mut buffer = [0; 100];
            let (length, sender) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], sender), (&b"sound"[..], from));

            let open = udp(from, to, b"open", Checksum::Open);
            let start = if v6 { 40 } else { 20 };
            let checksum = TxChecksum::Partial { start, offset: 6 };
            let request = TxOffload { checksum, segmentation: None };
            let packet = TxPacket { headers: &open, payload: [&[]; 2], offload: request };
            let sent = tun.send(&packet);
            if tun.capabilities().tx_checksum {
                sent.unwrap();
                let (length, _) = socket.recv_from(&mut buffer).unwrap();
                assert_eq!(&buffer[..length], b"open");
            } else {
                assert_eq!(SendError::of(&sent.unwrap_err()), Some(SendError::Checksum));
            }
        }
    }
}

#[test]
fn a_kernel_write_of_a_megabyte_comes_in_super_segments() {
    let Some((namespace, mut tun)) = setup(TunOffload::Segmentation) else { return };
    if !tun.capabilities().rx_coalesce {
        eprintln!("SKIPPED: this kernel does not grant segmentation offload");
        return;
    }
    for v6 in [false, true] {
        let (mut hand, mut stream) = ByHand::accept(&mut tun, &namespace, v6);
        let sent = pattern(1 << 20);
        let kind = if v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
        let mut longest = 0;
        let received = std::thread::scope(|scope| {
            scope.spawn(|| stream.write_all(&sent).unwrap());
            hand.collect(&mut tun, sent.len(), |packet| {
                let seen = Seen::of(packet.bytes()).unwrap();
                assert_eq!(packet.offload.checksum, RxChecksum::Valid);
                longest = longest.max(packet.bytes().len());
                if packet.bytes().len() > 1500 {
                    let segmentation = packet.offload.segmentation.expect("a long packet says why");
                    assert_eq!(segmentation.kind, kind);
                    assert_eq!(segmentation.segment_size, 1400);
                    let header_len = seen.ip_header_len + seen.tcp_header_len();
                    assert_eq!(usize::from(segmentation.header_len), header_len);
                }
            })
        });
        assert!(received == sent, "the bytes differ");
        assert!(longest > 30_000, "the longest packet had {longest} bytes");
        hand.send(&mut tun, RST | ACK, &[]);
    }
    assert_eq!(tun.discarded(), 0);
}

#[test]
fn a_super_segment_of_ours_reaches_the_kernels_reader() {
    let Some((namespace, mut tun)) = setup(TunOffload::Segmentation) else { return };
    let Some(longest) = tun.capabilities().segmentation else {
        eprintln!("SKIPPED: this TUN driver has no virtio-net header");
        return;
    };
    for v6 in [false, true] {
        let (mut hand, mut stream) = ByHand::accept(&mut tun, &namespace, v6);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let ip_header_len: u16 = if v6 { 40 } else { 20 };
        let header_len = ip_header_len + 20;
        // The window the kernel opened at first is 64 KB, scaled already.
        let data = pattern((longest - usize::from(header_len)).min(60_000));
        let headers = hand.header(ACK, &[]).headers(data.len(), Checksum::Open);
        let kind = if v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
        let offload = TxOffload {
            checksum: TxChecksum::Partial { start: ip_header_len, offset: 16 },
            segmentation: Some(Segmentation { kind, segment_size: 1400, header_len }),
        };
        let (first, second) = data.split_at(12_345);
        tun.send(&TxPacket { headers: &headers, payload: [first, second], offload }).unwrap();
        hand.seq = hand.seq.wrapping_add(data.len() as u32);
        let mut read = vec![0; data.len()];
        stream.read_exact(&mut read).unwrap();
        assert!(read == data, "the bytes differ");
        hand.wait_acknowledged(&mut tun);
        hand.send(&mut tun, RST | ACK, &[]);
    }
}

#[test]
fn without_offload_everything_is_finished_and_fits_the_mtu() {
    for offload in [TunOffload::None, TunOffload::Checksum] {
        let Some((namespace, mut tun)) = setup(offload) else { return };
        let capabilities = tun.capabilities();
        assert_eq!(capabilities.segmentation, None);
        assert!(!capabilities.rx_coalesce);
        if offload == TunOffload::None {
            assert!(!capabilities.tx_checksum);
        }
        let (mut hand, mut stream) = ByHand::accept(&mut tun, &namespace, false);
        let sent = pattern(100_000);
        let received = std::thread::scope(|scope| {
            scope.spawn(|| stream.write_all(&sent).unwrap());
            hand.collect(&mut tun, sent.len(), |packet| {
                assert!(packet.bytes().len() <= 1500);
                assert_eq!(packet.offload.segmentation, None);
                if offload == TunOffload::None {
                    assert_eq!(packet.offload.checksum, RxChecksum::Unverified);
                    assert!(Seen::of(packet.bytes()).unwrap().checksum_is_right());
                } else {
                    assert!(is_open_checksum(packet));
                }
            })
        });
        assert!(received == sent, "the bytes differ");

        let headers = hand.header(ACK, &[]).headers(3000, Checksum::Open);
        let segmentation =
            Some(Segmentation { kind: SegmentKind::Tcp4, segment_size: 1400, header_len: 40 });
        let request = TxOffload { checksum: TxChecksum::Complete, segmentation };
        let payload = [&[0; 3000][..], &[]];
        let error = tun.send(&TxPacket { headers: &headers, payload, offload: request });
        assert_eq!(SendError::of(&error.unwrap_err()), Some(SendError::Segmentation));
        let error = tun.send(&TxPacket::whole(&[0x45; 1501])).unwrap_err();
        let too_long = SendError::TooLong { length: 1501, limit: 1500 };
        assert_eq!(SendError::of(&error), Some(too_long));
    }
}

#[test]
fn the_queue_holds_a_burst_nobody_reads_yet() {
    const BURST: u32 = 4000;
    let Some((namespace, mut tun)) = setup(TunOffload::Segmentation) else { return };
    let (kernel, ours) = addresses(false);
    let socket = namespace.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
    for number in 0..BURST {
        socket.send_to(&number.to_be_bytes(), (ours, 9)).unwrap();
    }
    for number in 0..BURST {
        let packet = receive(&mut tun, is_protocol(17));
        assert_eq!(Seen::of(packet.bytes()).unwrap().transport[8..], number.to_be_bytes());
        tun.recycle(packet.buffer);
    }
}

#[test]
fn an_empty_device_says_so_at_once() {
    let Some(namespace) = quiet_namespace() else { return };
    let builder = Tun::builder().address("192.0.2.1/24".parse().unwrap());
    let Some(mut tun) = tun(&namespace, builder) else { return };
    assert_eq!(tun.recv_batch(16, &mut Vec::new()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(tun.recv().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// What `ip link del` does to a device that is open.
#[test]
fn an_interface_that_has_been_removed_is_said_to_be() {
    let Some(namespace) = quiet_namespace() else { return };
    let builder = Tun::builder().name("removed").address("192.0.2.1/24".parse().unwrap());
    let Some(mut tun) = tun(&namespace, builder) else { return };
    let mut command = Command::new("ip");
    command.args(["link", "del", "removed"]);
    let Ok(mut removing) = namespace.spawn(&mut command) else {
        eprintln!("SKIPPED: there is no ip(8)");
        return;
    };
    assert!(removing.wait().unwrap().success());
    let gone = |error: io::Error| {
        assert_eq!(error.kind(), io::ErrorKind::NetworkDown);
        assert_eq!(error.to_string(), "the interface removed has been removed");
    };
    gone(tun.recv().unwrap_err());
    gone(tun.recv_batch(16, &mut Vec::new()).unwrap_err());
    let packet = [0x45; 20];
    gone(tun.send(&TxPacket::whole(&packet)).unwrap_err());
    let mut body = vec![0; 65_536];
    assert_eq!(tun.recv_scattered(40, &mut body).unwrap_err().kind(), io::ErrorKind::NetworkDown);
}

#[test]
fn the_interface_is_as_asked_for_and_ends_with_the_device() {
    let Some(namespace) = namespace() else { return };
    let builder = Tun::builder().name("asked-for").mtu(1300).queue_len(1234);
    let Some(device) = tun(&namespace, builder.clone()) else { return };
    assert_eq!(device.name(), "asked-for");
    assert_eq!(device.capabilities().mtu, 1300);
    let state = namespace.interfaces().state("asked-for").unwrap();
    assert_eq!((state.mtu, state.queue_len, state.up), (1300, 1234, true));
    assert_eq!(state.index, device.index());

    let again = namespace.run(|| builder.open()).unwrap().unwrap_err();
    assert!(matches!(again, TunError::Create { .. }), "{again}");
    drop(device);
    namespace.interfaces().state("asked-for").unwrap_err();
}

#[test]
fn packets_beyond_the_mtu_of_old_are_discarded_whole_and_counted() {
    let Some((namespace, mut tun)) = setup(TunOffload::None) else { return };
    let (kernel, ours) = addresses(false);
    namespace.interfaces().set_mtu(tun.name(), 3000).unwrap();
    let socket = namespace.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
    for length in [1472, 1473, 2000, 10] {
        socket.send_to(&vec![7; length], (ours, 9)).unwrap();
    }
    for length in [1500, 38] {
        let packet = receive(&mut tun, is_protocol(17));
        assert_eq!(packet.bytes().len(), length);
        tun.recycle(packet.buffer);
    }
    assert_eq!(tun.discarded(), 2);
}

#[test]
fn impossible_settings_are_errors() {
    let Some(namespace) = namespace() else { return };
    let open = |builder: transom_device::tun::TunBuilder| namespace.run(|| builder.open()).unwrap();
    let error = open(Tun::builder().name("much-too-long-a-name")).unwrap_err();
    assert!(matches!(error, TunError::Config(_)), "{error:?}");
    let error = open(Tun::builder().existing("not-there")).unwrap_err();
    assert!(matches!(error, TunError::Interface(_)), "{error:?}");
    if tun(&namespace, Tun::builder()).is_none() {
        return;
    }
    let error = open(Tun::builder().mtu(10)).unwrap_err();
    assert!(matches!(error, TunError::Interface(_)), "{error:?}");
    let error = open(Tun::builder().mtu(1000).address("2001:db8::1/64".parse().unwrap()));
    assert!(matches!(error, Err(TunError::Interface(_))), "IPv6 needs 1280 bytes: {error:?}");
}

#[test]
fn a_persistent_interface_is_taken_as_it_is() {
    let Some(namespace) = namespace() else { return };
    for arguments in ["tuntap add dev kept mode tun", "link set kept mtu 1400 up"] {
        let mut command = Command::new("ip");
        command.args(arguments.split(' '));
        match namespace.spawn(&mut command) {
            Ok(mut child) => {
                if !child.wait().unwrap().success() {
                    eprintln!("SKIPPED: the ip program cannot make a persistent interface here");
                    return;
                }
            }
            Err(error) => {
                eprintln!("SKIPPED: no ip program to make a persistent interface with: {error:?}");
                return;
            }
        }
    }
    let device = tun(&namespace, Tun::builder().mtu(9000).existing("kept")).unwrap();
    assert_eq!(device.capabilities().mtu, 1400);
    assert!(device.capabilities().rx_coalesce);
    drop(device);
    namespace.interfaces().state("kept").unwrap();
}

#[test]
fn a_device_works_from_any_thread() {
    let Some((namespace, mut tun)) = setup(TunOffload::Segmentation) else { return };
    let (kernel, ours) = addresses(false);
    let listener = namespace.run(|| TcpListener::bind((kernel, 80))).unwrap().unwrap();
    std::thread::spawn(move || {
        let from = SocketAddr::from((ours, 5555));
        let to = SocketAddr::from((kernel, 80));
        let syn = Tcp { from, to, seq: 1, ack: 0, flags: SYN, window: 1000, options: &[] };
        tun.send(&TxPacket::whole(&syn.headers(0, Checksum::Right))).unwrap();
        let answer = receive(&mut tun, is_protocol(6));
        let seen = Seen::of(answer.bytes()).unwrap();
        assert_eq!((seen.flags(), seen.ack()), (SYN | ACK, 2));
    })
    .join()
    .unwrap();
    drop(listener);
}

/// Each queue is a device; what the kernel answers comes to the queue that spoke last.
#[test]
fn answers_come_to_the_queue_that_asked() {
    let Some(namespace) = namespace() else { return };
    let builder = Tun::builder().name("tq%d").queues(3).address("192.0.2.1/24".parse().unwrap());
    let Some(mut first) = tun(&namespace, builder) else { return };
    let mut queues = first.take_queues();
    assert_eq!(queues.len(), 2);
    assert!(first.take_queues().is_empty(), "they are taken");
    queues.push(Box::new(first));
    let (kernel, ours) = addresses(false);
    let socket = namespace.run(|| UdpSocket::bind((kernel, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    for port in 1000..1040 {
        let asked = usize::from(port) % queues.len();
        let from = SocketAddr::from((ours, port));
        let question = udp(from, socket.local_addr().unwrap(), b"?", Checksum::Right);
        queues[asked].send(&TxPacket::whole(&question)).unwrap();
        let (_, sender) = socket.recv_from(&mut [0; 8]).unwrap();
        assert_eq!(sender, from);
        socket.send_to(b"!", sender).unwrap();
        let answer = receive(&mut queues[asked], is_protocol(17));
        assert_eq!(Seen::of(answer.bytes()).unwrap().ports().1, port);
        for queue in &mut queues {
            // The kernel sends packets of its own, such as router solicitations.
            while let Ok(other) = queue.recv() {
                assert!(!is_protocol(17)(&other), "an answer came to another queue");
            }
        }
    }
}

#[test]
fn one_queue_of_an_interface_for_several_will_do() {
    let Some(namespace) = namespace() else { return };
    let builder = Tun::builder().name("tqmany").queues(2);
    let Some(_made) = tun(&namespace, builder) else { return };
    let existing = Tun::builder().existing("tqmany");
    let another = namespace.run(|| existing.open()).unwrap().unwrap();
    assert_eq!(another.name(), "tqmany");
    for impossible in [0, 257] {
        let refused = namespace.run(|| Tun::builder().queues(impossible).open()).unwrap();
        assert!(matches!(refused, Err(TunError::Config(_))), "{refused:?}");
    }
}

/// Two processes at one interface would get each other's packets.
#[test]
fn an_interface_that_another_program_uses_is_refused() {
    let Some(namespace) = namespace() else { return };
    for queues in [1, 2] {
        let name = format!("tbusy{queues}");
        let builder = Tun::builder().name(&name).queues(queues);
        let Some(made) = tun(&namespace, builder) else { return };
        let word = format!("tun:{name}").parse().unwrap();
        let options = OpenOptions::default().with_queues(queues);
        let refused = namespace.run(|| open(&word, &options)).unwrap().unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(&format!("another program uses {name}")), "{text}");
        drop(made);
        namespace.run(|| open(&word, &options)).unwrap().unwrap();
    }
}

/// What the kernel is not to cut, this device cuts: the kernel's TCP gets the same bytes.
#[test]
fn super_segments_of_small_segments_are_cut_here() {
    for least in [0, 2000] {
        let Some((namespace, tun)) = setup(TunOffload::Segmentation) else { return };
        let mut tun = tun.with_min_segment(least);
        for v6 in [false, true] {
            let (mut hand, mut stream) = ByHand::accept(&mut tun, &namespace, v6);
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let before = namespace.interfaces().state(tun.name()).unwrap().counters;
            let sent = pattern(20_000);
            let ip_header_len: u16 = if v6 { 40 } else { 20 };
            let header_len = ip_header_len + 20;
            let headers = hand.header(ACK, &[]).headers(sent.len(), Checksum::Open);
            let kind = if v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
            let offload = TxOffload {
                checksum: TxChecksum::Partial { start: ip_header_len, offset: 16 },
                segmentation: Some(Segmentation { kind, segment_size: 1000, header_len }),
            };
            let (one, other) = sent.split_at(12_345);
            tun.send(&TxPacket { headers: &headers, payload: [one, other], offload }).unwrap();
            let mut received = vec![0; sent.len()];
            stream.read_exact(&mut received).unwrap();
            assert!(received == sent);
            let after = namespace.interfaces().state(tun.name()).unwrap().counters;
            let packets = after.received - before.received;
            assert_eq!(packets, if least > 0 { 20 } else { 1 }, "{least}");
            hand.seq = hand.seq.wrapping_add(sent.len() as u32);
            hand.wait_acknowledged(&mut tun);
            hand.send(&mut tun, RST | ACK, &[]);
        }
    }
}

#[test]
fn an_inherited_descriptor_is_a_device_as_well() {
    use std::os::fd::AsRawFd;
    let Some((namespace, first)) = setup(TunOffload::Segmentation) else { return };
    let number = first.poll_fd().unwrap().as_raw_fd() as u32;
    let mut tun = namespace.run(|| Tun::builder().inherit(number, None)).unwrap().unwrap();
    assert_eq!(tun.name(), first.name());
    assert_eq!(tun.capabilities(), first.capabilities());
    // It is a descriptor of its own.
    drop(first);
    let (kernel, ours) = addresses(false);
    let from = SocketAddr::from((ours, 5555));
    let to = SocketAddr::from((kernel, 81));
    let syn = Tcp { from, to, seq: 1, ack: 0, flags: SYN, window: 1000, options: &[] };
    tun.send(&TxPacket::whole(&syn.headers(0, Checksum::Right))).unwrap();
    receive(&mut tun, is_protocol(6));
    // From another namespace nothing is known of its interface but what it says itself.
    let number = tun.poll_fd().unwrap().as_raw_fd() as u32;
    let elsewhere = Tun::builder().inherit(number, Some(1400)).unwrap();
    assert_eq!(elsewhere.capabilities().mtu, 1400);
    let error = Tun::builder().inherit(0x7fff_fff0, None).unwrap_err();
    assert!(error.to_string().contains("has no descriptor"), "{error}");
}

//! Captures of what passes through a device: read back here, and by tshark where there is one.

use std::fs;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::by_hand::{ByHand, addresses, pattern};
use crate::support::pcapng::{Captured, read};
use crate::support::*;
use transom_base::packet::PacketBuf;
use transom_base::time::Instant;
use transom_device::memory::{MemoryConfig, MemoryLink};
use transom_device::tun::Tun;
use transom_device::{Capabilities, Capture, Device, RxPacket, SendError, Tapped, TxPacket};
use transom_wire::offload::{SegmentKind, Segmentation, TxChecksum, TxOffload};

const PSH: u8 = 8;

type Tap = Tapped<MemoryLink, Vec<u8>>;

/// A link whose two ends are one, so that every packet is captured on its way out and on its way
/// in.
fn tapped_link(config: &MemoryConfig) -> Tap {
    let capture = Capture::new(Vec::new()).unwrap();
    Tapped::new(MemoryLink::new(config), capture, "link").unwrap()
}

fn captured(tap: Tap) -> Vec<Captured> {
    let (_, capture) = tap.into_parts();
    read(&capture.expect("no writer has failed").finish().unwrap())
}

fn tcp(v6: bool, flags: u8) -> Tcp {
    let (kernel, ours) = addresses(v6);
    let (from, to) = ((ours, 1000).into(), (kernel, 2000).into());
    Tcp { from, to, seq: 0xffff_ff00, ack: 1, flags, window: 100, options: &[] }
}

#[test]
fn the_comment_on_a_packet_stands_with_each_of_its_segments() {
    let mut tap = tapped_link(&MemoryConfig::with_offload());
    let payload = pattern(3000);
    let headers = tcp(false, ACK).headers(payload.len(), Checksum::Open);
    let header_len = headers.len() as u16;
    let cut = Segmentation { kind: SegmentKind::Tcp4, segment_size: 1400, header_len };
    let checksum = TxChecksum::Partial { start: header_len - 20, offset: 16 };
    let offload = TxOffload { checksum, segmentation: Some(cut) };
    let packet = TxPacket { headers: &headers, payload: [&payload, &[]], offload };
    tap.annotate("cwnd=9000");
    tap.send(&packet).unwrap();
    tap.recv().unwrap();
    tap.send(&packet).unwrap();
    let comments: Vec<_> = captured(tap).into_iter().map(|packet| packet.comment).collect();
    let said = Some("cwnd=9000".to_owned());
    let expected = [vec![said; 3], vec![None; 6]].concat();
    assert_eq!(comments, expected, "three sent with it, three received, three sent without");
}

#[test]
fn super_segments_are_captured_as_the_segments_they_stand_for() {
    for v6 in [false, true] {
        let mut tap = tapped_link(&MemoryConfig::with_offload());
        let payload = pattern(4001);
        let headers = tcp(v6, ACK | PSH | FIN).headers(payload.len(), Checksum::Open);
        let header_len = headers.len() as u16;
        let kind = if v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
        let offload = TxOffload {
            checksum: TxChecksum::Partial { start: header_len - 20, offset: 16 },
            segmentation: Some(Segmentation { kind, segment_size: 1400, header_len }),
        };
        let (first, second) = payload.split_at(1403);
        tap.send(&TxPacket { headers: &headers, payload: [first, second], offload }).unwrap();
        let received = tap.recv().unwrap();
        assert_eq!(received.bytes().len(), headers.len() + 4001, "the packet itself stays whole");
        assert_eq!(tap.status().packets(), 6);

        let packets = captured(tap);
        assert_eq!(packets.iter().map(|p| p.direction).collect::<Vec<_>>(), [2, 2, 2, 1, 1, 1]);
        for (number, packet) in packets.iter().enumerate() {
            let number = number % 3;
            let seen = Seen::of(&packet.bytes).unwrap();
            let part = &payload[number * 1400..(number * 1400 + 1400).min(4001)];
            assert_eq!(packet.original_len, packet.bytes.len());
            assert!(seen.tcp_payload() == part);
            assert_eq!(seen.seq(), 0xffff_ff00u32.wrapping_add(number as u32 * 1400));
            assert_eq!(seen.flags(), if number == 2 { ACK | PSH | FIN } else { ACK });
            assert!(seen.checksum_is_right());
            if v6 {
                let length = u16::from_be_bytes([packet.bytes[4], packet.bytes[5]]);
                assert_eq!(usize::from(length), 20 + part.len());
            } else {
                let length = u16::from_be_bytes([packet.bytes[2], packet.bytes[3]]);
                assert_eq!(usize::from(length), 40 + part.len());
                let id = u16::from_be_bytes([packet.bytes[4], packet.bytes[5]]);
                assert_eq!(usize::from(id), 1 + number);
                assert_eq!(fold(sum(&packet.bytes[..20])), 0xffff, "the IP header's checksum");
            }
        }
    }
}

#[test]
fn open_checksums_are_captured_complete_and_wrong_ones_wrong() {
    let mut tap = tapped_link(&MemoryConfig::with_offload());
    let (kernel, ours) = addresses(false);
    let (from, to) = ((ours, 1000).into(), (kernel, 2000).into());
    let open = udp(from, to, b"odd", Checksum::Open);
    let checksum = TxChecksum::Partial { start: 20, offset: 6 };
    let offload = TxOffload { checksum, segmentation: None };
    tap.send(&TxPacket { headers: &open, payload: [&[]; 2], offload }).unwrap();
    let wrong = udp(from, to, b"odd", Checksum::Wrong);
    tap.send(&TxPacket::whole(&wrong)).unwrap();
    tap.send(&TxPacket::whole(b"not even IP")).unwrap();
    let mut out = Vec::new();
    assert_eq!(tap.recv_batch(10, &mut out).unwrap(), 3);
    assert_eq!(out[0].bytes(), open, "what is handed on is untouched");

    let packets = captured(tap);
    let right = udp(from, to, b"odd", Checksum::Right);
    let bytes: Vec<&[u8]> = packets.iter().map(|packet| &packet.bytes[..]).collect();
    let expected: [&[u8]; 3] = [&right, &wrong, b"not even IP"];
    assert_eq!(bytes, [expected, expected].concat());
}

#[test]
fn refused_and_absent_packets_are_not_captured() {
    let mut tap = tapped_link(&MemoryConfig::default().with_queue_packets(1));
    assert_eq!(tap.recv().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let error = tap.send(&TxPacket::whole(&[0; 2000])).unwrap_err();
    assert!(SendError::of(&error).is_some());
    tap.send(&TxPacket::whole(b"fits")).unwrap();
    assert_eq!(tap.send(&TxPacket::whole(b"full")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let packets = captured(tap);
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].bytes, b"fits");
}

#[test]
fn timestamps_come_from_the_clock_given() {
    let mut tick = 0;
    let mut tap = tapped_link(&MemoryConfig::default()).with_clock(move || {
        tick += 1;
        Instant::from_nanos(5_000_000_000_000 + tick)
    });
    tap.send(&TxPacket::whole(b"x")).unwrap();
    tap.recv().unwrap();
    let times: Vec<u64> = captured(tap).iter().map(|packet| packet.nanos).collect();
    assert_eq!(times, [5_000_000_000_001, 5_000_000_000_002]);

    let mut tap = tapped_link(&MemoryConfig::default());
    tap.send(&TxPacket::whole(b"x")).unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let age = now - captured(tap)[0].nanos;
    assert!(age < 60_000_000_000, "real time by default");
}

/// A writer with room for so many bytes.
#[derive(Debug)]
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_failing_writer_ends_the_capture_and_not_the_traffic() {
    let link = MemoryLink::new(&MemoryConfig::default());
    let mut tap = Tapped::new(link, Capture::new(Small(300)).unwrap(), "link").unwrap();
    let status = tap.status();
    tap.send(&TxPacket::whole(&[1; 100])).unwrap();
    assert_eq!((status.packets(), status.error().is_none()), (1, true));
    for number in 2..10 {
        tap.send(&TxPacket::whole(&[number; 100])).unwrap();
    }
    for number in 1..10 {
        assert_eq!(tap.recv().unwrap().bytes(), [number; 100]);
    }
    assert_eq!(status.error().unwrap().kind(), io::ErrorKind::StorageFull);
    assert_eq!(status.packets(), 1);
    assert!(tap.into_parts().1.is_none());
}

/// A device whose packets arrive a while before it returns from sending them, which it tells.
struct Prompt {
    link: MemoryLink,
    arrived: Sender<()>,
}

impl Device for Prompt {
    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.link.send(packet)?;
        self.arrived.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        self.link.recv()
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.link.recycle(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.poll_fd()
    }
}

/// A file that several may look at.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_packet_that_has_arrived_is_in_a_capture_that_has_caught_up() {
    let (arrived, arrivals) = mpsc::channel();
    let device = Prompt { link: MemoryLink::new(&MemoryConfig::default()), arrived };
    let file = Shared::default();
    let mut tap = Tapped::new(device, Capture::new(file.clone()).unwrap(), "link").unwrap();
    let status = tap.status();
    std::thread::scope(|scope| {
        scope.spawn(move || tap.send(&TxPacket::whole(b"the end")).unwrap());
        arrivals.recv().unwrap();
        status.catch_up();
        let packets = read(&file.0.lock().unwrap());
        assert_eq!((packets.len(), status.packets()), (1, 1));
        assert_eq!(packets[0].bytes, b"the end");
    });
}

#[test]
fn all_queues_of_a_device_are_in_one_capture() {
    let Some(namespace) = namespace() else { return };
    let builder = Tun::builder().address("192.0.2.1/24".parse().unwrap()).queues(3);
    let Some(tun) = tun(&namespace, builder) else { return };
    let file = Shared::default();
    let mut tap = Tapped::new(tun, Capture::new(file.clone()).unwrap(), "queues").unwrap();
    let status = tap.status();
    let mut queues = tap.take_queues();
    assert_eq!(queues.len(), 2);
    assert!(tap.take_queues().is_empty());
    queues.push(Box::new(tap));
    std::thread::scope(|scope| {
        for (number, mut queue) in (1000..).zip(queues) {
            scope.spawn(move || {
                for _ in 0..20 {
                    let (to, from) = (addresses(false).0, addresses(false).1);
                    let (from, to) = ((from, number).into(), (to, 9).into());
                    let packet = transom_testkit::packets::udp(from, to, b"from a queue");
                    queue.send(&TxPacket::whole(&packet)).unwrap();
                }
            });
        }
    });
    status.catch_up();
    assert_eq!((status.packets(), status.error().is_none()), (60, true));
    let packets = read(&file.0.lock().unwrap());
    for number in 1000u16..1003 {
        let from = packets.iter().filter(|packet| packet.bytes[20..22] == number.to_be_bytes());
        assert_eq!(from.count(), 20);
    }
}

/// What one tshark run prints for a file, with all checksums verified; `None`, and a word about it,
/// without tshark.
fn tshark(file: &std::path::Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).arg("-n").args(arguments);
    for layer in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{layer}.check_checksum:TRUE")]);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no tshark to read the capture with: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_finds_nothing_wrong_with_a_capture_of_offloaded_traffic() {
    let Some(namespace) = namespace() else { return };
    let builder = Tun::builder()
        .address("192.0.2.1/24".parse().unwrap())
        .address("2001:db8::1/64".parse().unwrap());
    let Some(tun) = tun(&namespace, builder) else { return };
    let coalesced = tun.capabilities().rx_coalesce;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("offloaded.pcapng");
    let file = io::BufWriter::new(fs::File::create(&path).unwrap());
    let mut tap = Tapped::new(tun, Capture::new(file).unwrap(), "tun of ours").unwrap();

    let (mut reads, mut longest) = (0, 0);
    for v6 in [false, true] {
        let (mut hand, mut stream) = ByHand::accept(&mut tap, &namespace, v6);
        let data = pattern(300_000);
        let received = std::thread::scope(|scope| {
            scope.spawn(|| stream.write_all(&data).unwrap());
            hand.collect(&mut tap, data.len(), |packet| {
                reads += 1;
                longest = longest.max(packet.bytes().len());
            })
        });
        assert!(received == data);
        if coalesced {
            let headers = hand.header(ACK, &[]).headers(20_000, Checksum::Open);
            let header_len = headers.len() as u16;
            let kind = if v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
            let offload = TxOffload {
                checksum: TxChecksum::Partial { start: header_len - 20, offset: 16 },
                segmentation: Some(Segmentation { kind, segment_size: 1400, header_len }),
            };
            let payload = [&data[..9_999], &data[9_999..20_000]];
            tap.send(&TxPacket { headers: &headers, payload, offload }).unwrap();
            hand.seq += 20_000;
            hand.wait_acknowledged(&mut tap);
        }
        hand.send(&mut tap, RST | ACK, &[]);
    }
    assert!(longest > 1500 || !coalesced);
    let written = tap.status().packets();
    assert!(tap.status().error().is_none());
    tap.into_parts().1.unwrap().finish().unwrap();

    let packets = read(&fs::read(&path).unwrap());
    assert_eq!(packets.len() as u64, written);
    assert!(packets.iter().all(|packet| packet.bytes.len() <= 1500));
    // The kernel sends packets of its own as well, with headers that are not known here.
    let tcp =
        packets.iter().filter_map(|packet| Seen::of(&packet.bytes)).filter(|p| p.protocol == 6);
    assert!(tcp.clone().all(|seen| seen.checksum_is_right()));
    assert!(tcp.count() > reads);

    let fields =
        ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.packet_flags_direction"];
    let Some(lines) = tshark(&path, &fields) else { return };
    assert_eq!(lines.lines().count() as u64, written);
    let outbound = packets.iter().filter(|packet| packet.direction == 2).count();
    let seen = |direction: &str| lines.lines().filter(|line| line.ends_with(direction)).count();
    assert!(lines.lines().all(|line| line.starts_with("tun of ours\t")), "{lines}");
    assert_eq!((seen("2"), seen("1")), (outbound, packets.len() - outbound));

    // Notes and chats, such as "connection establish request", are not complaints; nor is the reset
    // at the end.
    let complaints = "_ws.malformed or tcp.checksum.status == 0 or udp.checksum.status == 0 \
                      or ip.checksum.status == 0 or _ws.expert.severity == error \
                      or tcp.analysis.ack_lost_segment or tcp.analysis.lost_segment \
                      or tcp.analysis.retransmission or ip.bogus_ip_length";
    assert_eq!(tshark(&path, &["-Y", complaints]).unwrap(), "");
    let good = "tcp.checksum.status == 1";
    let verified = tshark(&path, &["-Y", good]).unwrap().lines().count();
    let tcp_packets = tshark(&path, &["-Y", "tcp"]).unwrap().lines().count();
    assert_eq!(verified, tcp_packets, "every TCP checksum was verified");
    assert!(tcp_packets > 400);
}

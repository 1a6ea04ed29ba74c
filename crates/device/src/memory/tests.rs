use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;
use crate::SendError;
use std::net::Ipv4Addr;
use transom_wire::checksum::pseudo_header;
use transom_wire::offload::{SegmentKind, Segmentation, TxOffload};
use transom_wire::{Flags, IpPacket, Ipv4Header, Protocol, TcpHeader, TcpPacket};

fn is_readable(device: &MemoryDevice) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(device.poll_fd().unwrap(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
}

fn segmentation(header_len: u16, segment_size: u16) -> Segmentation {
    Segmentation { kind: SegmentKind::Tcp4, segment_size, header_len }
}

#[test]
fn parts_arrive_in_a_row_and_in_order() {
    let (mut near, mut far) = pair(&MemoryConfig::default()).unwrap();
    let payload = [&b"first"[..], &b"second"[..]];
    near.send(&TxPacket { headers: b"head", payload, offload: TxOffload::default() }).unwrap();
    near.send(&TxPacket::whole(b"next")).unwrap();
    assert_eq!(far.recv().unwrap().bytes(), b"headfirstsecond");
    assert_eq!(far.recv().unwrap().bytes(), b"next");
    assert_eq!(far.recv().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(near.sent(), MemoryCounts { packets: 2, bytes: 19, refused: 0 });
    assert_eq!(far.arrived(), near.sent());
    assert_eq!(far.sent(), MemoryCounts::default());
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    let config = MemoryConfig { queue_packets: 2, ..Default::default() };
    let (mut near, mut far) = pair(&config).unwrap();
    near.send(&TxPacket::whole(b"1")).unwrap();
    near.send(&TxPacket::whole(b"2")).unwrap();
    let error = near.send(&TxPacket::whole(b"3")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(near.sent().refused, 1);
    far.send(&TxPacket::whole(b"the other direction has its own queue")).unwrap();
    assert_eq!(far.recv().unwrap().bytes(), b"1");
    near.send(&TxPacket::whole(b"3")).unwrap();
    assert_eq!(far.recv().unwrap().bytes(), b"2");
    assert_eq!(far.recv().unwrap().bytes(), b"3");
}

#[test]
fn the_descriptor_is_readable_until_nothing_is_found() {
    let (mut near, mut far) = pair(&MemoryConfig::default()).unwrap();
    assert!(!is_readable(&far));
    near.send(&TxPacket::whole(b"1")).unwrap();
    near.send(&TxPacket::whole(b"2")).unwrap();
    assert!(is_readable(&far) && !is_readable(&near));
    far.recv().unwrap();
    assert!(is_readable(&far), "one packet is left");
    far.recv().unwrap();
    far.recv().unwrap_err();
    assert!(!is_readable(&far));
    near.send(&TxPacket::whole(b"3")).unwrap();
    assert!(is_readable(&far), "it is announced again");
}

#[test]
fn requests_beyond_the_capabilities_are_typed_refusals() {
    let refusal = |config: &MemoryConfig, packet: &TxPacket<'_>| {
        let error = MemoryLink::new(config).send(packet).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        SendError::of(&error).unwrap()
    };
    let plain = MemoryConfig { mtu: 100, ..Default::default() };
    let offloading = MemoryConfig { segmentation: Some(200), tx_checksum: true, ..plain };
    let too_long = |length, limit| SendError::TooLong { length, limit };

    assert_eq!(refusal(&plain, &TxPacket::whole(&[0; 101])), too_long(101, 100));
    let partial =
        TxOffload { checksum: TxChecksum::Partial { start: 20, offset: 16 }, segmentation: None };
    let packet = TxPacket { headers: &[0; 40], payload: [&[]; 2], offload: partial };
    assert_eq!(refusal(&plain, &packet), SendError::Checksum);

    let cut = TxOffload { segmentation: Some(segmentation(40, 60)), ..partial };
    let packet = TxPacket { headers: &[0; 40], payload: [&[0; 161], &[]], offload: cut };
    assert_eq!(refusal(&plain, &packet), SendError::Segmentation);
    assert_eq!(refusal(&offloading, &packet), too_long(201, 200));
}

#[test]
fn impossible_offload_requests_are_refused() {
    let config = MemoryConfig::with_offload();
    let mut link = MemoryLink::new(&config);
    let mut send = |offload: TxOffload| {
        let payload = [&[0; 50][..], &[0; 50][..]];
        let error = link.send(&TxPacket { headers: &[0; 40], payload, offload }).err()?;
        SendError::of(&error)
    };
    let checksum = |start, offset| TxOffload {
        checksum: TxChecksum::Partial { start, offset },
        segmentation: None,
    };
    let cut = |header_len, segment_size| TxOffload {
        checksum: TxChecksum::Partial { start: 20, offset: 16 },
        segmentation: Some(segmentation(header_len, segment_size)),
    };
    let misfit = Some(SendError::Offload(transom_wire::Error::BadOffload));
    assert_eq!(send(checksum(122, 16)), None);
    assert_eq!(send(checksum(123, 16)), misfit, "the field ends behind the packet");
    assert_eq!(send(checksum(u16::MAX, u16::MAX)), misfit);
    assert_eq!(send(cut(40, 60)), None);
    assert_eq!(send(cut(40, 0)), misfit, "segments without payload never end");
    assert_eq!(send(cut(141, 60)), misfit, "more header than packet");
}

#[test]
fn offload_requests_arrive_as_offload_results() {
    let mut link = MemoryLink::new(&MemoryConfig::with_offload());
    assert!(link.capabilities().rx_coalesce);
    let payload = [7; 3000];
    let cut = segmentation(40, 1460);
    let offload = TxOffload {
        checksum: TxChecksum::Partial { start: 20, offset: 16 },
        segmentation: Some(cut),
    };
    link.send(&TxPacket { headers: &[1; 40], payload: [&payload, &[]], offload }).unwrap();
    link.send(&TxPacket::whole(&[0; 40])).unwrap();
    let long = link.recv().unwrap();
    assert_eq!(long.offload, RxOffload { checksum: RxChecksum::Valid, segmentation: Some(cut) });
    assert_eq!(long.bytes().len(), 3040);
    let short = link.recv().unwrap();
    assert_eq!(short.offload, RxOffload::default());
    assert!(short.buffer.len() < 2000, "a short packet does not hold a long buffer");
}

#[test]
fn buffers_are_used_again() {
    let mut link = MemoryLink::new(&MemoryConfig::default());
    let mut addresses = Vec::new();
    for _ in 0..100 {
        link.send(&TxPacket::whole(b"again")).unwrap();
        let packet = link.recv().unwrap();
        addresses.push(packet.buffer.as_ptr());
        link.recycle(packet.buffer);
    }
    assert!(addresses.iter().all(|address| *address == addresses[0]));
}

#[test]
fn batches_end_when_the_queue_does() {
    let mut link = MemoryLink::new(&MemoryConfig::default());
    let mut out = Vec::new();
    assert_eq!(link.recv_batch(4, &mut out).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    for number in 0..5u8 {
        link.send(&TxPacket::whole(&[number])).unwrap();
    }
    assert_eq!(link.recv_batch(3, &mut out).unwrap(), 3);
    assert_eq!(link.recv_batch(3, &mut out).unwrap(), 2);
    let numbers: Vec<u8> = out.iter().map(|packet| packet.bytes()[0]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!(link.recv_batch(0, &mut out).unwrap(), 0);
}

#[test]
fn two_threads_exchange_everything_while_waiting_on_the_descriptor() {
    const PACKETS: u32 = 20_000;
    let config = MemoryConfig { queue_packets: 16, ..Default::default() };
    let (mut near, mut far) = pair(&config).unwrap();
    let receiver = thread::spawn(move || {
        let mut expected = 0u32;
        while expected < PACKETS {
            let mut fds = [PollFd::from_borrowed_fd(far.poll_fd().unwrap(), PollFlags::IN)];
            let ready = poll(&mut fds, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap();
            assert_eq!(ready, 1, "a packet that was sent is never announced");
            while let Ok(packet) = far.recv() {
                assert_eq!(packet.bytes(), expected.to_be_bytes());
                expected += 1;
                far.recycle(packet.buffer);
            }
        }
    });
    for number in 0..PACKETS {
        while let Err(error) = near.send(&TxPacket::whole(&number.to_be_bytes())) {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            assert!(!receiver.is_finished(), "the receiver has given up");
            thread::yield_now();
        }
    }
    receiver.join().unwrap();
    assert!(!near.is_connected());
}

/// A TCP segment of `payload` from 10.0.0.1 to 10.0.0.2, its checksum open.
fn open_segment(payload: usize) -> Vec<u8> {
    let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let tcp = TcpHeader { src_port: 1, dst_port: 2, flags: Flags::ACK, ..TcpHeader::default() };
    let mut packet = vec![0; 40];
    Ipv4Header::new(src, dst, Protocol::TCP).emit(20 + payload, &mut packet).unwrap();
    tcp.emit(&mut packet[20..]).unwrap();
    let pseudo = pseudo_header(src.into(), dst.into(), Protocol::TCP, 20 + payload as u32);
    packet[36..38].copy_from_slice(&pseudo.0.to_be_bytes());
    packet
}

#[test]
fn cards_cut_what_is_too_long_and_complete_checksums() {
    let (mut near, mut far) = pair(&MemoryConfig::with_cards()).unwrap();
    let mut link = MemoryLink::new(&MemoryConfig::with_cards());
    let payload: Vec<u8> = (0..3000u32).map(|i| (i * 7) as u8).collect();
    let headers = open_segment(payload.len());
    let segmentation = Segmentation { kind: SegmentKind::Tcp4, segment_size: 1400, header_len: 40 };
    let offload = TxOffload {
        checksum: TxChecksum::Partial { start: 20, offset: 16 },
        segmentation: Some(segmentation),
    };
    let (front, back) = payload.split_at(1700);
    let packet = TxPacket { headers: &headers, payload: [front, back], offload };
    near.send(&packet).unwrap();
    link.send(&packet).unwrap();
    for device in [&mut far as &mut dyn Device, &mut link] {
        let mut got = Vec::new();
        for expected in [1400, 1400, 200] {
            let packet = device.recv().unwrap();
            assert_eq!(packet.offload, RxOffload::default(), "nobody vouches for it");
            let ip = IpPacket::parse(packet.bytes()).unwrap();
            assert!(ip.transport_checksum_ok());
            let tcp = TcpPacket::parse(ip.payload()).unwrap();
            assert_eq!(tcp.header.seq.get() as usize, got.len());
            assert_eq!(tcp.payload.len(), expected);
            got.extend_from_slice(tcp.payload);
        }
        assert_eq!(got, payload);
        assert!(device.recv().is_err());
    }
}

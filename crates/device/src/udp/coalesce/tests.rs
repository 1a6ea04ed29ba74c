use proptest::prelude::*;
use transom_wire::offload::{Segmenter, TxChecksum, TxOffload};
use transom_wire::{IpHeader, Seq, TcpHeader};

use super::*;

const FRONT: usize = 8;

fn header(is_v6: bool, payload: usize, flags: Flags) -> Vec<u8> {
    let tcp = TcpHeader {
        src_port: 1,
        dst_port: 2,
        seq: Seq::new(u32::MAX - 3000),
        flags,
        window: 77,
        ..TcpHeader::default()
    };
    let mut bytes = vec![0; 60];
    let ends = if is_v6 { ["fd09::1", "fd09::2"] } else { ["10.9.0.1", "10.9.0.2"] };
    let [src, dst] = ends.map(|address| address.parse().unwrap());
    let ip = IpHeader::new(src, dst, Protocol::TCP).emit(20 + payload, &mut bytes).unwrap();
    let tcp_len = tcp.emit(&mut bytes[ip..]).unwrap();
    bytes.truncate(ip + tcp_len);
    bytes
}

/// The segments of a super-segment in datagrams, one after the other, and their distance.
fn datagrams(is_v6: bool, payload: &[u8], size: u16, flags: Flags) -> (Vec<u8>, usize) {
    let headers = header(is_v6, payload.len(), flags);
    let kind = if is_v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
    let header_len = headers.len() as u16;
    let offload = TxOffload {
        checksum: TxChecksum::Partial { start: header_len - 20, offset: 16 },
        segmentation: Some(Segmentation { kind, segment_size: size, header_len }),
    };
    let mut segmenter = Segmenter::new(&headers, [payload, &[]], &offload).unwrap();
    let (mut all, mut head) = (Vec::new(), [0; 128]);
    while let Some(segment) = segmenter.next_segment(&mut head).unwrap() {
        all.extend([9; FRONT]);
        all.extend_from_slice(&head[..segment.header_len]);
        segment.payload.iter().for_each(|part| all.extend_from_slice(part));
    }
    (all, FRONT + usize::from(header_len) + usize::from(size))
}

proptest! {
    /// A super-segment that was cut is put together again.
    #[test]
    fn segments_become_what_they_were(
        is_v6: bool, size in 1u16..2000, length in 1usize..30_000, fin: bool, push: bool,
    ) {
        let payload: Vec<u8> = (0..length).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut flags = Flags::ACK;
        flags.set(Flags::FIN, fin);
        flags.set(Flags::PSH, push);
        let (mut buffer, stride) = datagrams(is_v6, &payload, size, flags);
        let count = length.div_ceil(size.into());
        let total = buffer.len();
        let (end, offload, taken) = take_first(&mut buffer, FRONT, stride, total, |_| true);
        prop_assert_eq!(taken, count);
        let packet = &buffer[FRONT..end];
        let ip = IpPacket::parse(packet).unwrap();
        prop_assert_eq!(ip.total_len(), packet.len());
        if let IpPacket::V4(v4) = &ip {
            prop_assert!(v4.checksum_ok());
        }
        let tcp = TcpPacket::parse(ip.payload()).unwrap();
        prop_assert_eq!(tcp.payload(), &payload[..]);
        prop_assert_eq!(tcp.header().flags, flags);
        prop_assert_eq!(offload.segmentation.is_some(), count > 1);
        prop_assert_eq!(offload.segmentation.map_or(size, |s| s.segment_size), size);
    }

    /// Any bytes: no panic, and progress.
    #[test]
    fn any_bytes_are_taken_one_by_one(mut bytes: Vec<u8>, stride in 9usize..200) {
        let total = bytes.len();
        let (end, _, taken) = take_first(&mut bytes, FRONT, stride, total, |_| true);
        prop_assert!(end <= total.max(stride) && taken >= 1);
    }

    /// A byte of a header that differs ends it there, wherever it is, or is one of those that may.
    #[test]
    fn segments_that_differ_stay_apart(is_v6: bool, at in 0usize..60, bit in 0u8..8) {
        let payload = [5; 3000];
        let (mut buffer, stride) = datagrams(is_v6, &payload, 1000, Flags::ACK);
        let header_len = stride - FRONT - 1000;
        let at = at % header_len;
        buffer[stride + FRONT + at] ^= 1 << bit;
        let total = buffer.len();
        let (_, _, taken) = take_first(&mut buffer, FRONT, stride, total, |_| true);
        let tcp_at = header_len - 20;
        let own_of_each: &[usize] = if is_v6 { &[] } else { &[4, 5, 10, 11] };
        let checksum_or_urgent = (tcp_at + 16..tcp_at + 20).contains(&at);
        // Not looked at: identification, checksums, the urgent pointer of what is not urgent, and PSH and FIN, which end it behind themselves.
        let may = own_of_each.contains(&at) || checksum_or_urgent
            || (at == tcp_at + 13 && (bit == 0 || bit == 3));
        if !may {
            prop_assert_eq!(taken, 1, "byte {}", at);
        }
    }
}

#[test]
fn a_shorter_one_is_the_last() {
    let (first, stride) = datagrams(false, &[1; 2500], 1000, Flags::ACK);
    let mut buffer = [&first[..], &vec![0; stride * 3 - first.len()], &first].concat();
    let total = first.len();
    let (_, _, taken) = take_first(&mut buffer, FRONT, stride, total, |_| true);
    assert_eq!(taken, 3);
}

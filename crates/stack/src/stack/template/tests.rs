//! A template writes what the ordinary way writes, and reads only what the ordinary way reads the same.

use super::*;
use crate::stack::transmit::write_headers;
use proptest::prelude::*;
use std::vec::Vec;
use transom_wire::{Ecn, IpPacket, TcpPacket};

fn key(v6: bool) -> FlowKey {
    let (local, remote): (IpAddr, IpAddr) = if v6 {
        ("fd00::17".parse().unwrap(), "fd00:1:2:3::ffff".parse().unwrap())
    } else {
        ("10.255.3.1".parse().unwrap(), "192.0.2.200".parse().unwrap())
    };
    FlowKey { local, remote, local_port: 0xfffe, remote_port: 443 }
}

fn reversed(key: &FlowKey) -> FlowKey {
    FlowKey {
        local: key.remote,
        remote: key.local,
        local_port: key.remote_port,
        remote_port: key.local_port,
    }
}

const CARRIER: IpFields = IpFields { hop_limit: 64, dscp: 10, dont_fragment: true };

fn header() -> impl Strategy<Value = TcpHeader> {
    let timestamps = prop::option::of((any::<u32>(), any::<u32>()));
    (
        any::<u32>(),
        any::<u32>(),
        0u16..512,
        any::<u16>(),
        any::<u16>(),
        timestamps,
        prop::option::of(any::<u16>()),
    )
        .prop_map(|(seq, ack, flags, window, urgent, stamps, mss)| TcpHeader {
            src_port: 0xfffe,
            dst_port: 443,
            seq: Seq::new(seq),
            ack: Seq::new(ack),
            flags: Flags::from_bits_truncate(flags),
            window,
            urgent,
            options: Options {
                timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
                mss,
                ..Options::default()
            },
        })
}

proptest! {
    #[test]
    fn writes_the_same_as_the_ordinary_way(
        header in header(), v6: bool, completes: bool,
        front in prop::collection::vec(any::<u8>(), 0..700), back in prop::collection::vec(any::<u8>(), 0..700),
        class in 0u8..4,
    ) {
        let (mut quick, mut slow) = ([0xaa; MAX_HEADERS], [0x55; MAX_HEADERS]);
        let transmit = Transmit {
            header,
            payload: [&front, &back],
            segment_size: Some(500),
            ecn: Ecn::from_traffic_class(class),
        };
        let template = Template::new(&key(v6), &CARRIER).unwrap();
        let (len, offload) = template.write(&mut quick, &transmit, completes, 7).unwrap();
        let (expected_len, expected) =
            write_headers(&mut slow, &key(v6), &CARRIER, &transmit, completes).unwrap();
        prop_assert_eq!((len, offload), (expected_len, expected));
        prop_assert_eq!(&quick[..len], &slow[..len]);
    }

    #[test]
    fn a_packet_that_may_be_fragmented_is_identified(header in header(), v6: bool, ident: u16) {
        let ip_fields = IpFields { dont_fragment: false, ..CARRIER };
        let transmit =
            Transmit { header, payload: [b"hello", &[]], segment_size: None, ecn: Ecn::Ce };
        let mut bytes = [0; MAX_HEADERS];
        let template = Template::new(&key(v6), &ip_fields).unwrap();
        let (len, _) = template.write(&mut bytes, &transmit, false, ident).unwrap();
        let packet = [&bytes[..len], b"hello"].concat();
        let ip = IpPacket::parse(&packet).unwrap();
        prop_assert!(ip.transport_checksum_ok());
        if let IpPacket::V4(v4) = &ip {
            prop_assert!(v4.checksum_ok());
            prop_assert_eq!((v4.header().id, v4.header().dont_fragment), (ident, false));
        }
    }

    #[test]
    fn reads_what_the_ordinary_way_reads_or_nothing(
        header in header(), v6: bool, payload in prop::collection::vec(any::<u8>(), 0..100),
        plain: bool, damage in prop::option::of((any::<prop::sample::Index>(), 0u32..8)), verified: bool,
    ) {
        let header = if plain {
            TcpHeader {
                flags: Flags::ACK,
                urgent: 0,
                options: Options {
                    timestamps: Some(Timestamps { value: 7, echo: 9 }),
                    ..Options::default()
                },
                ..header
            }
        } else {
            header
        };
        // The peer's packet, in one piece.
        let mut headers = [0; MAX_HEADERS];
        let sender = key(v6);
        let transmit =
            Transmit { header, payload: [&payload, &[]], segment_size: None, ecn: Ecn::Ce };
        let (len, _) = write_headers(&mut headers, &sender, &CARRIER, &transmit, false).unwrap();
        let mut packet: Vec<u8> = [&headers[..len], &payload[..]].concat();
        if let Some((place, bit)) = damage {
            packet[place.index(len + payload.len())] ^= 1 << bit;
        }
        let offload = RxOffload {
            checksum: if verified { RxChecksum::Valid } else { RxChecksum::Unverified },
            segmentation: None,
        };
        let template = Template::new(&reversed(&sender), &CARRIER).unwrap();
        let quick = template.read(&packet, offload);
        if plain && damage.is_none() {
            prop_assert!(quick.is_some());
        }
        if let Some((read, range)) = quick {
            let ip = IpPacket::parse(&packet).unwrap();
            if let IpPacket::V4(v4) = &ip { prop_assert!(v4.checksum_ok()); }
            prop_assert!(verified || ip.transport_checksum_ok());
            prop_assert!(ip.fragment().is_none());
            prop_assert_eq!((ip.src(), ip.dst()), (sender.local, sender.remote));
            let tcp = TcpPacket::parse(ip.payload()).unwrap();
            prop_assert_eq!(&read, &TcpHeader { urgent: 0, ..tcp.header });
            prop_assert_eq!(&packet[range], tcp.payload);
        }
    }
}

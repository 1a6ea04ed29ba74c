//! The TCP header against vectors written by hand from the RFCs, and round trips of arbitrary ones.

use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

/// A SYN as a common kernel sends it: MSS 1460, SACK-permitted, timestamps, window scale 7.
const SYN: [u8; 40] = [
    0xc0, 0x00, 0x00, 0x50, // ports 49152, 80
    0xff, 0xff, 0xff, 0xfe, // sequence number 2^32 - 2
    0x00, 0x00, 0x00, 0x00, // no acknowledgement
    0xa0, 0x02, 0xfa, 0xf0, // ten words, SYN, window 64240
    0x12, 0x34, 0x00, 0x00, // checksum, urgent pointer
    0x02, 0x04, 0x05, 0xb4, // MSS 1460
    0x04, 0x02, 0x08, 0x0a, // SACK-permitted; timestamps
    0x01, 0x02, 0x03, 0x04, // value
    0x00, 0x00, 0x00, 0x00, // echo
    0x01, 0x03, 0x03, 0x07, // NOP, window scale 7
];

fn syn_header() -> TcpHeader {
    TcpHeader {
        src_port: 49152,
        dst_port: 80,
        seq: Seq::new(0xffff_fffe),
        flags: Flags::SYN,
        window: 64240,
        options: Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 0x0102_0304, echo: 0 }),
            ..Options::default()
        },
        ..TcpHeader::default()
    }
}

#[test]
fn a_syn_is_read() {
    let packet = TcpPacket::parse(&SYN).unwrap();
    assert_eq!(packet.header, syn_header());
    assert_eq!(packet.header_len(), 40);
    assert_eq!(packet.options, &SYN[20..]);
    assert!(packet.payload.is_empty());
    assert_eq!(packet.header.segment_len(0), 1);
}

#[test]
fn a_syn_is_written_as_common_stacks_do() {
    let mut out = [0xee; 64];
    assert_eq!(syn_header().emit(&mut out), Ok(40));
    let mut expected = SYN;
    expected[16..18].fill(0);
    assert_eq!(out[..40], expected);
    assert_eq!(out[40..], [0xee; 24]);
}

#[test]
fn every_flag_has_its_bit() {
    let names = [
        (0x0001, Flags::FIN),
        (0x0002, Flags::SYN),
        (0x0004, Flags::RST),
        (0x0008, Flags::PSH),
        (0x0010, Flags::ACK),
        (0x0020, Flags::URG),
        (0x0040, Flags::ECE),
        (0x0080, Flags::CWR),
        (0x0100, Flags::AE),
    ];
    for (bit, flag) in names {
        let mut bytes = [0; 20];
        bytes[12..14].copy_from_slice(&(0x5000u16 | bit).to_be_bytes());
        assert_eq!(TcpPacket::parse(&bytes).unwrap().header.flags, flag);
        let mut out = [0; 20];
        TcpHeader { flags: flag, ..TcpHeader::default() }.emit(&mut out).unwrap();
        assert_eq!(out, bytes);
    }
}

#[test]
fn reserved_bits_are_ignored_and_not_sent() {
    let mut bytes = [0; 20];
    bytes[12] = 0x5e;
    assert_eq!(TcpPacket::parse(&bytes).unwrap().header.flags, Flags::empty());
    let mut out = [0; 20];
    let flags = Flags::from_bits_retain(0xffff);
    TcpHeader { flags, ..TcpHeader::default() }.emit(&mut out).unwrap();
    assert_eq!(out[12..14], [0x51, 0xff]);
}

#[test]
fn lengths_that_lie_are_errors() {
    assert_eq!(TcpPacket::parse(&[]).unwrap_err(), Error::Truncated);
    assert_eq!(TcpPacket::parse(&SYN[..19]).unwrap_err(), Error::Truncated);
    assert_eq!(TcpPacket::parse(&SYN[..39]).unwrap_err(), Error::Truncated);
    let mut short_offset = SYN;
    short_offset[12] = 0x40;
    assert_eq!(TcpPacket::parse(&short_offset).unwrap_err(), Error::BadHeaderLength);
    let mut long_offset = SYN;
    long_offset[12] = 0xb0;
    assert_eq!(TcpPacket::parse(&long_offset).unwrap_err(), Error::Truncated);
}

#[test]
fn illegal_option_lengths_are_errors() {
    // [MUST-7] Zero, one, past the end. [MUST-68] A kind without its length byte.
    for options in [[2, 0, 0, 0], [2, 1, 0, 0], [2, 5, 0, 0], [1, 1, 1, 2], [200, 255, 0, 0]] {
        assert_eq!(Options::parse(&options).unwrap_err(), Error::BadOption);
        let mut bytes = [0; 24];
        bytes[12] = 0x60;
        bytes[20..].copy_from_slice(&options);
        assert_eq!(TcpPacket::parse(&bytes).unwrap_err(), Error::BadOption);
    }
}

#[test]
fn a_known_kind_of_wrong_length_and_an_unknown_kind_are_skipped() {
    // [MUST-6] Neither is an error.
    let bytes = [2, 3, 9, 3, 2, 4, 3, 7, 8, 4, 1, 2, 5, 2, 34, 5, 1, 2, 3, 99, 3, 7, 1];
    assert_eq!(Options::parse(&bytes), Ok(Options::default()));
    let behind = [&bytes[..], &[3, 3, 5]].concat();
    assert_eq!(Options::parse(&behind).unwrap().window_scale, Some(5));
}

#[test]
fn the_last_of_two_counts() {
    for (first, second) in [
        (&[2, 4, 0, 100][..], &[2, 4, 0, 200][..]),
        (&[3, 3, 1], &[3, 3, 2]),
        (&[5, 10, 0, 0, 0, 1, 0, 0, 0, 2], &[5, 10, 0, 0, 0, 3, 0, 0, 0, 4]),
        (&[8, 10, 0, 0, 0, 1, 0, 0, 0, 2], &[8, 10, 0, 0, 0, 3, 0, 0, 0, 4]),
        (&[28, 4, 0, 1], &[28, 4, 0, 2]),
        (&[34, 6, 1, 2, 3, 4], &[34, 6, 5, 6, 7, 8]),
    ] {
        let alone = Options::parse(second).unwrap();
        assert_ne!(alone, Options::parse(first).unwrap());
        assert_eq!(Options::parse(&[first, second].concat()), Ok(alone));
    }
    // One whose length is wrong is none.
    assert_eq!(Options::parse(&[2, 4, 5, 180, 2, 3, 1]).unwrap().mss, Some(1460));
}

#[test]
fn nothing_after_the_end_of_the_list_counts() {
    // [MUST-4] End of list.
    let bytes = [3, 3, 2, 0, 2, 0, 2, 1];
    assert_eq!(Options::parse(&bytes), Ok(Options { window_scale: Some(2), ..Options::default() }));
}

#[test]
fn an_option_is_read_whatever_the_flags() {
    // [MUST-5] [MUST-4] An MSS in segments that are not SYNs, behind NOPs.
    for flags in [Flags::ACK, Flags::RST, Flags::FIN | Flags::ACK, Flags::empty()] {
        let mut bytes = [0; 28];
        TcpHeader { flags, ..TcpHeader::default() }.emit(&mut bytes).unwrap();
        bytes[12] = 0x70;
        bytes[20..].copy_from_slice(&[1, 1, 1, 2, 4, 5, 0xb4, 1]);
        assert_eq!(TcpPacket::parse(&bytes).unwrap().header.options.mss, Some(1460));
    }
}

#[test]
fn strange_values_are_kept_as_sent() {
    let options = Options::parse(&[2, 4, 0, 0, 1, 3, 3, 255]).unwrap();
    assert_eq!((options.mss, options.window_scale), (Some(0), Some(255)));
}

#[test]
fn the_usual_timestamps_layout_and_any_other_read_alike() {
    // [MUST-64] On a word boundary or not.
    let stamps = Timestamps { value: 0x8765_4321, echo: 0x0abc_def0 };
    let expected = Options { timestamps: Some(stamps), ..Options::default() };
    let option = [8, 10, 0x87, 0x65, 0x43, 0x21, 0x0a, 0xbc, 0xde, 0xf0];
    let usual = [&[1, 1][..], &option].concat();
    let trailing = [&option[..], &[1, 1]].concat();
    let ended = [&option[..], &[0, 0]].concat();
    for bytes in [&usual, &trailing, &ended] {
        assert_eq!(Options::parse(bytes), Ok(expected));
    }
    let mut out = [0; 40];
    assert_eq!(expected.emit(&mut out), Ok(12));
    assert_eq!(out[..12], usual);
}

#[test]
fn sack_blocks_are_read_and_written() {
    // RFC 2018 4, case 2: the first of eight segments is lost, the last ack says 5000 and
    // 5500–9000.
    let bytes = [1, 1, 5, 10, 0, 0, 0x15, 0x7c, 0, 0, 0x23, 0x28];
    let options = Options::parse(&bytes).unwrap();
    let block = SackBlock { left: Seq::new(5500), right: Seq::new(9000) };
    assert_eq!(*options.sack, [block]);
    let mut out = [0; 12];
    assert_eq!(options.emit(&mut out), Ok(12));
    assert_eq!(out, bytes);
}

#[test]
fn four_sack_blocks_fit_alone_and_three_beside_timestamps() {
    let mut sack = SackBlocks::new();
    for n in 0..4 {
        assert!(sack.push(SackBlock { left: Seq::new(n), right: Seq::new(n + 1) }));
    }
    assert!(!sack.push(SackBlock::default()));
    let mut out = [0; 60];
    let mut header =
        TcpHeader { options: Options { sack, ..Options::default() }, ..Default::default() };
    assert_eq!(header.options.sack_room(), 4);
    assert_eq!(header.emit(&mut out), Ok(56));
    assert_eq!(TcpPacket::parse(&out[..56]).unwrap().header.options.sack, sack);
    header.options.timestamps = Some(Timestamps::default());
    assert_eq!(header.options.sack_room(), 3);
    assert_eq!(header.header_len(), 68);
    assert_eq!(header.emit(&mut [0; 80]), Err(Error::TooLong));
}

#[test]
fn a_short_output_buffer_is_an_error() {
    for len in 0..40 {
        assert_eq!(syn_header().emit(&mut vec![0; len]), Err(Error::BufferTooSmall));
    }
}

#[test]
fn user_timeout_has_a_granularity_bit() {
    // RFC 5482 3.1: kind 28, length 4, G, 15 bits.
    let minutes = Options::parse(&[28, 4, 0x80, 10]).unwrap().user_timeout.unwrap();
    assert_eq!((minutes.as_secs(), minutes.in_minutes()), (600, true));
    let seconds = Options::parse(&[28, 4, 0x00, 10]).unwrap().user_timeout.unwrap();
    assert_eq!((seconds.as_secs(), seconds.in_minutes()), (10, false));
    assert_eq!(UserTimeout::from_secs(10), seconds);
    assert_eq!(UserTimeout::from_secs(32_767).as_secs(), 32_767);
    assert_eq!(UserTimeout::from_secs(32_768).as_secs(), 547 * 60);
    assert_eq!(UserTimeout::from_secs(u32::MAX).as_secs(), 32_767 * 60);
}

#[test]
fn fast_open_cookies_have_the_lengths_of_rfc_7413() {
    assert!(FastOpen::new(&[]).unwrap().is_request());
    for len in [1, 2, 3, 5, 7, 15, 17, 18] {
        assert_eq!(FastOpen::new(&vec![1; len]), None, "{len}");
    }
    for len in [4, 6, 8, 16] {
        assert_eq!(FastOpen::new(&vec![1; len]).unwrap().as_slice(), vec![1; len]);
    }
    let cookie = FastOpen::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let options = Options { fast_open: Some(cookie), ..Options::default() };
    let mut out = [0; 12];
    assert_eq!(options.emit(&mut out), Ok(12));
    assert_eq!(out, [1, 1, 34, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
    // The experimental kind 254 (RFC 6994) is not interpreted.
    assert_eq!(Options::parse(&[254, 4, 0xf9, 0x89]), Ok(Options::default()));
}

#[test]
fn an_icmp_error_quotes_ports_and_sequence_number() {
    let quoted = QuotedTcp::parse(&SYN[..8]).unwrap();
    let expected = QuotedTcp { src_port: 49152, dst_port: 80, seq: Seq::new(0xffff_fffe) };
    assert_eq!(quoted, expected);
    assert_eq!(QuotedTcp::parse(&SYN[..7]), Err(Error::Truncated));
}

#[test]
fn a_header_prints_as_one_line() {
    assert_eq!(
        std::format!("{}", syn_header()),
        "49152 > 80 [SYN] seq 4294967294 win 64240 mss 1460 wscale 7 sack-permitted ts 16909060/0"
    );
}

#[test]
fn partial_reliability_is_an_experiment_with_an_identifier() {
    // RFC 6994 section 3: kind 253, length, identifier (here 0x5052), value.
    let permitted = Options { partial: Some(PartialReliability::Permitted), ..Options::default() };
    assert_eq!(Options::parse(&[253, 4, 0x50, 0x52]), Ok(permitted));
    let point = PartialReliability::ForwardPoint(Seq::new(0xfedc_ba98));
    let forward = Options { partial: Some(point), ..Options::default() };
    let bytes = [253, 8, 0x50, 0x52, 0xfe, 0xdc, 0xba, 0x98];
    assert_eq!(Options::parse(&bytes), Ok(forward));
    let mut out = [0; 8];
    assert_eq!(permitted.emit(&mut out), Ok(4));
    assert_eq!(out[..4], [253, 4, 0x50, 0x52]);
    assert_eq!(forward.emit(&mut out), Ok(8));
    assert_eq!(out, bytes);
    // Other experiments, other lengths, and the other kind for experiments are somebody else's.
    for other in [
        &[253, 4, 0x50, 0x53][..],
        &[253, 2],
        &[253, 3, 0x50],
        &[253, 6, 0x50, 0x52, 1, 2],
        &[253, 9, 0x50, 0x52, 1, 2, 3, 4, 5],
        &[254, 4, 0x50, 0x52],
    ] {
        assert_eq!(Options::parse(other), Ok(Options::default()), "{other:?}");
    }
    // The last counts.
    let twice = [&[253, 8, 0x50, 0x52, 0, 0, 0, 1], &bytes[..]].concat();
    assert_eq!(Options::parse(&twice), Ok(forward));
    // Two SACK blocks fit beside it and timestamps.
    let stamped = Options { timestamps: Some(Timestamps::default()), ..forward };
    assert_eq!(stamped.sack_room(), 2);
    assert_eq!(std::format!("{forward}"), " forward-point 4275878552");
}

/// RFC 9768 figure 4 and table 5.
#[test]
fn accurate_ecn_counts_in_three_bytes_and_either_order() {
    let counters = AccEcnCounters { ect0: 0x0102_0304, ce: 0x05_0607, ect1: 0x08_090a };
    let (zero, one) = (AccEcnOrder::Ect0First, AccEcnOrder::Ect1First);
    for (order, fields, bytes) in [
        (zero, 3, &[1, 172, 11, 2, 3, 4, 5, 6, 7, 8, 9, 10][..]),
        (zero, 2, &[172, 8, 2, 3, 4, 5, 6, 7]),
        (zero, 1, &[1, 1, 1, 172, 5, 2, 3, 4]),
        (zero, 0, &[1, 1, 172, 2]),
        (one, 3, &[1, 174, 11, 8, 9, 10, 5, 6, 7, 2, 3, 4]),
        (one, 2, &[174, 8, 8, 9, 10, 5, 6, 7]),
        (one, 1, &[1, 1, 1, 174, 5, 8, 9, 10]),
        (one, 0, &[1, 1, 174, 2]),
    ] {
        let option = AccEcn::new(order, counters, fields);
        let options = Options { acc_ecn: Some(option), ..Options::default() };
        let mut out = [0; 12];
        assert_eq!(options.emit(&mut out), Ok(bytes.len()));
        assert_eq!(&out[..bytes.len()], bytes);
        assert_eq!(Options::parse(bytes), Ok(options));
        assert_eq!(bytes.len(), AccEcn::padded_len(fields));
        let first = if order == zero { option.ect0() } else { option.ect1() };
        let value = if order == zero { 0x02_0304 } else { 0x08_090a };
        assert_eq!(first, (fields > 0).then_some(value));
        assert_eq!(option.ce(), (fields > 1).then_some(0x05_0607));
    }
    // Of any other length the whole fields count.
    for (bytes, fields) in [
        (&[172, 3, 9][..], 0),
        (&[172, 7, 2, 3, 4, 9, 9], 1),
        (&[172, 10, 2, 3, 4, 5, 6, 7, 9, 9], 2),
        (&[172, 14, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9, 9, 9], 3),
    ] {
        let read = Options::parse(bytes).unwrap().acc_ecn;
        assert_eq!(read, Some(AccEcn::new(zero, counters, fields)), "{bytes:?}");
    }
    // The last of two counts; an empty one is one.
    let twice = [174, 5, 1, 1, 1, 172, 2];
    assert_eq!(Options::parse(&twice).unwrap().acc_ecn, Some(AccEcn::new(zero, counters, 0)));
    let option = Some(AccEcn::new(one, counters, 2));
    let shown = std::format!("{}", Options { acc_ecn: option, ..Options::default() });
    assert_eq!(shown, " acc-ecn ce 329223 e1 526602");
    // Beside timestamps and two SACK blocks there is room for two fields, not for three.
    let stamped = Options { timestamps: Some(Timestamps::default()), ..Options::default() };
    for (fields, room) in [(3, 1), (2, 2), (1, 2), (0, 2)] {
        let acc_ecn = Some(AccEcn::new(zero, counters, fields));
        assert_eq!(Options { acc_ecn, ..stamped }.sack_room(), room);
    }
}

fn arbitrary_options() -> impl Strategy<Value = Options> {
    let stamps = any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo });
    let block = any::<(u32, u32)>()
        .prop_map(|(left, right)| SackBlock { left: Seq::new(left), right: Seq::new(right) });
    let sack = prop::collection::vec(block, 0..=4).prop_map(|list| {
        let mut blocks = SackBlocks::new();
        assert!(list.into_iter().all(|block| blocks.push(block)));
        blocks
    });
    let timeout = any::<u32>().prop_map(UserTimeout::from_secs);
    let cookie = prop::sample::select(vec![0usize, 4, 6, 8, 10, 12, 14, 16])
        .prop_flat_map(|len| prop::collection::vec(any::<u8>(), len))
        .prop_map(|bytes| FastOpen::new(&bytes).unwrap());
    let partial = any::<Option<u32>>().prop_map(|seq| {
        let point = |seq| PartialReliability::ForwardPoint(Seq::new(seq));
        seq.map_or(PartialReliability::Permitted, point)
    });
    let counters =
        any::<(u32, u32, u32)>().prop_map(|(ect0, ce, ect1)| AccEcnCounters { ect0, ce, ect1 });
    let order = prop::sample::select(vec![AccEcnOrder::Ect0First, AccEcnOrder::Ect1First]);
    let acc_ecn = (order, counters, 0..=AccEcn::MAX_FIELDS)
        .prop_map(|(order, counters, fields)| AccEcn::new(order, counters, fields));
    (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        prop::option::of(stamps),
        sack,
        prop::option::of(timeout),
        prop::option::of(cookie),
        prop::option::of(partial),
        prop::option::of(acc_ecn),
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, timestamps, sack, uto, tfo, partial, acc_ecn)| {
                Options {
                    mss,
                    window_scale,
                    sack_permitted,
                    timestamps,
                    sack,
                    user_timeout: uto,
                    fast_open: tfo,
                    partial,
                    acc_ecn,
                }
            },
        )
}

fn arbitrary_header() -> impl Strategy<Value = TcpHeader> {
    (any::<(u16, u16, u32, u32, u16, u16)>(), 0u16..512, arbitrary_options()).prop_map(
        |((src_port, dst_port, seq, ack, window, urgent), flags, options)| TcpHeader {
            src_port,
            dst_port,
            seq: Seq::new(seq),
            ack: Seq::new(ack),
            flags: Flags::from_bits_truncate(flags),
            window,
            urgent,
            options,
        },
    )
}

proptest! {
    #[test]
    fn written_segments_are_read_back(header in arbitrary_header(), payload: Vec<u8>) {
        let mut bytes = vec![0xee; 200];
        match header.emit(&mut bytes) {
            Ok(len) => {
                prop_assert_eq!(len, header.header_len());
                prop_assert!(len.is_multiple_of(4) && len <= MAX_HEADER_LEN);
                prop_assert!(bytes[len..].iter().all(|&byte| byte == 0xee));
                // [MUST-69] The options fill the header: they have no end before its end.
                let mut options = &bytes[MIN_HEADER_LEN..len];
                while let Some((_, _, rest)) = options::split_option(options).unwrap() {
                    options = rest;
                }
                prop_assert!(options.is_empty());
                bytes.truncate(len);
                bytes.extend(&payload);
                let packet = TcpPacket::parse(&bytes).unwrap();
                prop_assert_eq!(packet.header, header);
                prop_assert_eq!(packet.header_len(), len);
                prop_assert_eq!(packet.payload, &payload[..]);
            }
            Err(error) => {
                prop_assert_eq!(error, Error::TooLong);
                prop_assert!(header.header_len() > MAX_HEADER_LEN);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(packet) = TcpPacket::parse(&bytes) {
            prop_assert_eq!(packet.header_len() + packet.payload.len(), bytes.len());
            // Written and read again, the header is the same, if its options fit with their alignment.
            let mut out = [0; 60];
            if let Ok(len) = packet.header.emit(&mut out) {
                prop_assert_eq!(TcpPacket::parse(&out[..len]).unwrap().header, packet.header);
            }
        }
    }

    #[test]
    fn arbitrary_options_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..=40)) {
        _ = Options::parse(&bytes);
    }
}

//! Accurate ECN by hand: the tables of RFC 9768, and the examples of its appendix A.

use super::sender::NewMarks;
use super::*;
use transom_wire::{AccEcn, AccEcnCounters, AccEcnOrder};

fn bits(ae: bool, cwr: bool, ece: bool) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::AE, ae);
    flags.set(Flags::CWR, cwr);
    flags.set(Flags::ECE, ece);
    flags
}

const ARRIVED: [(Ecn, [u8; 3]); 4] = [
    (Ecn::NotEct, [0, 1, 0]),
    (Ecn::Ect1, [0, 1, 1]),
    (Ecn::Ect0, [1, 0, 0]),
    (Ecn::Ce, [1, 1, 0]),
];

/// Tables 2 and 3.
#[test]
fn the_handshake_says_how_a_syn_arrived() {
    for (arrived, [ae, cwr, ece]) in ARRIVED {
        let flags = bits(ae == 1, cwr == 1, ece == 1);
        assert_eq!(handshake_flags(arrived), flags, "{arrived:?}");
        assert_eq!(handshake_codepoint(flags), Some(arrived));
        assert_eq!(agreed_by_syn_ack(flags), Agreement::Accurate);
        // Whatever else is in the header.
        assert_eq!(handshake_codepoint(flags | Flags::SYN | Flags::ACK), Some(arrived));
    }
    for unused in [0b000, 0b001, 0b101, 0b111] {
        assert_eq!(handshake_codepoint(flags(unused)), None, "{unused:#b}");
    }
}

/// Table 2, and section 3.1.3.
#[test]
fn the_handshake_falls_back() {
    let by_syn_ack = [
        (0b000, Agreement::None),
        (0b001, Agreement::Classic),
        (0b101, Agreement::Accurate),
        (0b111, Agreement::None),
    ];
    for (said, agreement) in by_syn_ack {
        assert_eq!(agreed_by_syn_ack(flags(said)), agreement, "{said:#b}");
    }
    for said in 0..8 {
        let agreement = match said {
            0b000 => Agreement::None,
            0b011 => Agreement::Classic,
            _ => Agreement::Accurate,
        };
        assert_eq!(answer_to_syn(flags(said)), agreement, "{said:#b}");
    }
}

/// Section 3.2.2.3.
#[test]
fn only_some_changes_are_a_routers() {
    let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    for sent in all {
        for arrived in all {
            let allowed = match sent {
                Ecn::NotEct => arrived == Ecn::NotEct,
                Ecn::Ect0 | Ecn::Ect1 => arrived != Ecn::NotEct,
                Ecn::Ce => arrived == Ecn::Ce,
            };
            assert_eq!(is_mangled(sent, arrived), !allowed, "{sent:?} {arrived:?}");
        }
    }
}

/// Section 3.2.1: the first field is 5, and it counts modulo 8.
#[test]
fn the_field_counts_marked_packets() {
    let mut received = ReceiverCounters::default();
    let mut fields = std::vec![ace(received.field())];
    for _ in 0..9 {
        received.on_packets(Ecn::Ce, 1, 0, false);
        fields.push(ace(received.field()));
    }
    assert_eq!(fields, [5, 6, 7, 0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(received.field(), bits(true, true, false));
    // Packets without a mark change nothing.
    received.on_packets(Ecn::Ect0, 1, 100, false);
    received.on_packets(Ecn::NotEct, 1, 100, false);
    assert_eq!(ace(received.field()), 6);
}

/// Section 3.2.2.5.1.
#[test]
fn marks_are_acknowledged_in_time() {
    let mut received = ReceiverCounters::default();
    let mut at_once = |arrived, bytes, waiting| received.on_packets(arrived, 1, bytes, waiting);
    assert!(!at_once(Ecn::Ect0, 100, true));
    assert!(at_once(Ecn::Ce, 100, true), "a mark after none");
    assert!(at_once(Ecn::Ce, 100, true), "the second since a segment left");
    received.on_segment_sent();
    let mut at_once = |arrived, bytes, waiting| received.on_packets(arrived, 1, bytes, waiting);
    assert!(!at_once(Ecn::Ce, 100, true), "one more");
    assert!(at_once(Ecn::Ce, 100, true), "and another");
    received.on_segment_sent();
    let mut at_once = |arrived, bytes, waiting| received.on_packets(arrived, 1, bytes, waiting);
    // Without data that waits it takes three, and a change of pure acknowledgements is no reason.
    assert!(!at_once(Ecn::NotEct, 0, false));
    assert_eq!([(); 3].map(|()| at_once(Ecn::Ce, 0, false)), [false, false, true]);
    received.on_segment_sent();
    // The last packet counts, data or not.
    assert!(!received.on_packets(Ecn::Ce, 1, 100, true));
    // Several that arrive as one.
    assert!(received.on_packets(Ecn::Ce, 7, 700, true));
    assert_eq!(received.counts().ce_packets, 4 + 4 + 7);
}

fn sent(received: &ReceiverCounters, room: usize) -> Option<(AccEcnOrder, usize)> {
    received.option(room).map(|option| (option.order(), option.fields()))
}

/// Section 3.2.3.3 and its examples.
#[test]
fn an_option_has_the_fields_that_have_changed() {
    let (zero, one) = (AccEcnOrder::Ect0First, AccEcnOrder::Ect1First);
    let mut received = ReceiverCounters::default();
    assert!(!received.wants_option());
    let handshake = received.handshake_option(12).unwrap();
    assert_eq!((handshake.ect0(), handshake.ce(), handshake.ect1()), (Some(1), Some(0), Some(1)));
    assert_eq!(received.handshake_option(11).unwrap().fields(), 2);
    assert_eq!(received.handshake_option(7).unwrap().fields(), 0);
    assert_eq!(received.handshake_option(3), None);

    received.on_packets(Ecn::Ect0, 1, 100, true);
    assert_eq!((sent(&received, 40), received.is_urgent()), (Some((zero, 1)), false));
    received.on_option_sent();
    assert!(!received.wants_option());
    received.on_packets(Ecn::Ce, 1, 50, true);
    assert!(received.is_urgent());
    assert_eq!(sent(&received, 8), Some((zero, 2)), "both that have ever changed");
    assert_eq!(sent(&received, 7), None, "what has changed must not be left out");
    received.on_option_sent();
    received.on_packets(Ecn::Ect1, 1, 7, true);
    assert_eq!(sent(&received, 12), Some((zero, 3)));
    assert_eq!(sent(&received, 8), Some((one, 2)), "what has changed since, and CE fits too");
    assert_eq!(received.option(8).unwrap().ce(), Some(50));
    let option = received.option(12).unwrap();
    assert_eq!((option.ect0(), option.ce(), option.ect1()), (Some(101), Some(50), Some(8)));
    received.on_option_sent();
    received.on_packets(Ecn::Ce, 1, 1, true);
    assert_eq!(sent(&received, 8), Some((zero, 2)));
    assert_eq!(sent(&received, 7), None);

    // The first is marked, and no ECT(0) ever comes.
    let mut received = ReceiverCounters::default();
    received.on_packets(Ecn::Ce, 1, 100, true);
    assert_eq!(sent(&received, 8), Some((zero, 2)));
    received.on_packets(Ecn::Ect1, 1, 100, true);
    assert_eq!(sent(&received, 12), Some((one, 2)));
    // Control packets change no count of bytes.
    received.on_option_sent();
    received.on_packets(Ecn::Ce, 1, 0, true);
    assert!(!received.wants_option());
}

/// Data without a codepoint changes no count. An option with all of them says so after 8 packets, then after 16 more, and so on.
#[test]
fn an_option_shows_that_no_codepoint_arrives() {
    let mut received = ReceiverCounters::default();
    let mut shown = std::vec::Vec::new();
    let mut arrive = |received: &mut ReceiverCounters, packets: u64| {
        for packet in 1..=packets {
            received.on_packets(Ecn::NotEct, 1, 1000, true);
            if received.wants_option() {
                let option = received.option(12).unwrap();
                let counts = (option.ect0(), option.ce(), option.ect1());
                assert_eq!(counts, (Some(1), Some(0), Some(1)));
                received.on_option_sent();
                shown.push(packet);
            }
        }
        core::mem::take(&mut shown)
    };
    assert_eq!(arrive(&mut received, 200), [8, 24, 56, 120]);
    // Packets without data say nothing.
    let mut received = ReceiverCounters::default();
    (0..100).for_each(|_| assert!(!received.on_packets(Ecn::NotEct, 1, 0, false)));
    assert!(!received.wants_option());
    // A codepoint begins it anew.
    assert_eq!(arrive(&mut received, 30), [8, 24]);
    received.on_packets(Ecn::Ect1, 1, 7, true);
    received.on_option_sent();
    received.on_packets(Ecn::NotEct, 7, 7000, true);
    assert!(!received.wants_option());
    received.on_packets(Ecn::NotEct, 1, 1000, true);
    assert!(received.wants_option());
}

fn option(ce: u32) -> Option<AccEcn> {
    let counters = AccEcnCounters { ect0: 1, ce, ect1: 1 };
    Some(AccEcn::new(AccEcnOrder::Ect0First, counters, 2))
}

/// A sender that knows of `packets` and `bytes`.
fn told(packets: u64, bytes: u64) -> SenderCounters {
    let mut told = SenderCounters::default();
    told.counts = Counts { ce_packets: packets, ce_bytes: bytes, ..Counts::default() };
    told
}

/// The average of packets that an acknowledgement covers, where each covers one.
const ONE_PACKET: u32 = 1 << 4;

/// The field by which `packets` goes up by `least`.
fn field(packets: u64, least: u64) -> u8 {
    ace(count_flags(packets + least))
}

/// Appendix A.1: 33,554,433 and 1461 make 33,555,893.
#[test]
fn bytes_are_decoded_as_in_appendix_a_1() {
    let mut told = told(3, 33_554_433);
    let marks = told.on_arrival(&Arrival {
        ace: field(3, 1),
        option: option(1461),
        delivered: 1460,
        mss: 1460,
    });
    assert_eq!(told.counts().ce_bytes, 33_555_893);
    assert_eq!(marks, NewMarks { packets: 1, bytes: 1460, least: 1, counted: 1460 });
}

/// Appendix A.2.1: nine packets and a field that goes up by two are two marks; ten packets are ten.
#[test]
fn a_wrap_is_assumed_where_it_is_the_safest_likely_case() {
    for (covered, least, packets) in
        [(9, 2, 2), (10, 2, 10), (8, 0, 8), (7, 7, 7), (1, 5, 5), (0, 3, 3)]
    {
        let mut told = told(6, 0);
        told.covered = ONE_PACKET;
        let delivered = covered * 1000;
        let arrival = Arrival { ace: field(6, least), option: None, delivered, mss: 1000 };
        let marks = told.on_arrival(&arrival);
        assert_eq!((marks.packets, marks.bytes), (packets, packets * 1000), "{covered} {least}");
        assert_eq!(told.counts().ce_packets, 6 + packets);
    }
    // Nor is it with the first acknowledgement, if that covers much: it stands for those to come, as on Linux. Once one has covered little, it is.
    let all = |told: &mut SenderCounters, least| {
        let ace = field(told.counts().ce_packets, least);
        told.on_arrival(&Arrival { ace, option: None, delivered: 10_000, mss: 1000 }).packets
    };
    for (least, packets) in [(0, 0), (1, 1), (7, 7)] {
        assert_eq!(all(&mut SenderCounters::default(), least), packets);
    }
    let mut told = SenderCounters::default();
    told.on_arrival(&Arrival { ace: field(0, 0), option: None, delivered: 1000, mss: 1000 });
    assert_eq!(all(&mut told, 0), 8);
    // Where acknowledgements cover much, it is not: eight of them, each of eight packets, half of them marked.
    let mut told = SenderCounters::default();
    let mut marked = 0;
    for _ in 0..20 {
        marked += 4;
        let ace = field(marked, 0);
        told.on_arrival(&Arrival { ace, option: None, delivered: 8000, mss: 1000 });
    }
    assert_eq!(told.counts().ce_packets, 80);
    let arrival = Arrival { ace: field(80, 1), option: None, delivered: 16_000, mss: 1000 };
    assert_eq!(told.on_arrival(&arrival).packets, 1);
}

/// Appendix A.2.2, with an MSS of 1460.
#[test]
fn with_the_option_the_bytes_decide() {
    // (least, packets covered, marked bytes) -> packets.
    for (least, covered, bytes, packets) in [
        (0, 8, 1460, 8),
        (2, 10, 1460, 2),
        (7, 15, 10_200, 7),
        // More than so many packets can carry.
        (2, 40, 14_600, 10),
        (0, 40, 0, 0),
        // A control packet was marked.
        (1, 1, 0, 1),
    ] {
        let mut told = told(4, 0);
        let delivered = covered * 1460;
        let (ace, option) = (field(4, least), option(bytes));
        let marks = told.on_arrival(&Arrival { ace, option, delivered, mss: 1460 });
        assert_eq!(marks.packets, packets, "{least} {covered} {bytes}");
        assert_eq!((marks.bytes, marks.counted), (bytes.into(), bytes.into()));
    }
}

/// Where options arrive the next one is waited for, but not for ever.
#[test]
fn options_are_waited_for() {
    let mut told = SenderCounters::default();
    let mss = 1000;
    told.on_arrival(&Arrival { ace: field(0, 1), option: option(1000), delivered: 1000, mss });
    let mut marked = 1;
    for packets in [1, 1, 1, 16] {
        let arrival = Arrival { ace: field(marked, 0), option: None, delivered: 16_000, mss };
        // Nothing new: no reason to believe in a wrap, nor to give up on options.
        assert_eq!(SenderCounters::clone(&told).on_arrival(&arrival).packets, 0);
        told.covered = ONE_PACKET;
        let arrival = Arrival { ace: field(marked, 1), option: None, delivered: 16_000, mss };
        let marks = told.on_arrival(&arrival);
        assert_eq!(marks.packets, 1);
        marked += 1;
        told.covered = ONE_PACKET;
        if packets == 16 {
            let arrival = Arrival { ace: field(marked, 0), option: None, delivered: 16_000, mss };
            assert_eq!(told.on_arrival(&arrival).packets, 16);
        }
    }
}

/// Marks that were estimated without an option are not counted again when an option reports them.
#[test]
fn an_estimate_is_settled_by_the_next_option() {
    let mut told = SenderCounters::default();
    let mss = 1000;
    let arrival = Arrival { ace: field(0, 2), option: None, delivered: 2000, mss };
    assert_eq!(
        told.on_arrival(&arrival),
        NewMarks { packets: 2, bytes: 2000, least: 2, counted: 0 }
    );
    let arrival = Arrival { ace: field(2, 1), option: option(2900), delivered: 1000, mss };
    assert_eq!(
        told.on_arrival(&arrival),
        NewMarks { packets: 1, bytes: 900, least: 1, counted: 2900 }
    );
    let arrival = Arrival { ace: field(3, 1), option: option(3900), delivered: 1000, mss };
    assert_eq!(
        told.on_arrival(&arrival),
        NewMarks { packets: 1, bytes: 1000, least: 1, counted: 1000 }
    );
    assert_eq!((told.counts().ce_packets, told.counts().ce_bytes), (4, 3900));
}

/// A count that goes back, and an option without a field, are ignored.
#[test]
fn old_and_empty_options_tell_nothing() {
    let mut told = told(1, 5000);
    let mss = 1000;
    let arrival = Arrival { ace: field(1, 0), option: option(4000), delivered: 1000, mss };
    assert_eq!(told.on_arrival(&arrival), NewMarks::default());
    let empty = Some(AccEcn::new(AccEcnOrder::Ect1First, AccEcnCounters::default(), 0));
    let arrival = Arrival { ace: field(1, 1), option: empty, delivered: 1000, mss };
    assert_eq!(
        told.on_arrival(&arrival),
        NewMarks { packets: 1, bytes: 1000, least: 1, counted: 0 }
    );
    assert_eq!(told.counts().ce_bytes, 5000);
    // Only the first field of AccECN1: neither of the others has changed.
    let counters = AccEcnCounters { ect0: 0, ce: 0, ect1: 701 };
    let option = Some(AccEcn::new(AccEcnOrder::Ect1First, counters, 1));
    let arrival = Arrival { ace: field(2, 0), option, delivered: 1000, mss };
    assert_eq!(told.on_arrival(&arrival), NewMarks::default());
    assert_eq!((told.counts().ect1_bytes, told.counts().ect0_bytes), (700, 0));
}

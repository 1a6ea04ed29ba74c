//! Accurate ECN (RFC 9768) between two stacks: what one end counts the other is told, whatever the path loses, reorders and repeats; and whatever
//! a middlebox does to flags, options and codepoints, all data arrives.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Rng, Side, Streams};
use transom_stack::{ConnectionId, ListenConfig, Stack, StackConfig};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{AccurateInfo, ConnectionState};
use transom_testkit::packets;
use transom_wire::ip::{Ecn, peek_ecn, set_ecn};
use transom_wire::{AccEcn, AccEcnCounters, AccEcnOrder, Flags, IpPacket, TcpHeader, TcpPacket};

/// The three flags that are the field ACE: ECE, CWR and AE, from the lowest bit on.
const FIELD: Flags = Flags::ECE.union(Flags::CWR).union(Flags::AE);

fn host(address: &str, words: &str) -> Stack {
    let mut config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
    config.profile = Arc::new(compose(words).unwrap());
    Stack::new(config, Instant::ZERO).unwrap()
}

/// A device between two hosts.
type Middlebox = Box<dyn FnMut(Instant, Side, &mut Vec<u8>) -> bool>;

/// Two connected ends, and what each is still to send and to receive.
struct Talk {
    pair: Pair,
    ends: [Option<ConnectionId>; 2],
    listener: transom_stack::ListenerId,
    left: [usize; 2],
    received: [usize; 2],
}

impl Talk {
    fn new(words: [&str; 2], links: [&str; 2], seed: u64, middlebox: Option<Middlebox>) -> Self {
        let links: [LinkConfig; 2] = links.map(|link| link.parse().unwrap());
        let [a, b] = words;
        let (a, b) = (host("10.0.0.1", a), host("10.0.0.2", b));
        let mut pair = Pair::new(a, b, [&links[0], &links[1]], seed, Instant::ZERO);
        if let Some(middlebox) = middlebox {
            pair.set_middlebox(middlebox);
        }
        let remote = "10.0.0.2:80".parse().unwrap();
        let listener = pair.host(Side::B).listen(remote, ListenConfig::default()).unwrap();
        let id = pair.host(Side::A).connect(Instant::ZERO, None, remote, None).unwrap();
        Talk { pair, ends: [Some(id), None], listener, left: [0; 2], received: [0; 2] }
    }

    /// Lets both ends send so much more, and runs until it has arrived and is acknowledged.
    fn exchange(&mut self, bytes: [usize; 2], limit: Duration) -> bool {
        let until = self.pair.now() + limit;
        for (left, bytes) in self.left.iter_mut().zip(bytes) {
            *left += bytes;
        }
        let wanted = [self.received[0] + self.left[1], self.received[1] + self.left[0]];
        let zeros = vec![0; 65_536];
        let mut buffer = vec![0; 65_536];
        loop {
            let now = self.pair.now();
            self.ends[1] = self.ends[1]
                .or_else(|| self.pair.host(Side::B).accept(self.listener).map(|(id, _)| id));
            for side in [Side::A, Side::B] {
                let Some(id) = self.ends[side as usize] else { continue };
                let left = &mut self.left[side as usize];
                let piece = &zeros[..zeros.len().min(*left)];
                if !piece.is_empty() {
                    *left -= self.pair.host(side).write(id, now, piece).unwrap_or(0);
                }
                while let Ok(len @ 1..) = self.pair.host(side).read(id, now, &mut buffer) {
                    self.received[side as usize] += len;
                }
            }
            let quiet = self.ends.iter().flatten().count() == 2
                && [Side::A, Side::B].map(|side| self.info(side).in_flight) == [0, 0];
            if self.received == wanted && quiet {
                self.pair.host(Side::A).check().unwrap();
                self.pair.host(Side::B).check().unwrap();
                return true;
            }
            if !self.pair.step(until) {
                return false;
            }
        }
    }

    fn info(&mut self, side: Side) -> ConnectionState {
        let now = self.pair.now();
        let id = self.ends[side as usize].expect("a connection");
        self.pair.host(side).connection(id).expect("it is there").info(now)
    }

    fn accurate(&mut self, side: Side) -> AccurateInfo {
        let info = self.info(side);
        let accurate = info.ecn.and_then(|ecn| ecn.accurate);
        accurate.unwrap_or_else(|| panic!("accurate ECN was not agreed: {info:?}"))
    }
}

/// Marks one in `every` packets that are ECN-capable; counts them.
fn marker(every: u64, seed: u64, marks: Rc<RefCell<u64>>) -> Middlebox {
    let mut rng = Streams::new(seed).rng(99, 7);
    Box::new(move |_, _, packet| {
        if matches!(peek_ecn(packet), Ecn::Ect0 | Ecn::Ect1) && rng.below(every) == 0 {
            set_ecn(packet, Ecn::Ce).unwrap();
            *marks.borrow_mut() += 1;
        }
        true
    })
}

const LINKS: [&str; 5] = [
    "rate=50Mbit/s, delay=10ms",
    "rate=50Mbit/s, delay=10ms, loss=2%",
    "rate=50Mbit/s, delay=10ms, reorder=5% by 3ms",
    "rate=50Mbit/s, delay=10ms, duplicate=3%",
    "rate=50Mbit/s, delay=10ms, loss=5%, reorder=2% by 4ms, duplicate=1%",
];

/// With options the counts are the same at both ends once something has been said after the last loss; they are never ahead before.
#[test]
fn each_end_learns_the_counts_of_the_other() {
    let mut marked = 0;
    for seed in 0..40u64 {
        let mut rng = Streams::new(seed).rng(1, 1);
        let links = [LINKS[rng.below(5) as usize], LINKS[rng.below(5) as usize]];
        let recovery = ["sack", "rack-tlp", "newreno + no-sack"][rng.below(3) as usize];
        let own = ["accecn", "accecn++"][rng.below(2) as usize];
        let words = format!("cubic + {recovery} + {own}");
        let (words, marks) = ([words.as_str(), "modern + accecn"], Rc::default());
        let middlebox = marker(rng.between(2, 60), seed, Rc::clone(&marks));
        let mut talk = Talk::new(words, links, seed, Some(middlebox));
        let back = [0, 300_000][rng.below(2) as usize];
        let what = format!("seed {seed}: {words:?} over {links:?}, {back} back");
        assert!(talk.exchange([600_000, back], Duration::from_secs(600)), "{what}");
        let lossless = links.iter().all(|link| !link.contains("loss"));
        let mut equal = false;
        for _ in 0..50 {
            let [a, b] = [talk.accurate(Side::A), talk.accurate(Side::B)];
            for (told, counted) in [(a.delivered, b.received), (b.delivered, a.received)] {
                assert!(told.ce_bytes <= counted.ce_bytes, "{what}: {told:?} {counted:?}");
                assert!(told.ect0_bytes <= counted.ect0_bytes, "{what}: {told:?} {counted:?}");
            }
            equal = a.delivered == b.received && b.delivered == a.received;
            // One that has lost part of the handshake may do without options.
            if equal || !(a.sends_options && b.sends_options) {
                break;
            }
            assert!(talk.exchange([10, 10], Duration::from_secs(60)), "{what}");
        }
        let [a, b] = [talk.accurate(Side::A), talk.accurate(Side::B)];
        let options = a.sends_options && b.sends_options;
        assert!(equal || !options, "{what}: {a:?} {b:?}");
        assert!(options || !lossless, "{what}: options were given up: {a:?} {b:?}");
        // A packet that arrives twice is counted twice, if it still is acceptable.
        if links.iter().all(|link| *link == LINKS[0]) {
            let counted = a.received.ce_packets + b.received.ce_packets;
            assert_eq!(counted, *marks.borrow(), "{what}");
        }
        assert!(!talk.info(Side::A).ecn.unwrap().disabled || !lossless, "{what}: {a:?}");
        marked += *marks.borrow();
    }
    assert!(marked > 1000, "only {marked} marks");
}

/// Without options the field's three bits are right. Where they leave a doubt, the largest possible count is used: the count is never too low.
#[test]
fn the_field_alone_is_right_but_for_its_wraps() {
    let mut exact = 0;
    for seed in 0..30u64 {
        let mut rng = Streams::new(seed).rng(2, 2);
        let links = [LINKS[rng.below(2) as usize], LINKS[rng.below(2) as usize]];
        let words = ["cubic + sack + accecn", "reno + rack-tlp + accecn"][rng.below(2) as usize];
        let words = [words, "modern + accecn(options=off)"];
        let middlebox = marker(rng.between(3, 40), seed, Rc::default());
        let mut talk = Talk::new(words, links, seed, Some(middlebox));
        let what = format!("seed {seed}: over {links:?}");
        assert!(talk.exchange([400_000, 0], Duration::from_secs(600)), "{what}");
        assert!(talk.exchange([10, 0], Duration::from_secs(60)), "{what}");
        let (told, counted) = (talk.accurate(Side::A).delivered, talk.accurate(Side::B).received);
        let (told, counted) = (told.ce_packets, counted.ce_packets);
        assert!(told >= counted && (told - counted).is_multiple_of(8), "{what}: {told} {counted}");
        assert!(!talk.accurate(Side::A).options_seen);
        exact += u32::from(told == counted);
        let both = links.iter().all(|link| !link.contains("loss"));
        assert!(!both || told == counted, "{what}: {told} {counted}");
    }
    assert!(exact >= 15, "{exact}");
}

/// A queue that marks: the sender learns of every mark, and keeps the queue short without a loss.
#[test]
fn a_marking_queue_is_answered() {
    let queue =
        "rate=20Mbit/s, delay=10ms, queue=codel(2000 packets, target=2ms, interval=20ms, ecn)";
    for words in ["cubic + sack + accecn", "reno + rack-tlp + accecn", "dctcp + rack-tlp + accecn"]
    {
        let mut talk = Talk::new([words, "modern + accecn"], [queue, "delay=10ms"], 1, None);
        assert!(talk.exchange([8_000_000, 0], Duration::from_secs(60)), "{words}");
        let marks = talk.pair.link(Side::A).counters().marked;
        let (info, a, b) = (talk.info(Side::A), talk.accurate(Side::A), talk.accurate(Side::B));
        assert!(marks > 0 && info.ecn.unwrap().reductions > 0, "{words}: {marks} {info:?}");
        assert_eq!((a.delivered.ce_packets, b.received.ce_packets), (marks, marks), "{words}");
        assert_eq!(a.delivered, b.received, "{words}");
        assert_eq!(info.counters.retransmitted_segments, 0, "{words}");
        // A reduction a round trip at most: none of them is shorter than 20 ms.
        let rounds = talk.pair.now().as_millis() / 20;
        assert!(info.ecn.unwrap().reductions <= rounds, "{words}: {info:?}");
    }
}

/// A packet's header and data, changed and put together again; the codepoint stays.
fn rewrite(packet: &mut Vec<u8>, change: impl FnOnce(&mut TcpHeader)) {
    let ip = IpPacket::parse(packet).unwrap();
    let tcp = TcpPacket::parse(ip.payload()).unwrap();
    let mut header = tcp.header;
    let payload = tcp.payload.to_vec();
    let ends = [(ip.src(), header.src_port), (ip.dst(), header.dst_port)].map(Into::into);
    let ecn = ip.ecn();
    change(&mut header);
    *packet = packets::tcp(ends[0], ends[1], &header, &payload);
    set_ecn(packet, ecn).unwrap();
}

fn header(packet: &[u8]) -> TcpHeader {
    TcpPacket::parse(IpPacket::parse(packet).unwrap().payload()).unwrap().header
}

fn codepoint(packet: &mut [u8], ecn: Ecn) -> bool {
    set_ecn(packet, ecn).unwrap();
    true
}

/// What a middlebox does, and what the client's end makes of it: whether ECN is accurate, whether it is disabled, and whether options are seen.
#[test]
fn middleboxes_that_mangle_stop_nothing() {
    type Change = fn(Side, &mut Vec<u8>, &TcpHeader) -> bool;
    type Case = (&'static str, Change, Option<(bool, bool, bool)>);
    let changes: [Case; 14] = [
        ("nothing", |_, _, _| true, Some((true, false, true))),
        (
            "clears the flags of SYNs",
            |_, packet, header| {
                if header.flags.contains(Flags::SYN) {
                    rewrite(packet, |header| header.flags.remove(FIELD));
                }
                true
            },
            None,
        ),
        (
            "clears AE everywhere",
            |_, packet, _| {
                rewrite(packet, |header| header.flags.remove(Flags::AE));
                true
            },
            Some((false, false, false)),
        ),
        (
            "drops SYNs with AE",
            |_, _, header| {
                !header.flags.contains(Flags::SYN | Flags::AE) || header.flags.contains(Flags::ACK)
            },
            None,
        ),
        (
            "drops SYN-ACKs with the option",
            |_, _, header| !header.flags.contains(Flags::SYN) || header.options.acc_ecn.is_none(),
            // The client's options arrive, so the server tries one with its first data.
            Some((true, false, true)),
        ),
        (
            "drops what carries the option",
            |_, _, header| header.options.acc_ecn.is_none(),
            Some((true, false, false)),
        ),
        (
            "strips the option",
            |_, packet, _| {
                rewrite(packet, |header| header.options.acc_ecn = None);
                true
            },
            Some((true, false, false)),
        ),
        (
            "zeroes the option",
            |_, packet, header| {
                if let Some(option) = header.options.acc_ecn {
                    let zeros =
                        AccEcn::new(option.order(), AccEcnCounters::default(), option.fields());
                    rewrite(packet, |header| header.options.acc_ecn = Some(zeros));
                }
                true
            },
            Some((true, false, true)),
        ),
        (
            "zeroes the field",
            |_, packet, header| {
                if !header.flags.contains(Flags::SYN) {
                    rewrite(packet, |header| header.flags.remove(FIELD));
                }
                true
            },
            Some((true, true, true)),
        ),
        (
            "makes SYNs ECN-capable",
            |_, packet, header| {
                if header.flags.contains(Flags::SYN) {
                    codepoint(packet, Ecn::Ect1);
                }
                true
            },
            Some((true, true, true)),
        ),
        ("marks all there is", |_, packet, _| codepoint(packet, Ecn::Ce), Some((true, true, true))),
        (
            "clears codepoints",
            |_, packet, _| codepoint(packet, Ecn::NotEct),
            Some((true, true, true)),
        ),
        (
            "turns ECT(0) into ECT(1)",
            |_, packet, _| {
                let capable = peek_ecn(packet) == Ecn::Ect0;
                !capable || codepoint(packet, Ecn::Ect1)
            },
            Some((true, false, true)),
        ),
        (
            "drops all that is ECN-capable",
            |_, packet, _| peek_ecn(packet) == Ecn::NotEct,
            Some((true, false, true)),
        ),
    ];
    for (what, change, expected) in changes {
        for words in ["modern + accecn", "reno + sack + accecn++"] {
            if words.contains("++") && what.ends_with("ECN-capable") && what.starts_with("drops") {
                continue; // Retransmissions are, too.
            }
            let middlebox: Middlebox = Box::new(move |_, side, packet| {
                let header = header(packet);
                change(side, packet, &header)
            });
            let link = "rate=20Mbit/s, delay=5ms";
            let mut talk = Talk::new([words, words], [link, link], 1, Some(middlebox));
            let done = talk.exchange([150_000, 150_000], Duration::from_secs(600));
            assert!(done, "{what}, {words}: {:?} {:?}", talk.received, talk.left);
            let info = talk.info(Side::A);
            let seen = info.ecn.map(|ecn| {
                let options = ecn.accurate.is_some_and(|accurate| accurate.options_seen);
                (ecn.accurate.is_some(), ecn.disabled, options)
            });
            assert_eq!(seen, expected, "{what}, {words}: {info:?}");
            // One of the ends cannot believe in ECN while the other has none.
            let other = talk.info(Side::B);
            assert_eq!(other.ecn.is_some(), info.ecn.is_some(), "{what}, {words}: {other:?}");
        }
    }
}

/// A path that clears the codepoints of data, or the marks of a queue: most bytes are not counted, and what leaves from then on is not ECN-capable. ECN
/// stays where codepoints arrive, also with losses, whose retransmissions are not ECN-capable, and with acknowledgements on data.
#[test]
fn a_path_that_clears_the_codepoints_of_data_ends_ecn() {
    let plain = "rate=20Mbit/s, delay=5ms";
    let lossy = "rate=20Mbit/s, delay=5ms, loss=4%";
    let cases = [
        ("ect1", "l4s", plain, "", [2_000_000, 0], true),
        ("all", "l4s", plain, "", [2_000_000, 0], true),
        ("ect1", "modern + accecn", plain, "", [2_000_000, 0], false),
        ("ect0", "modern + accecn", plain, "", [2_000_000, 0], true),
        ("ect", "modern + accecn", lossy, "", [2_000_000, 0], true),
        ("ce", "l4s", "rate=20Mbit/s, delay=5ms, queue=dualpi2", "", [4_000_000, 0], true),
        (
            "ce",
            "modern + accecn",
            "rate=20Mbit/s, delay=5ms, queue=codel(ecn)",
            "",
            [12_000_000, 0],
            true,
        ),
        ("ce", "l4s", plain, "", [4_000_000, 0], false),
        ("none", "l4s", lossy, "", [4_000_000, 0], false),
        ("none", "modern + accecn", lossy, ", loss=4%", [4_000_000, 0], false),
        ("none", "l4s", plain, "", [2_000_000, 2_000_000], false),
        ("none", "l4s", "rate=20Mbit/s, delay=5ms, queue=dualpi2", "", [4_000_000, 0], false),
        ("none", "l4s", plain, "", [20_000, 0], false),
    ];
    for (bleach, words, link, back, bytes, disabled) in cases {
        for seed in 0..2 {
            let what = format!("{words} over {link}, bleach={bleach}, seed {seed}");
            let there = format!("{link}, bleach={bleach}");
            let back = format!("{plain}{back}");
            let mut talk = Talk::new([words, words], [&there, &back], seed, None);
            assert!(talk.exchange(bytes, Duration::from_secs(600)), "{what}");
            let info = talk.info(Side::A).ecn.unwrap();
            assert_eq!(info.disabled, disabled, "{what}: {info:?}");
            assert!(!talk.info(Side::B).ecn.unwrap().disabled, "{what}: the other direction");
            assert_eq!(talk.accurate(Side::A).codepoints_cleared, disabled, "{what}");
        }
    }
}

/// A receiver that says anything at all of marks: all data arrives, nothing panics, and the sender is no faster than without ECN.
#[test]
fn a_peer_that_lies_of_marks_gains_nothing() {
    let link = "rate=100Mbit/s, delay=10ms";
    let time = |words: [&str; 2], seed: Option<u64>| {
        let middlebox = seed.map(|seed| -> Middlebox {
            let mut rng = Streams::new(seed).rng(5, 5);
            Box::new(move |_, side, packet| {
                let syn = header(packet).flags.contains(Flags::SYN);
                if side == Side::B && (!syn || rng.below(8) == 0) {
                    lie(packet, &mut rng);
                }
                true
            })
        });
        let mut talk = Talk::new(words, [link, link], 3, middlebox);
        assert!(talk.exchange([2_000_000, 0], Duration::from_secs(3600)), "{words:?} {seed:?}");
        talk.pair.now().as_nanos()
    };
    for words in ["cubic + rack-tlp", "reno + sack", "dctcp + rack-tlp", "bbr + pacing + rack-tlp"]
    {
        let plain = time([&format!("{words} + no-ecn"), "modern + no-ecn"], None);
        let honest = format!("{words} + accecn");
        for seed in 0..12 {
            let lied = time([&honest, "modern + accecn"], Some(seed));
            // Two percent: the two do not send the same segments.
            assert!(lied * 50 >= plain * 49, "{words}, seed {seed}: {lied} after {plain}");
        }
    }
}

/// Puts a field and an option of any kind into a packet.
fn lie(packet: &mut Vec<u8>, rng: &mut Rng) {
    let numbers = [rng.below(1 << 24), rng.below(1 << 24), rng.below(1 << 24)];
    let [ect0, ce, ect1] = numbers.map(|number| number as u32);
    let order = [AccEcnOrder::Ect0First, AccEcnOrder::Ect1First][rng.below(2) as usize];
    let option = AccEcn::new(order, AccEcnCounters { ect0, ce, ect1 }, rng.below(4) as usize);
    let (kind, field) = (rng.below(3), rng.below(8));
    rewrite(packet, |header| {
        header.flags = (header.flags - FIELD) | Flags::from_bits_truncate((field as u16) << 6);
        let without = transom_wire::Options { acc_ecn: None, ..header.options };
        let room = 40 - without.encoded_len();
        header.options.acc_ecn = match kind {
            0 => None,
            1 => header.options.acc_ecn,
            _ => Some(option).filter(|option| AccEcn::padded_len(option.fields()) <= room),
        };
    });
}

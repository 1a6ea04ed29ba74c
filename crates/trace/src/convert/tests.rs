use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use transom_stack::log::{EndedBy, FlowEvent, LayerFate, Record, Values, What};
use transom_tcp::extension::{Decider, Interval, LayerId, Ruling, Variable};
use transom_tcp::time::Instant;
use transom_tcp::{LimitReason, LimitedBy, Phase, State};

use super::*;
use crate::Capture;

const FORMATS: [Format; 6] =
    [Format::Tlog, Format::Lines, Format::Qlog, Format::Pcapng, Format::Parquet, Format::Arrow];

fn formats() -> impl Iterator<Item = Format> {
    let columns = |format: &Format| matches!(format, Format::Parquet | Format::Arrow);
    FORMATS.into_iter().filter(move |format| cfg!(feature = "columns") || !columns(format))
}

fn address() -> impl Strategy<Value = SocketAddr> {
    // A mapped address reads as IPv4.
    let v4 = any::<[u8; 4]>().prop_map(IpAddr::from);
    let v6 = any::<[u8; 15]>().prop_map(|bytes| {
        let mut all = [0x20; 16];
        all[1..].copy_from_slice(&bytes);
        IpAddr::from(all)
    });
    (prop_oneof![v4, v6], any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn flow() -> impl Strategy<Value = What> {
    let event = prop::sample::select(FlowEvent::ALL.to_vec());
    (event, any::<u64>(), any::<[u32; 8]>()).prop_map(|(event, position, numbers)| {
        let [bytes, window, cwnd, ssthresh, in_flight, srtt, rto, extra] = numbers;
        // The table of docs/event-log.md: what has no meaning is zero.
        let extra = match event {
            FlowEvent::Acknowledged
            | FlowEvent::Sent
            | FlowEvent::Retransmitted
            | FlowEvent::TimedOut => extra,
            _ => 0,
        };
        let values =
            Values { position, bytes, window, cwnd, ssthresh, in_flight, srtt, rto, extra };
        What::Flow(event, values)
    })
}

fn request() -> impl Strategy<Value = What> {
    let decider = prop_oneof![
        Just(Decider::Tcp),
        Just(Decider::SafeRange),
        (0..u32::MAX).prop_map(|layer| Decider::Layer(LayerId::from_u32(layer))),
    ];
    let asked = prop::option::of((any::<u64>(), any::<u64>()));
    let variable = prop::sample::select(Variable::ALL.to_vec());
    (variable, asked, any::<(u64, u64, bool)>(), decider).prop_map(
        |(variable, asked, (own, effective, conflict), decided_by)| {
            let requested = asked.and_then(|(a, b)| Interval::new(a.min(b), a.max(b)));
            let safe = Interval::ANY;
            What::Request {
                variable,
                ruling: Ruling { own, requested, safe, effective, decided_by, conflict },
            }
        },
    )
}

fn what() -> impl Strategy<Value = What> {
    let ends = prop::option::of(prop::sample::select(EndedBy::ALL.to_vec()));
    let layer = (
        prop::option::of(0..u32::MAX),
        prop::sample::select(LayerFate::ALL.to_vec()),
        "\\PC{0,8}|[\\x00-\\x7f]{0,32}",
    );
    let limited = prop::sample::select(LimitReason::ALL.to_vec());
    let limited = limited.prop_map(|because| What::Limited { because });
    prop_oneof![
        6 => flow(),
        1 => (address(), address()).prop_map(|(local, remote)| What::Opened { local, remote }),
        1 => (Just(State::SynSent), ends).prop_map(|(from, error)| What::State { from, error }),
        1 => request(),
        1 => limited,
        1 => layer.prop_map(|(layer, fate, name)| What::Layer { layer, fate, name }),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let phase =
        prop::sample::select(vec![Phase::Open, Phase::Disorder, Phase::Recovery, Phase::Loss]);
    let limit = prop::sample::select(vec![
        LimitedBy::Application,
        LimitedBy::VirtualWindow,
        LimitedBy::CongestionWindow,
    ]);
    let state = prop::sample::select(vec![
        State::Established,
        State::SynSent,
        State::TimeWait,
        State::Closed,
    ]);
    (any::<u64>(), 0..4u64, state, phase, limit, what()).prop_map(
        |(at, connection, state, phase, limited_by, what)| Record {
            at: Instant::from_nanos(at),
            connection,
            state,
            phase,
            limited_by,
            what,
        },
    )
}

prop_compose! {
    fn log()(
        origin in prop_oneof![Just(0), any::<u64>()],
        first in 0..1u64 << 31,
        records in prop::collection::vec((record(), 1..4u64), 0..40),
    ) -> Log {
        let mut number = first;
        let mut next = |(record, step): (Record, u64)| {
            number += step;
            (number, record)
        };
        Log { origin, records: records.into_iter().map(&mut next).collect(), unknown: 0 }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_format_gives_the_log_back(log in log()) {
        for format in formats() {
            let bytes = log.write(format).unwrap();
            let again = Log::read(format, &bytes).unwrap();
            prop_assert_eq!(&again, &log, "{:?}", format);
            prop_assert_eq!(again.write(format).unwrap(), bytes, "{:?}", format);
        }
        // Packets that are made up are packets.
        let capture = Capture::read(&log.write(Format::Pcapng).unwrap()[..]).unwrap();
        prop_assert!(capture.damage.is_empty(), "{:?}", capture.damage);
    }

    #[test]
    fn damaged_files_are_errors_or_logs(
        log in log(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
    ) {
        // Arrow's and Parquet's own readers are for files that one trusts.
        for format in [Format::Tlog, Format::Lines, Format::Qlog, Format::Pcapng] {
            let mut bytes = log.write(format).unwrap();
            for (place, value) in &places {
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = *value;
                }
            }
            let _ = Log::read(format, &bytes);
        }
    }
}

fn sent(seq: u64, at: u64, start: u64, bytes: u32, again: bool) -> (u64, Record) {
    let event = if again { FlowEvent::Retransmitted } else { FlowEvent::Sent };
    let values = Values {
        position: (1 << 32) + start,
        bytes,
        window: 5000,
        cwnd: 20_000 + seq as u32,
        ssthresh: u32::MAX,
        in_flight: 0,
        srtt: 0,
        rto: 0,
        extra: if start == 0 { 2 } else { 16 },
    };
    (seq, of(at, What::Flow(event, values)))
}

fn of(at: u64, what: What) -> Record {
    Record {
        at: Instant::from_millis(at),
        connection: 7,
        state: State::Established,
        phase: Phase::Open,
        limited_by: LimitedBy::CongestionWindow,
        what,
    }
}

/// The client of the made transfer: two segments in one record, and one of them again.
fn small() -> Log {
    let local = crate::tests::made::CLIENT.parse().unwrap();
    let remote = crate::tests::made::SERVER.parse().unwrap();
    Log {
        origin: 10_000_000_000,
        records: vec![
            (1, of(0, What::Opened { local, remote })),
            sent(2, 0, 0, 1, false),
            sent(3, 30, 1, 300, false),
            sent(4, 60, 101, 100, true),
            sent(5, 90, 301, 100, false),
        ],
        unknown: 0,
    }
}

#[test]
fn lines_and_qlog_are_as_documented() {
    let log = small();
    let text = String::from_utf8(log.write(Format::Lines).unwrap()).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), r#"{"event":"log","origin_ns":10000000000,"version":1}"#);
    assert!(
        lines.next().unwrap().starts_with(r#"{"seq":1,"ns":0,"connection":7,"event":"opened""#)
    );
    let text = String::from_utf8(log.write(Format::Qlog).unwrap()).unwrap();
    let texts: Vec<&str> = text.split('\u{1e}').collect();
    assert_eq!(texts.len(), 7, "nothing before the first separator");
    let head: serde_json::Value = serde_json::from_str(texts[1]).unwrap();
    assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(head["serialization_format"], "application/qlog+json-seq");
    // The schema wants these at the beginning, in the first 256 bytes, and qvis the older two.
    for key in ["file_schema", "serialization_format", "qlog_version", "qlog_format"] {
        assert!(text.find(key).is_some_and(|place| place < 256), "{key}");
    }
    assert_eq!((&head["qlog_version"], &head["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    assert_eq!(head["trace"]["vantage_point"]["type"], "unknown");
    let reference = &head["trace"]["common_fields"]["reference_time"];
    // Of a monotonic clock the schema takes no other epoch.
    assert_eq!(
        (&reference["clock_type"], &reference["epoch"]),
        (&"monotonic".into(), &"unknown".into())
    );
    assert_eq!(reference["wall_clock_time"], "1970-01-01T00:00:10.000000000Z");
    let event: serde_json::Value = serde_json::from_str(texts[4]).unwrap();
    assert_eq!((&event["time"], &event["name"]), (&30.0.into(), &"tcp:sent".into()));
    assert_eq!((&event["group_id"], &event["data"]["bytes"]), (&"7".into(), &300.into()));
    assert!(event["data"].get("event").is_none());
}

#[test]
fn a_made_up_capture_has_the_transfer() {
    let bytes = small().write(Format::Pcapng).unwrap();
    let capture = Capture::read(&bytes[..]).unwrap();
    let [one] = &capture.connections[..] else { panic!("{:?}", capture.connections) };
    assert_eq!(one.first, Instant::from_secs(10));
    let counts = one.ways[0].counts;
    assert_eq!((counts.bytes, counts.resent, counts.retransmissions), (400, 100, 1));
}

#[test]
fn decisions_go_on_the_packets_of_a_real_capture_and_nothing_else_changes() {
    use crate::tests::made::{ETHERNET, frames, pcap, pcapng, transfer};
    for big in [false, true] {
        let before = pcapng(1, &frames(&transfer(), &ETHERNET, 70), big);
        let mut after = Vec::new();
        let commented = annotate(&small(), &before[..], &mut after).unwrap().commented;
        // The SYN, three segments, one again, and the last; not the bare acknowledgement.
        assert_eq!(commented, 6);
        let items = |bytes: &[u8]| {
            let mut blocks = Blocks::new(bytes).unwrap();
            let mut all = Vec::new();
            while let Some(item) = blocks.next_item().unwrap() {
                let frame =
                    item.frame.map(|frame| (frame.at, frame.bytes.to_vec(), frame.original));
                all.push((item.raw.to_vec(), frame, item.comments()));
            }
            assert!(blocks.damage().is_empty(), "{:?}", blocks.damage());
            all
        };
        use crate::file::Blocks;
        let (before, after) = (items(&before), items(&after));
        assert_eq!(before.len(), after.len());
        let mut numbers = Vec::new();
        for ((raw, frame, _), (raw_after, frame_after, comments)) in before.iter().zip(&after) {
            assert_eq!(frame, frame_after);
            match &comments[..] {
                [] => assert_eq!(raw, raw_after),
                [comment] => {
                    let value: serde_json::Value = serde_json::from_str(comment).unwrap();
                    numbers.push(value["seq"].as_u64().unwrap());
                }
                _ => panic!("{comments:?}"),
            }
        }
        assert_eq!(numbers, [2, 3, 3, 3, 4, 5]);
        let secrets = |(raw, ..): &&(Vec<u8>, _, _)| raw.windows(5).any(|part| part == b"hello");
        assert_eq!(after.iter().filter(secrets).count(), 1, "the secrets of TLS are still there");
    }
    let old = pcap(1, &frames(&transfer(), &ETHERNET, 70), false);
    let error = annotate(&small(), &old[..], Vec::new()).unwrap_err();
    assert!(error.to_string().contains("only a pcapng file"), "{error}");
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |format: Format, bytes: &[u8]| Log::read(format, bytes).unwrap_err().to_string();
    assert!(error(Format::Tlog, b"x").contains("not an event log"));
    assert!(error(Format::Lines, b"{}\n").starts_with("record 1: event is no text"));
    let odd = br#"{"seq":1,"ns":-1,"connection":7,"event":"state","from":"closed"}"#;
    assert!(error(Format::Lines, odd).contains("ns is -1"), "{}", error(Format::Lines, odd));
    assert!(error(Format::Qlog, b"\x1e{}\n").contains("no TCP events of Transom"));
    assert!(error(Format::Pcapng, b"x").contains("neither a pcap nor"));
    assert!(Format::try_from(Path::new("x.pdf")).unwrap_err().to_string().contains(".qlog"));
    assert_eq!(Format::try_from(Path::new("a/b.SQLOG")).unwrap(), Format::Qlog);
    if !cfg!(feature = "columns") {
        assert!(error(Format::Arrow, b"x").contains("--features parquet"));
    }
    // The lines that `transom log` shows are read too.
    let shown = b"{\"event\":\"missed\",\"records\":12}\n\n";
    assert_eq!(Log::read(Format::Lines, shown).unwrap(), Log::default());
}

/// Text has events by name. One that a later version writes is left out and counted, as a record of an unknown kind is.
#[test]
fn an_event_that_is_not_known_is_left_out_and_counted() {
    let limited = |because| of(5, What::Limited { because });
    let known = (0, limited(LimitReason::Nagle));
    let records = vec![known.clone(), (1, limited(LimitReason::Cork))];
    let log = Log { origin: 3, records, unknown: 0 };
    for format in [Format::Lines, Format::Qlog] {
        let text = String::from_utf8(log.write(format).unwrap()).unwrap();
        let end = text.rfind("limited\"").unwrap();
        let later = format!("{}unheard-of\"{}", &text[..end], &text[end + "limited\"".len()..]);
        let read = Log::read(format, later.as_bytes()).unwrap();
        assert_eq!((read.records, read.unknown), (vec![known.clone()], 1), "{format:?}");
    }
}

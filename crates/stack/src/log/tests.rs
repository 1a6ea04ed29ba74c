//! The ring, the bytes of a record as docs/event-log.md has them, files, and that hostile bytes do no harm.

use super::file::{self, FileError, HEADER_LEN, Header};
use super::record::{EndedBy, LayerFate, Values};
use super::{FlowEvent, Line, Log, RECORD_LEN, Record, RecordError, What};
use proptest::prelude::*;
use std::format;
use std::vec::Vec;
use transom_tcp::extension::{Decider, Interval, LayerId, Ruling, Variable};
use transom_tcp::time::Instant;
use transom_tcp::{LimitReason, LimitedBy, Phase, State};

fn record(what: What) -> Record {
    Record {
        at: Instant::from_nanos(0x0102_0304_0506_0708),
        connection: 0x0000_0002_0000_0009,
        state: State::CloseWait,
        phase: Phase::Recovery,
        limited_by: LimitedBy::VirtualWindow,
        what,
    }
}

fn values() -> Values {
    Values {
        position: (1 << 32) + 1,
        bytes: 2896,
        window: 65_535,
        cwnd: 14_480,
        ssthresh: u32::MAX,
        in_flight: 11_584,
        srtt: 0,
        rto: 1_000_000,
        extra: 250,
    }
}

fn examples() -> Vec<Record> {
    let ruling = Ruling {
        own: 50_000,
        requested: Interval::new(0, 20_000),
        safe: Interval::ANY,
        effective: 20_000,
        decided_by: Decider::Layer(LayerId::from_u32(3)),
        conflict: false,
    };
    let contradiction = Ruling {
        requested: None,
        effective: 50_000,
        decided_by: Decider::Tcp,
        conflict: true,
        ..ruling
    };
    let at_least =
        Ruling { requested: Some(Interval::at_least(7)), decided_by: Decider::SafeRange, ..ruling };
    let request = |variable, ruling| What::Request { variable, ruling };
    let mut all = std::vec![
        What::Opened {
            local: "10.0.0.2:80".parse().unwrap(),
            remote: "10.0.0.1:4000".parse().unwrap()
        },
        What::Opened {
            local: "[fd00::2]:80".parse().unwrap(),
            remote: "[fd00::1]:4000".parse().unwrap()
        },
        What::State { from: State::Established, error: None },
        What::State { from: State::SynSent, error: Some(EndedBy::Other) },
        request(Variable::Cwnd, ruling),
        request(Variable::PacingRate, contradiction),
        request(Variable::Rto, at_least),
        What::Layer {
            layer: Some(7),
            fate: LayerFate::Protocol,
            name: "vegas \"in\" Python".into()
        },
        What::Layer { layer: None, fate: LayerFate::NotAttached, name: "".into() },
        What::Limited { because: LimitReason::Nagle },
        What::Limited { because: LimitReason::Pacing },
    ];
    let events = [
        FlowEvent::Acknowledged,
        FlowEvent::Arrived,
        FlowEvent::Sent,
        FlowEvent::Retransmitted,
        FlowEvent::Lost,
        FlowEvent::Recovery,
        FlowEvent::TimedOut,
        FlowEvent::Undone,
    ];
    all.extend(events.map(|event| What::Flow(event, values())));
    all.into_iter().map(record).collect()
}

#[test]
fn the_layout_is_the_documented_one() {
    let bytes = record(What::Flow(FlowEvent::Acknowledged, values())).encode(0xaabb_ccdd);
    let expected = [
        &[8, 7, 6, 5, 4, 3, 2, 1][..], // time, nanoseconds
        &[9, 0, 0, 0, 2, 0, 0, 0],     // connection: its place, then its generation
        &[2, 6, 2, 4],                 // kind, state, phase, limit
        &[0xdd, 0xcc, 0xbb, 0xaa],     // lower half of the number
        &[1, 0, 0, 0, 1, 0, 0, 0],     // SND.UNA
        &[0x50, 0x0b, 0, 0],           // bytes: 2896
        &[0xff, 0xff, 0, 0],           // window: 65535
        &[0x90, 0x38, 0, 0],           // cwnd: 14480
        &[0xff, 0xff, 0xff, 0xff],     // ssthresh: none yet
        &[0x40, 0x2d, 0, 0],           // in flight: 11584
        &[0, 0, 0, 0],                 // srtt: none yet
        &[0x40, 0x42, 0x0f, 0],        // rto: 1000000 µs
        &[250, 0, 0, 0],               // rtt: 250 µs
    ];
    assert_eq!(bytes.as_slice(), expected.concat());
}

#[test]
fn records_are_read_as_they_were_written() {
    for (number, record) in (0u32..).zip(examples()) {
        assert_eq!(Record::decode(&record.encode(number)), Ok((record, number)));
    }
}

#[test]
fn long_names_are_cut_between_characters() {
    let name = "ä".repeat(20); // 40 bytes, of which 32 fit
    let long = record(What::Layer { layer: Some(1), fate: LayerFate::Attached, name });
    let (read, _) = Record::decode(&long.encode(0)).unwrap();
    assert!(matches!(&read.what, What::Layer { name, .. } if *name == "ä".repeat(16)));
    let odd = format!("x{}", "ä".repeat(20));
    let long = record(What::Layer { layer: Some(1), fate: LayerFate::Attached, name: odd });
    let (read, _) = Record::decode(&long.encode(0)).unwrap();
    assert!(matches!(&read.what, What::Layer { name, .. } if name.len() == 31));
}

fn numbers(log: &Log, from: u64) -> (u64, Vec<u32>) {
    let reading = log.read(from);
    let numbers = reading.records().map(|bytes| Record::decode(bytes).unwrap().1);
    (reading.missed, numbers.collect())
}

#[test]
fn a_reader_knows_what_it_missed() {
    let mut log = Log::new(4);
    assert_eq!(numbers(&log, 0), (0, std::vec![]));
    let one = record(What::Flow(FlowEvent::Sent, values()));
    for _ in 0..3 {
        log.push(one.words());
    }
    assert_eq!(numbers(&log, 0), (0, std::vec![0, 1, 2]));
    assert_eq!(numbers(&log, 2), (0, std::vec![2]));
    for _ in 0..3 {
        log.push(one.words());
    }
    // Six were written, four are held.
    assert_eq!(numbers(&log, 0), (2, std::vec![2, 3, 4, 5]));
    assert_eq!(numbers(&log, 1), (1, std::vec![2, 3, 4, 5]));
    assert_eq!(numbers(&log, 5), (0, std::vec![5]));
    assert_eq!(numbers(&log, 6), (0, std::vec![]));
    // A reader cannot have missed records that it has not come to yet.
    assert_eq!(numbers(&log, 1000), (0, std::vec![]));
    assert_eq!(log.read(6).next, 6);
}

#[test]
fn files_are_read_in_order_whichever_way_they_were_written() {
    let one = record(What::Flow(FlowEvent::Sent, values()));
    let header = |places| Header { origin: 17, places }.encode().to_vec();
    let read = |bytes: &[u8]| {
        let (header, entries) = file::read(bytes).unwrap();
        assert_eq!(header.origin, 17);
        entries.into_iter().map(|entry| (entry.sequence, entry.missed)).collect::<Vec<_>>()
    };
    // One after another, over the end of the 32-bit numbers, with two missing.
    let mut bytes = header(0);
    for number in [u32::MAX - 1, u32::MAX, 2, 3] {
        bytes.extend(one.encode(number));
    }
    let start = u64::from(u32::MAX) - 1;
    let expected = [(start, 0), (start + 1, 0), (start + 4, 2), (start + 5, 0)];
    assert_eq!(read(&bytes), expected);
    // Half a record at the end is not one.
    bytes.extend([1; RECORD_LEN / 2]);
    assert_eq!(read(&bytes), expected);
    // In a ring of four places: 8 and 9 have replaced 4 and 5.
    let mut bytes = header(4);
    for number in [8, 9, 6, 7] {
        bytes.extend(one.encode(number));
    }
    assert_eq!(read(&bytes), [(6, 0), (7, 0), (8, 0), (9, 0)]);
    // A ring of which two places were never written to.
    let mut bytes = header(4);
    bytes.extend(one.encode(0));
    bytes.extend(one.encode(1));
    bytes.extend([0; 2 * RECORD_LEN]);
    assert_eq!(read(&bytes), [(0, 0), (1, 0)]);
}

/// The numbers of the reasons in a record are those of docs/event-log.md.
#[test]
fn the_reason_of_a_limit_is_a_number() {
    let reasons = [
        LimitReason::NoData,
        LimitReason::Nagle,
        LimitReason::Cork,
        LimitReason::PeerWindow,
        LimitReason::SillyWindow,
        LimitReason::CongestionWindow,
        LimitReason::VirtualWindow,
        LimitReason::Pacing,
    ];
    for (number, because) in (0..).zip(reasons) {
        let bytes = record(What::Limited { because }).encode(0);
        assert_eq!((bytes[16], bytes[24]), (13, number));
        assert!(bytes[25..].iter().all(|&byte| byte == 0));
    }
    let mut bytes = record(What::Limited { because: LimitReason::NoData }).encode(0);
    bytes[24] = reasons.len() as u8;
    assert_eq!(Record::decode(&bytes), Err(RecordError::Field("reason of the limit")));
}

/// To a reader of an earlier version, kind 13 was such a kind.
#[test]
fn a_reader_skips_a_kind_that_it_does_not_know() {
    let flow = record(What::Flow(FlowEvent::Sent, values()));
    let mut bytes = Header { origin: 17, places: 0 }.encode().to_vec();
    let mut later = record(What::Limited { because: LimitReason::Cork }).encode(1);
    later[16] = 99;
    bytes.extend(flow.encode(0));
    bytes.extend(later);
    bytes.extend(flow.encode(2));
    let (_, entries) = file::read(&bytes).unwrap();
    let read: Vec<_> =
        entries.iter().map(|entry| (entry.sequence, entry.missed, entry.record.as_ref())).collect();
    let unknown = RecordError::Kind(99);
    assert_eq!(read, [(0, 0, Ok(&flow)), (1, 0, Err(&unknown)), (2, 0, Ok(&flow))]);
}

#[test]
fn a_wrong_log_is_refused_with_the_reason() {
    assert_eq!(file::read(b"{}"), Err(FileError::Magic));
    assert_eq!(file::read(&[0; 200]), Err(FileError::Magic));
    let mut bytes = Header { origin: 0, places: 0 }.encode();
    bytes[8] = 2;
    assert_eq!(file::read(&bytes), Err(FileError::Version(2)));
    bytes[8] = 1;
    bytes[10] = 32;
    assert_eq!(file::read(&bytes), Err(FileError::RecordLen(32)));
}

#[test]
fn lines_are_what_the_documentation_says() {
    let line = |what| format!("{}", Line { record: &record(what), sequence: 5 });
    let common = "{\"seq\":5,\"ns\":72623859790382856,\"connection\":8589934601,\"event\":";
    let how = "\"state\":\"close-wait\",\"phase\":\"recovery\",\"limited_by\":\"virtual-cwnd\"";
    assert_eq!(
        line(What::Flow(FlowEvent::Acknowledged, values())),
        format!(
            "{common}\"ack\",{how},\"snd_una\":4294967297,\"bytes\":2896,\"snd_wnd\":65535,\"cwnd\":14480,\
             \"ssthresh\":null,\"in_flight\":11584,\"srtt_us\":null,\"rto_us\":1000000,\"rtt_us\":250}}"
        )
    );
    assert_eq!(
        line(What::Limited { because: LimitReason::SillyWindow }),
        format!("{common}\"limited\",{how},\"limited_because\":\"silly-window\"}}")
    );
    let name = "a\"b\n".into();
    assert_eq!(
        line(What::Layer { layer: None, fate: LayerFate::Gone, name }),
        format!(
            "{common}\"layer\",{how},\"layer\":null,\"name\":\"a\\\"b\\u000a\",\"fate\":\"gone\"}}"
        )
    );
}

proptest! {
    /// Any bytes are a record or are refused, and each record can be shown and written again.
    #[test]
    fn hostile_bytes_do_no_harm(bytes in prop::array::uniform32(any::<u8>()), kind in 0u8..15) {
        let mut record = [0; RECORD_LEN];
        record[..32].copy_from_slice(&bytes);
        record[32..].copy_from_slice(&bytes);
        record[16] = kind;
        record[17] %= 11;
        record[18] %= 5;
        record[19] %= 6;
        match Record::decode(&record) {
            Ok((read, number)) => {
                let line = format!("{}", Line { record: &read, sequence: 0 });
                let whole = line.starts_with('{') && line.ends_with('}');
                prop_assert!(whole);
                let again = Record::decode(&read.encode(number));
                prop_assert_eq!(again, Ok((read, number)));
            }
            Err(RecordError::Kind(kind)) => prop_assert!(kind == 0 || kind > 13),
            Err(RecordError::Field(_)) => {}
        }
    }

    #[test]
    fn hostile_files_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut file = Header { origin: 0, places: 3 }.encode().to_vec();
        file.extend(&bytes);
        let (_, entries) = file::read(&file).unwrap();
        prop_assert!(entries.len() <= bytes.len() / RECORD_LEN);
        let _ = file::read(&bytes);
        let _ = file::read(&file[..file.len().min(HEADER_LEN)]);
    }
}

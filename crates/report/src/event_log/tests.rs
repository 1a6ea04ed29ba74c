use super::*;
use crate::render;
use transom_stack::log::RecordError;
use transom_tcp::{LimitedBy, Phase, State};

fn record(ms: u64, connection: u64, what: What) -> Entry {
    let record = Record {
        at: Instant::from_millis(5000 + ms),
        connection,
        state: State::Established,
        phase: Phase::Open,
        limited_by: LimitedBy::Application,
        what,
    };
    Entry { sequence: 0, missed: 0, record: Ok(record) }
}

fn flow(ms: u64, connection: u64, event: FlowEvent, offset: u64, bytes: u32) -> Entry {
    let values = Values {
        position: FIRST_BYTE + offset,
        bytes,
        window: 4096,
        cwnd: 10_240,
        ssthresh: u32::MAX,
        in_flight: 2048,
        srtt: 20_000,
        rto: 0,
        extra: 21_000,
    };
    record(ms, connection, What::Flow(event, values))
}

fn opened(ms: u64, connection: u64, port: u16) -> Entry {
    let end = |text: &str, port| SocketAddr::new(text.parse().unwrap(), port);
    record(
        ms,
        connection,
        What::Opened { local: end("192.0.2.1", port), remote: end("2001:db8::1", 80) },
    )
}

fn points(section: &Section, chart: &str, series: &str) -> Points {
    let chart = section.charts.iter().find(|one| one.title == chart).unwrap();
    let curves = chart.series.iter().map(|one| (&one.name, &one.points));
    let marks = chart.markers.iter().map(|one| (&one.name, &one.points));
    curves.chain(marks).find(|(name, _)| *name == series).unwrap().1.clone()
}

#[test]
fn a_connection_becomes_a_section() {
    let entries = [
        opened(0, 7, 4000),
        flow(100, 7, FlowEvent::Sent, 0, 1024),
        flow(200, 7, FlowEvent::Acknowledged, 1024, 1024),
        flow(300, 7, FlowEvent::Lost, 1024, 512),
        flow(300, 7, FlowEvent::Retransmitted, 1024, 512),
        flow(400, 7, FlowEvent::TimedOut, 1024, 0),
    ];
    let data = plot_log(&entries, "get.tlog", None).data;
    let [section] = &data.sections[..] else { panic!("one connection") };
    assert_eq!(section.title, "Connection 7: 192.0.2.1:4000 – [2001:db8::1]:80");
    // Nothing was received.
    let titles: Vec<_> = section.charts.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(titles, ["Sent data", "Windows of the sender", "Round-trip time"]);
    assert_eq!(points(section, "Sent data", "sent"), [(0.1, 1.0)]);
    assert_eq!(points(section, "Sent data", "acknowledged"), [(0.2, 1.0)]);
    assert_eq!(points(section, "Sent data", "edge of the peer's window"), [(0.2, 5.0)]);
    assert_eq!(points(section, "Sent data", "sent again"), [(0.3, 1.0)]);
    assert_eq!(points(section, "Sent data", "loss"), [(0.3, 1.0)]);
    assert_eq!(points(section, "Windows of the sender", "timeout"), [(0.4, 10.0)]);
    assert!(points(section, "Windows of the sender", "ssthresh").iter().all(|(_, y)| y.is_nan()));
    assert_eq!(points(section, "Round-trip time", "last sample"), [(0.2, 21.0)]);
    let Block::Table(table) = &data.blocks[0] else { panic!("a table") };
    let texts: Vec<_> = table.rows[0].iter().map(|cell| cell.text.as_str()).collect();
    let expected =
        ["7", "192.0.2.1:4000", "[2001:db8::1]:80", "0.400", "1024", "512", "0", "512", "1"];
    assert_eq!(texts, expected);
}

#[test]
fn the_connection_with_most_data_is_the_picture() {
    let entries = [
        opened(0, 1, 4001),
        opened(0, 2, 4002),
        flow(10, 1, FlowEvent::Arrived, 100, 100),
        flow(20, 2, FlowEvent::Arrived, 9000, 9000),
    ];
    let plotted = plot_log(&entries, "log", None);
    let picture = plotted.picture.unwrap().to_string();
    assert!(picture.contains("Connection 2: "), "{picture}");
    assert!(picture.contains("Received data") && picture.contains("Round-trip time"), "{picture}");
    // The charts' own identifiers are different ones.
    assert_eq!(picture.matches("id=\"area-0\"").count(), 1);
    assert_eq!(picture.matches("id=\"area-1\"").count(), 1);
    let one = plot_log(&entries, "log", Some(1));
    assert!(one.picture.unwrap().to_string().contains("Connection 1: "));
    assert_eq!(plot_log(&entries, "log", Some(3)).count, 0);
}

#[test]
fn gaps_and_unknown_records_are_named() {
    let lost = Entry { missed: 12, ..flow(0, 1, FlowEvent::Sent, 0, 1) };
    let unknown = Entry { sequence: 13, missed: 0, record: Err(RecordError::Kind(99)) };
    let page = render(&plot_log(&[lost, unknown], "<log>", None).data);
    assert!(page.contains("12 records are missing"), "{page}");
    assert!(page.contains("1 records are of kinds"), "{page}");
    assert!(!page.contains("<log>"), "names are escaped");
}

#[test]
fn a_page_has_few_charts_however_many_connections_there_are() {
    let entries: Vec<_> = (0..30).map(|n| flow(n, n, FlowEvent::Sent, n, 1 + n as u32)).collect();
    let data = plot_log(&entries, "log", None).data;
    assert_eq!(data.sections.len(), CHARTS);
    assert_eq!(data.sections[0].title, "Connection 29");
    assert!(data.notes[0].contains("22 others"), "{:?}", data.notes);
}

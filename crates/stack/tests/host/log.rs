//! The event log of a host: which records each thing that happens leaves, and with which values.

use crate::harness::*;
use transom_stack::ConnectionId;
use transom_stack::log::{EndedBy, FlowEvent, LayerFate, Record, What};
use transom_tcp::extension::{Extension, Limits, Occasion, Value, Variable, View, Wake};
use transom_tcp::time::Duration;
use transom_tcp::{Connection, LimitReason, Phase, Pos, Publisher, State};
use transom_wire::Flags;

/// Counts what is published.
struct Counted(usize);

impl Publisher for Counted {
    fn publish(&mut self, _: &Connection, _: transom_tcp::Event<'_>) {
        self.0 += 1;
    }
}

/// A host with a connection, and how far its log has been read.
struct Scene {
    host: Host,
    peer: Peer,
    id: ConnectionId,
    read: u64,
}

const SEGMENT: usize = 1000;

impl Scene {
    fn new(records: usize) -> Self {
        let mut host = Host::with(|config, profile| {
            config.log_records = records;
            profile.max_segment = Some(SEGMENT as u16);
        });
        let listener = host.listen(service());
        let mut peer = Peer::new(at(PEER, 4000), service());
        peer.shake(&mut host, bare_options());
        let id = host.accept(listener);
        Scene { host, peer, id, read: 0 }
    }

    /// The records since the last look, of which none was missed.
    fn new_records(&mut self) -> Vec<Record> {
        let reading = self.host.stack.log(self.read);
        assert_eq!(reading.missed, 0);
        self.read = reading.next;
        let records: Vec<_> =
            reading.records().map(|bytes| Record::decode(bytes).unwrap().0).collect();
        for record in &records {
            assert_eq!((record.connection, record.at), (self.id.as_u64(), self.host.now));
        }
        records
    }

    /// The kinds of what moved, with position (counted from the first byte of data) and bytes.
    fn moves(&mut self) -> Vec<(FlowEvent, u64, u32)> {
        let moved = |record: Record| match record.what {
            What::Flow(event, values) => {
                Some((event, values.position.wrapping_sub(Pos::FIRST_DATA.get()), values.bytes))
            }
            _ => None,
        };
        self.new_records().into_iter().filter_map(moved).collect()
    }

    fn write(&mut self, segments: usize) {
        self.host.write_all(self.id, &stream(segments * SEGMENT));
        self.host.sent();
    }

    /// The peer acknowledges the first `bytes` of the stream, with nothing else to say.
    fn acknowledge(&mut self, bytes: i64) {
        let packet = self.peer.at(Flags::ACK, 0, bytes, b"");
        self.host.inject(&packet);
    }
}

#[test]
fn a_connection_is_told_from_its_beginning_to_its_end() {
    let mut scene = Scene::new(64);
    let records = scene.new_records();
    let whats: Vec<_> = records.iter().map(|record| &record.what).collect();
    let (local, remote) = (service(), at(PEER, 4000));
    assert_eq!(*whats[0], What::Opened { local, remote });
    assert_eq!(records[0].state, State::SynReceived);
    assert!(whats.contains(&&What::State { from: State::SynReceived, error: None }), "{records:?}");
    assert_eq!(records.last().unwrap().state, State::Established);

    scene.write(2);
    let size = SEGMENT as u32;
    let sent = scene.moves();
    assert_eq!(sent, [(FlowEvent::Sent, 0, size), (FlowEvent::Sent, 1000, size)]);

    // The peer takes both, and then says something itself, which acknowledges nothing new.
    scene.acknowledge(2000);
    assert_eq!(scene.moves(), [(FlowEvent::Acknowledged, 2000, 2000)]);
    let hello = scene.peer.at(Flags::ACK, 0, 2000, b"hello");
    scene.host.inject(&hello);
    assert_eq!(scene.moves(), [(FlowEvent::Arrived, 5, 5)]);

    let reset = scene.peer.at(Flags::RST | Flags::ACK, 5, 2000, b"");
    scene.host.inject(&reset);
    let records = scene.new_records();
    let ended = What::State { from: State::Established, error: Some(EndedBy::Reset) };
    assert_eq!(records.iter().map(|record| &record.what).collect::<Vec<_>>(), [&ended]);
    assert_eq!(records[0].state, State::Closed);
}

/// Three duplicates of RFC 5681 section 3.2, and with the third fast recovery and a retransmission.
#[test]
fn a_fast_retransmission_is_told_step_by_step() {
    let mut scene = Scene::new(64);
    scene.write(5);
    scene.new_records();
    for _ in 0..2 {
        scene.acknowledge(0);
        assert_eq!(scene.new_records().last().unwrap().phase, Phase::Disorder);
    }
    scene.acknowledge(0);
    let records = scene.new_records();
    let told = |wanted: FlowEvent| {
        records.iter().find_map(|record| match record.what {
            What::Flow(event, values) if event == wanted => Some(values),
            _ => None,
        })
    };
    assert_eq!(told(FlowEvent::Acknowledged).map(|values| values.bytes), Some(0));
    assert!(told(FlowEvent::Recovery).is_some());
    let again = told(FlowEvent::Retransmitted).expect("the first segment leaves again");
    assert_eq!((again.position, again.bytes), (Pos::FIRST_DATA.get(), SEGMENT as u32));
    // Half of the flight of five segments, in whole bytes.
    assert_eq!(again.ssthresh, 2500);
    assert_eq!(records.last().unwrap().phase, Phase::Recovery);
}

#[test]
fn a_timeout_is_told_with_its_back_off() {
    let mut scene = Scene::new(64);
    scene.write(1);
    let timeout = scene.host.info(scene.id).rto;
    scene.new_records();
    scene.host.run_for(timeout);
    let moves = scene.moves();
    assert_eq!(moves[0], (FlowEvent::TimedOut, 0, 0));
    assert_eq!(*moves.last().unwrap(), (FlowEvent::Retransmitted, 0, SEGMENT as u32));
}

/// Wants one segment, later two, and then is at fault.
#[derive(Debug, Default)]
struct Fickle(u64);

impl Extension for Fickle {
    fn name(&self) -> &str {
        "fickle"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        limits.at_most(Value::Cwnd(view.mss()));
    }

    fn on_wake(&mut self, _: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.0 += 1;
        match self.0 {
            1 => limits.at_most(Value::Cwnd(2 * view.mss())),
            _ => limits.between(Value::Rto(Duration::from_millis(2)), Value::Rto(Duration::ZERO)),
        }
    }
}

#[test]
fn layers_and_what_they_ask_are_told() {
    let mut scene = Scene::new(64);
    scene.new_records();
    let id = scene.id;
    scene
        .host
        .call(|stack, now| {
            stack.with_connection(id, now, |connection| {
                connection.attach(now, Box::<Fickle>::default())
            })
        })
        .unwrap()
        .unwrap();
    let asked = |record: &Record| match &record.what {
        What::Request { variable: Variable::Cwnd, ruling } => {
            Some((ruling.requested.map(|asked| asked.high()), ruling.effective))
        }
        _ => None,
    };
    let fate = |record: &Record| match &record.what {
        What::Layer { fate, name, .. } => Some((*fate, name.clone())),
        _ => None,
    };
    let records = scene.new_records();
    assert_eq!(fate(&records[0]), Some((LayerFate::Attached, "fickle".into())));
    assert_eq!(asked(&records[1]), Some((Some(1000), 1000)));

    scene.write(3);
    scene.new_records();
    scene.acknowledge(1000);
    let records = scene.new_records();
    assert_eq!(records.iter().find_map(asked), Some((Some(2000), 2000)));
    // A layer at fault is detached, and its requests with it.
    scene.acknowledge(2000);
    let records = scene.new_records();
    let gone = records.iter().find_map(fate);
    assert_eq!(gone, Some((LayerFate::Nonsense, "fickle".into())));
    assert_eq!(records.iter().find_map(asked).unwrap().0, None);
}

/// Asks for another window after each segment.
#[derive(Debug, Default)]
struct Restless(u64);

impl Extension for Restless {
    fn name(&self) -> &str {
        "restless"
    }

    fn wake_on(&self) -> Wake {
        Wake::SEND
    }

    fn on_wake(&mut self, _: &Occasion, _: &View<'_>, limits: &mut Limits) {
        self.0 += 1;
        limits.at_most(Value::Cwnd(20_000 + self.0));
    }
}

/// Segments that one call lets go are each settled in a call of their own, and what is asked in answer stands behind the first. A later
/// request is reported when a round trip is over, with the first acknowledgement.
#[test]
fn requests_after_a_segment_are_logged_behind_it_once_in_a_round_trip() {
    let mut scene = Scene::new(64);
    let id = scene.id;
    let attached = scene.host.call(|stack, now| {
        stack.with_connection(id, now, |connection| {
            connection.attach(now, Box::<Restless>::default())
        })
    });
    attached.unwrap().unwrap();
    scene.new_records();
    scene.write(3);
    let told = |scene: &mut Scene| -> Vec<u64> {
        let told = |record: &Record| match &record.what {
            What::Flow(FlowEvent::Sent, values) => Some(values.position - Pos::FIRST_DATA.get()),
            What::Request { ruling, .. } => ruling.requested.map(|asked| asked.high()),
            _ => None,
        };
        scene.new_records().iter().filter_map(told).collect()
    };
    assert_eq!(told(&mut scene), [0, 20_001, 1000, 2000]);
    scene.acknowledge(1000);
    assert_eq!(told(&mut scene), [20_003]);
    // It belongs to the round trip that has begun.
    scene.write(1);
    assert_eq!(told(&mut scene), [3000]);
    scene.acknowledge(4000);
    assert_eq!(told(&mut scene), [20_004]);
}

/// Data that arrives within a tenth of a millisecond is one record, unless something else happens in between.
#[test]
fn arrivals_that_follow_each_other_closely_are_one() {
    let mut scene = Scene::new(64);
    scene.new_records();
    let began = scene.host.now;
    for (place, micros) in [(0, 0), (5, 40), (10, 59), (15, 2)] {
        scene.host.now += Duration::from_micros(micros);
        let packet = scene.peer.at(Flags::ACK, place, 0, b"hello");
        scene.host.inject(&packet);
    }
    let arrivals = |host: &mut Host, from| -> Vec<_> {
        let records = host.stack.log(from).records();
        let moved = records.filter_map(|bytes| {
            let record = Record::decode(bytes).unwrap().0;
            match record.what {
                What::Flow(FlowEvent::Arrived, values) => Some((record.at, values)),
                _ => None,
            }
        });
        moved.collect()
    };
    let told = arrivals(&mut scene.host, scene.read);
    let told: Vec<_> = told
        .iter()
        .map(|(at, values)| {
            let end = values.position - Pos::FIRST_DATA.get();
            (at.since(began).as_micros(), end, values.bytes)
        })
        .collect();
    assert_eq!(told, [(0, 15, 15), (101, 20, 5)]);
}

/// The words for a capture: how the sender stands, and only if they are asked for.
#[test]
fn segments_come_with_comments() {
    for asked in [false, true] {
        let mut host = Host::with(|config, profile| {
            config.comments = asked;
            profile.max_segment = Some(SEGMENT as u16);
        });
        let listener = host.listen(service());
        let mut peer = Peer::new(at(PEER, 4000), service());
        peer.shake(&mut host, bare_options());
        let id = host.accept(listener);
        let now = host.now;
        // Not by way of the test's host, which would take what leaves.
        host.stack
            .with_connection(id, now, |connection| connection.attach(now, Box::<Fickle>::default()))
            .unwrap()
            .unwrap();
        host.stack.write(id, now, &stream(SEGMENT)).unwrap();
        let comment = host.stack.poll_transmit(now).unwrap().comment.to_owned();
        if !asked {
            assert_eq!(comment, "");
            continue;
        }
        for part in
            ["cwnd=10000 ssthresh=none in_flight=1000 phase=open", "rto=", "cwnd:=1000(fickle)"]
        {
            assert!(comment.contains(part), "{comment}");
        }
        assert!(!comment.contains("retransmission"), "{comment}");
        // Timers are set when there is nothing more to send.
        assert!(host.stack.poll_transmit(now).is_none());
        let due = host.info(id).rto;
        let now = now + due;
        host.stack.on_timeout(now);
        let comment = host.stack.poll_transmit(now).unwrap().comment.to_owned();
        assert!(comment.starts_with("retransmission cwnd=1000"), "{comment}");
        assert!(comment.contains("phase=loss") && comment.contains("backoffs=1"), "{comment}");
    }
}

#[test]
fn a_small_ring_keeps_the_latest_and_none_keeps_nothing() {
    let mut scene = Scene::new(4);
    scene.write(8);
    let reading = scene.host.stack.log(0);
    assert_eq!((reading.records().count(), reading.missed), (4, reading.next - 4));
    let mut scene = Scene::new(0);
    scene.write(8);
    assert_eq!(scene.host.stack.log(0).next, 0);
    // Layers leave nothing behind that somebody would have to fetch.
    let id = scene.id;
    let attached = scene.host.call(|stack, now| {
        stack
            .with_connection(id, now, |connection| connection.attach(now, Box::<Fickle>::default()))
    });
    assert!(attached.unwrap().is_ok());
    let left = scene.host.call(|stack, now| {
        stack.with_connection(id, now, |connection| {
            let mut left = Counted(0);
            connection.publish(&mut left);
            left.0
        })
    });
    assert_eq!(left.unwrap(), 0);
}

/// Why the sender is limited is told when that changes, and only then: behind what was sent, at the time when it was found out.
#[test]
fn another_limit_of_the_sender_is_told_once() {
    let mut scene = Scene::new(64);
    let reasons = |scene: &mut Scene| -> Vec<(bool, LimitReason)> {
        let mut sent = false;
        let mut told = Vec::new();
        for record in scene.new_records() {
            match record.what {
                What::Flow(FlowEvent::Sent, _) => sent = true,
                What::Limited { because } => {
                    assert_eq!(record.limited_by, because.limit());
                    told.push((sent, because));
                }
                _ => {}
            }
        }
        told
    };
    assert_eq!(reasons(&mut scene), []);
    // More than the window takes.
    scene.write(40);
    assert_eq!(reasons(&mut scene), [(true, LimitReason::CongestionWindow)]);
    // It opens, and is full again.
    scene.acknowledge(1000);
    scene.host.sent();
    assert_eq!(reasons(&mut scene), []);
    // Everything that is left.
    let mut upto = 1000;
    while upto < 40_000 {
        upto = (upto + 4000).min(40_000);
        scene.acknowledge(upto);
        scene.host.sent();
    }
    assert_eq!(reasons(&mut scene), [(true, LimitReason::NoData)]);
    // Half a segment leaves, and the next half waits for its acknowledgement.
    for _ in 0..2 {
        scene.host.write_all(scene.id, &stream(SEGMENT / 2));
        scene.host.sent();
    }
    assert_eq!(reasons(&mut scene), [(true, LimitReason::Nagle)]);
}

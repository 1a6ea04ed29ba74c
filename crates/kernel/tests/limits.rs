//! Limits bound what the kernel sends, and nothing makes it send more.

use std::time::{Duration, Instant};

use transom_tcp::extension::{Event, Extension, ExtensionChoice, Limits, View, Wake, variable};

use crate::support::{Net, at_most_segments, named, until};

/// The kernel by itself has more than eight segments in flight on this link. With the extension it never has.
#[test]
fn a_window_bounds_what_is_in_flight() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let sink = net.sink();
    let plain = net.sender(&sink, false);
    until("plain TCP has more in flight", || {
        net.socket().is_some_and(|socket| socket.unacked > 16)
    });
    drop(plain);
    until("it has gone", || net.sockets().is_empty());

    let host = net.attach(&[at_most_segments(8)], false);
    let before = sink.taken();
    let _sender = net.sender(&sink, true);
    until("the connection is under control", || !host.report().connections.is_empty());
    let mut most = 0;
    while sink.taken() < before + 4_000_000 {
        if let Some(socket) = net.socket() {
            assert!(socket.algorithm.starts_with("transom_"), "{socket:?}");
            most = most.max(socket.unacked);
        }
    }
    assert!((4..=8).contains(&most), "{most} in flight");
    let report = host.report();
    let connection = &report.connections[0];
    let window = &connection.limits[0];
    println!("{connection:?}");
    assert_eq!((window.variable.as_str(), window.by.as_str()), ("cwnd", "segments"));
    assert_eq!(window.used, 8 * u64::from(connection.mss));
    assert!(window.own > window.used && connection.had == "reno");
    assert_eq!((report.lost_records, report.refused, report.without_slot), (0, 0, 0));
}

/// However long it takes: no more leaves than the rate allows.
#[test]
fn a_rate_bounds_what_leaves() {
    let Some(net) = Net::new() else { return };
    const RATE: u64 = 2_000_000;
    let host = net.attach(&named("rate-cap(rate=2MB)"), false);
    let sink = net.sink();
    let _sender = net.sender(&sink, true);
    // The kernel does not pace the first ten segments.
    until("it sends", || sink.taken() > 500_000);
    let (begun, before) = (Instant::now(), sink.taken());
    until("four megabytes more", || sink.taken() > before + 4_000_000);
    let taken = sink.taken() - before;
    let allowed = RATE as f64 * begun.elapsed().as_secs_f64();
    println!("{taken} bytes, {allowed} allowed");
    // What was under way at the beginning, and super-segments.
    assert!((taken as f64) < 1.05 * allowed + 300_000.0, "{taken} bytes, {allowed} allowed");
    let limits = &host.report().connections[0].limits;
    assert!(limits.iter().any(|limit| limit.variable == "pacing_rate" && limit.used == RATE));
}

/// Asks for more than TCP has, of every variable that the kernel can bound.
#[derive(Debug)]
struct More;

impl Extension for More {
    fn name(&self) -> &str {
        "more"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        limits.exactly(variable::CWND, 1000 * view.cwnd());
        limits.exactly(variable::CWND_CNT, 1_000_000 * view.mss());
        limits.exactly(variable::SSTHRESH, u64::MAX - 1);
        limits.exactly(variable::PACING_RATE, u64::MAX - 1);
    }

    fn on_wake(&mut self, _event: &Event, view: &View<'_>, limits: &mut Limits) {
        self.on_attach(view, limits);
    }
}

/// Nothing that is asked makes the window wider than TCP's own, which is what plain TCP has on this link.
#[test]
fn more_than_tcp_has_is_not_given() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let sink = net.sink();
    let widest = |controlled: bool| {
        let before = sink.taken();
        let _sender = net.sender(&sink, controlled);
        let mut most = 0;
        while sink.taken() < before + 8_000_000 {
            most = most.max(net.socket().map_or(0, |socket| socket.cwnd));
        }
        most
    };
    let plain = widest(false);
    until("it has gone", || net.sockets().is_empty());
    let more = ExtensionChoice::new("more", || Box::new(More));
    let host = net.attach(&[more], false);
    let hostile = widest(true);
    println!("widest windows: plain {plain}, hostile {hostile}");
    // The queue of this link takes about 70 segments. Windows beyond it are those of the moment before a loss is seen.
    assert!(hostile < 2 * plain, "plain {plain}, hostile {hostile}");
    let report = host.report();
    assert_eq!(report.garbage, 0);
    until("the sender has gone", || host.report().connections.is_empty());
}

/// A window of nothing stops a connection, and one that opens again goes on at once, with nothing in flight that would bring an acknowledgement.
#[derive(Debug, Default)]
struct Pauses {
    open: bool,
}

impl Extension for Pauses {
    fn name(&self) -> &str {
        "pauses"
    }

    fn wake_on(&self) -> Wake {
        Wake::empty()
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.on_wake(
            &Event { now: view.now(), what: Wake::TIMER, ack: None, sent: None },
            view,
            limits,
        );
    }

    fn on_wake(&mut self, event: &Event, view: &View<'_>, limits: &mut Limits) {
        self.open = !self.open;
        let segments = if self.open { 4 } else { 0 };
        limits.at_most(variable::CWND, segments * view.mss());
        limits.wake_at(event.now + Duration::from_millis(30).into());
    }
}

#[test]
fn a_window_of_nothing_opens_again() {
    let Some(net) = Net::new() else { return };
    let sink = net.sink();
    let host = net.attach(&[ExtensionChoice::new("pauses", || Box::new(Pauses::default()))], false);
    let _sender = net.sender(&sink, true);
    until("a hundred segments", || sink.taken() > 150_000);
    until("it was made to look", || host.report().kicks > 10);
    println!("{:?}", host.report());
}

/// A program limits its own socket by plain `setsockopt`, as an ordinary user. Nothing is attached but what lets it.
#[test]
fn an_ordinary_user_limits_its_own_socket() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let host = net.attach(&[], false);
    let sink = net.sink();
    let script = r#"
import encodings.idna, os, socket, struct, sys
sys.stdin.readline()
os.setgid(65534); os.setuid(65534)
LEVEL, CWND = 0x5452, 0
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def say(*words): print(*words, flush=True)
say("asked", struct.unpack("Q", s.getsockopt(LEVEL, CWND, 8))[0] == 2**64 - 1)
s.setsockopt(LEVEL, CWND, struct.pack("Q", 3 * 1448 + 100))
say("asked", struct.unpack("Q", s.getsockopt(LEVEL, CWND, 8))[0])
for option, value in ((99, b"12345678"), (CWND, b"123")):
    try: s.setsockopt(LEVEL, option, value); say("taken")
    except OSError as error: say("refused")
for turn in range(3): s.sendall(bytes(100000))
say("limited"); sys.stdin.readline()
s.setsockopt(LEVEL, CWND, struct.pack("Q", 2**64 - 1))
while True: s.sendall(bytes(100000))
"#;
    let Some(mut program) = net.python(script, &sink) else { return };
    let mut most = 0;
    program.say("go");
    for expected in ["asked True", "asked 4444", "refused", "refused"] {
        assert_eq!(program.next(), expected);
    }
    until("what it sends is there", || {
        most = most.max(net.socket().map_or(0, |socket| socket.unacked));
        sink.taken() >= 300_000
    });
    assert!((1..=3).contains(&most), "{most} in flight");
    assert_eq!(program.next(), "limited");
    program.say("on");
    until("more in flight", || net.socket().is_some_and(|socket| socket.unacked > 16));
    assert_eq!(host.report().refused, 0);
}

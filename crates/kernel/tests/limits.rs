//! Limits bound what the kernel sends, and nothing makes it send more.

use std::time::{Duration, Instant};

use transom_kernel::{Host, LogEvent, MOST_CONNECTIONS, Options};
use transom_tcp::extension::{Extension, ExtensionChoice, Limits, Occasion, Value, View, Wake};

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
    // Ten segments may leave before the limit is there.
    until("the limit is in use", || {
        let report = host.report();
        let window = report.connections.first().and_then(|connection| connection.limits.first());
        window.is_some_and(|window| window.by == "segments")
    });
    let limited = sink.taken();
    until("the first flight has arrived", || sink.taken() > limited + 100_000);
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
        limits.exactly(Value::Cwnd(1000 * view.cwnd()));
        limits.exactly(Value::CwndCnt(1_000_000 * view.mss()));
        limits.exactly(Value::Ssthresh(u64::MAX - 1));
        limits.exactly(Value::PacingRate(u64::MAX - 1));
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
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
            &Occasion { now: view.now(), what: Wake::TIMER, ack: None, sent: None },
            view,
            limits,
        );
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.open = !self.open;
        let segments = if self.open { 4 } else { 0 };
        limits.at_most(Value::Cwnd(segments * view.mss()));
        limits.wake_at(occasion.now + Duration::from_millis(30).into());
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

/// The processes of the group are in another network namespace than the one that attaches: there too the kernel is made to look.
#[test]
fn a_window_opens_again_in_another_namespace() {
    let Some(net) = Net::new() else { return };
    let sink = net.sink();
    let pauses = [ExtensionChoice::new("pauses", || Box::new(Pauses::default()))];
    let host = Host::attach(&net.cgroup, &pauses, Options::default()).unwrap();
    let _sender = net.sender(&sink, true);
    until("a hundred segments", || sink.taken() > 150_000);
    until("it was made to look", || host.report().kicks > 10);
}

/// A path with a queue, and the options with which the program in the kernel decides. None without rights, or if the kernel cannot shape.
fn decided_in_the_kernel() -> Option<(Net, Options)> {
    let net = Net::new().filter(|net| net.shape(20_000))?;
    Some((net, Options { in_kernel: true, ..Options::default() }))
}

/// Nice decided by the program in the kernel: the queue stays short, where plain TCP fills it. User space hears of it now and then.
/// Without a queue the path takes microseconds. A busy scheduler delays packets by more, and Nice must not take that for a queue.
#[test]
fn nice_is_decided_in_the_kernel() {
    let Some((net, options)) = decided_in_the_kernel() else { return };
    let sink = net.sink();
    let host = net.attach_with(&named("nice(noise=2ms)"), options);
    let _sender = net.sender(&sink, true);
    until("it has sent for a while", || sink.taken() > 6_000_000);
    let report = host.report();
    let connection = &report.connections[0];
    println!("{connection:?}");
    let window = &connection.limits[0];
    assert!(window.used <= window.own && window.by.contains("in the kernel"), "{window:?}");
    assert!(connection.layers.is_empty() && connection.events < 200);
    // The queue takes 68 segments, and plain TCP fills it.
    let most = (0..50).map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        net.socket().map_or(0, |socket| socket.unacked)
    });
    let most = most.max().unwrap();
    assert!(most < 40, "{most} in flight");
    let log = host.log(0, 1000);
    let requests = log.lines.iter().filter(|line| matches!(line.event, LogEvent::Request(_)));
    assert!(requests.count() > 0, "{log:?}");
    let lacks = Host::attach(&net.cgroup, &named("vegas"), options).unwrap_err();
    assert!(lacks.to_string().contains("`nice` and `policy` only"), "{lacks}");
}

/// A learned policy decided by the program in the kernel: everything arrives, and no window is above TCP's own.
#[test]
fn a_policy_is_decided_in_the_kernel() {
    let Some((net, options)) = decided_in_the_kernel() else { return };
    let sink = net.sink();
    let host = net.attach_with(&named("policy(name=low-latency)"), options);
    let _sender = net.sender(&sink, true);
    let (mut decided, mut narrowed) = (0, 0);
    until("it has sent for a while", || {
        let report = host.report();
        for window in report.connections.iter().flat_map(|connection| &connection.limits) {
            assert!(window.used <= window.own, "{window:?}");
            decided += u64::from(window.by.contains("in the kernel"));
            narrowed += u64::from(window.used < window.own);
        }
        sink.taken() > 6_000_000
    });
    let report = host.report();
    println!("{:?}", report.connections[0]);
    assert!(report.connections[0].layers.is_empty() && decided > 0 && narrowed > 0);
}

/// There is room for one connection: the next is plain TCP, and counted.
#[test]
fn without_room_a_connection_is_plain() {
    let Some(net) = Net::new() else { return };
    let sink = net.sink();
    let host =
        net.attach_with(&[at_most_segments(2)], Options { connections: 1, ..Options::default() });
    let one = net.sender(&sink, true);
    until("the first is there", || host.report().connections.len() == 1);
    let _other = net.sender(&sink, true);
    until("the second is there", || host.report().connections.len() == 2);
    until("it is counted", || host.without_room() == 1);
    assert_eq!((host.report().room, host.report().seen), (1, 2));
    drop(one);
    until("the first has gone", || host.report().connections.len() == 1);
    let _third = net.sender(&sink, true);
    until("the third has room", || host.report().connections.len() == 2);
    assert_eq!(host.without_room(), 1);
    for connections in [0, MOST_CONNECTIONS + 1] {
        let options = Options { connections, ..Options::default() };
        assert!(Host::attach(&net.cgroup, &[], options).is_err());
    }
}

/// The log has what the connection asked, got and why.
#[test]
fn the_log_has_each_change() {
    let Some(net) = Net::new() else { return };
    let sink = net.sink();
    let host = net.attach(&[at_most_segments(8)], false);
    let sender = net.sender(&sink, true);
    // Rounds are reported once a millisecond at most.
    until("it sends", || sink.taken() > 20_000_000);
    drop(sender);
    until("it has gone", || host.report().connections.is_empty());
    let log = host.log(0, 100_000);
    let [opened, request, ..] = &log.lines[..] else { panic!("{log:?}") };
    assert!(matches!(opened.event, LogEvent::Opened { limited: true, .. }), "{opened:?}");
    let LogEvent::Request(limit) = &request.event else { panic!("{request:?}") };
    assert_eq!((limit.variable.as_str(), limit.by.as_str()), ("cwnd", "segments"));
    let rounds = log.lines.iter().filter(|line| matches!(line.event, LogEvent::Round(_)));
    assert!(rounds.count() > 10);
    assert_eq!(log.lines.last().unwrap().event, LogEvent::Closed);
    assert!(log.lines.iter().all(|line| line.connection == opened.connection));
}

/// The same as `an_ordinary_user_limits_its_own_socket`, in Rust.
#[test]
fn a_controlled_socket_keeps_to_its_limit() {
    let Some(net) = Net::new() else { return };
    if !net.shape(20_000) {
        return;
    }
    let _host = net.attach(&[], false);
    let sink = net.sink();
    let Some(_sender) = net.ordinary_sender(&sink) else { return };
    let mut most = 0;
    until("half a megabyte", || {
        most = most.max(net.socket().map_or(0, |socket| socket.unacked));
        sink.taken() > 500_000
    });
    assert!((1..=3).contains(&most), "{most} in flight");
}

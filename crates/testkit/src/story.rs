//! One connection's story, for comparing what its watchers show of it with what they showed before.
//!
//! Two hosts talk over a path of 20 ms that loses chosen packets: a loss that fast recovery repairs, an outage that ends in timeouts, and an
//! acknowledgement so late that a timeout was needless. A layer is attached, limits the window, and is detached. The story is the same each time.

use crate::sent::Sent;
use crate::world::{Arrivals, Path, World};
use std::fmt::Write as _;
use transom_stack::log::Encoded;
use transom_stack::{ListenConfig, Stack, StackConfig};
use transom_tcp::ConnectionState;
use transom_tcp::extension::{Extension, Interval, Limits, Occasion, Variable, View, Wake};
use transom_tcp::time::{Duration, Instant};

/// One way.
const DELAY: Duration = Duration::from_millis(10);
/// The address and port of the host that listens.
const SERVICE: &str = "10.0.0.2:80";
/// All that the client writes.
const WRITTEN: usize = 300_000;

/// Everything that the watchers of the connecting host saw.
#[derive(Debug, Default)]
pub struct Story {
    /// The records of its event log.
    pub records: Vec<Encoded>,
    /// The comments of the packets that it sent.
    pub comments: Vec<String>,
    /// The state of its connection after each fifth event.
    pub looks: Vec<(Instant, ConnectionState)>,
}

/// A layer that lets half of the window be used, and asks for a longer timeout now and then.
#[derive(Debug)]
struct Halves;

impl Extension for Halves {
    fn name(&self) -> &str {
        "halves"
    }

    fn wake_on(&self) -> Wake {
        Wake::ROUND | Wake::LOSS
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        limits.set(Variable::Cwnd, Interval::at_most(view.cwnd() / 2));
        if occasion.what.contains(Wake::LOSS) {
            limits.set(Variable::Rto, Interval::at_least(view.rto().as_nanos() * 2));
        }
    }
}

/// The path: what it has carried of each host, and the comments of the first.
#[derive(Debug, Default)]
struct Outage {
    sent: [usize; 2],
    comments: Vec<String>,
}

impl Outage {
    /// How long a packet takes; nothing if it is lost. Packets are counted for each host, from one.
    fn fate(&self, from: usize) -> Option<Duration> {
        match (from, self.sent[from]) {
            (0, 9 | 23 | 24) => None,
            // An outage.
            (0, 60..=75) => None,
            // So late that the timer expires first.
            (1, 70..=90) => Some(Duration::from_secs(2)),
            _ => Some(DELAY),
        }
    }
}

impl Path<Stack> for Outage {
    fn carry(&mut self, now: Instant, from: usize, sent: Sent, arrivals: &mut Arrivals<Stack>) {
        self.sent[from] += 1;
        if from == 0 {
            self.comments.push(sent.comment.clone());
        }
        if let Some(delay) = self.fate(from) {
            arrivals.add(now + delay, 1 - from, sent);
        }
    }
}

/// Tells the story.
///
/// # Panics
/// If it does not come to its end.
pub fn tell_story() -> Story {
    let host = |address: &str, log_records| {
        let mut config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
        (config.log_records, config.comments) = (log_records, log_records > 0);
        Stack::new(config, Instant::ZERO).unwrap()
    };
    let hosts = vec![host("10.0.0.1", 1 << 16), host("10.0.0.2", 0)];
    let mut world = World::new(hosts, Outage::default(), Instant::ZERO);
    world.together = true;
    let mut story = Story::default();
    let listener = world.ends[1].listen(SERVICE.parse().unwrap(), ListenConfig::default()).unwrap();
    let id = world.ends[0].connect(world.now, None, SERVICE.parse().unwrap(), None).unwrap();
    let (mut written, mut read, mut server, mut layer) = (0, 0, None, None);
    let mut buffer = [0; 4096];
    for step in 0.. {
        let now = world.now;
        let [client, peer] = &mut world.ends[..] else { panic!("there are two") };
        if let Ok(n) = client.write(id, now, &vec![7; (WRITTEN - written).min(20_000)]) {
            written += n;
        }
        server = server.or_else(|| peer.accept(listener).map(|(id, _)| id));
        while let Some(server) = server
            && let Ok(n @ 1..) = peer.read(server, now, &mut buffer)
        {
            read += n;
            // What came is answered by a tenth of it.
            let _ = peer.write(server, now, &buffer[..n / 10]);
        }
        while let Ok(1..) = client.read(id, now, &mut buffer) {}
        if step == 30 {
            let attach = |tcp: &mut transom_tcp::Connection| tcp.attach(now, Box::new(Halves));
            layer = client.with_connection(id, now, attach).unwrap().ok();
            assert!(layer.is_some(), "the layer is attached");
        }
        if let (90, Some(layer)) = (step, layer) {
            client.with_connection(id, now, |tcp| tcp.detach(now, layer)).unwrap();
        }
        if step % 5 == 0
            && let Some(connection) = client.connection(id)
        {
            story.looks.push((now, connection.info(now)));
        }
        if read == WRITTEN
            && let Some(server) = server
        {
            client.close(id, now);
            peer.close(server, now);
        }
        assert!(step < 100_000, "{read} bytes after {step} steps");
        if !world.step() {
            break;
        }
    }
    assert_eq!(read, WRITTEN);
    let reading = world.ends[0].log(0);
    assert_eq!(reading.missed, 0);
    story.records = reading.records().copied().collect();
    story.comments = std::mem::take(&mut world.path.comments);
    story
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Compares `text` with the file where it was stored. With `TRANSOM_STORE_OUTPUTS` set it is stored instead.
///
/// # Panics
/// If they differ: with the first line that does.
#[track_caller]
pub fn assert_stored(path: impl AsRef<std::path::Path>, text: &str) {
    let path = path.as_ref();
    if std::env::var_os("TRANSOM_STORE_OUTPUTS").is_some() {
        std::fs::write(path, text).expect("the file can be written");
        return;
    }
    let stored = std::fs::read_to_string(path).expect("the file is there");
    for (number, (old, new)) in stored.lines().zip(text.lines()).enumerate() {
        assert_eq!(old, new, "{}, line {}", path.display(), number + 1);
    }
    assert_eq!(stored.lines().count(), text.lines().count(), "{}, lines", path.display());
}

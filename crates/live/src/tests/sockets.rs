//! Hosts with a status socket, and whoever looks at them.

use crate::client::{AskError, ask};
use crate::{Collector, Row, Source, Sources, StatusSocket};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Profile, Stack, TcpListener, TcpStream};

/// Two hosts, and a directory of status sockets.
#[allow(dead_code)] // the other host is there for its listener
pub(crate) struct Scene {
    pub(crate) directory: TempDir,
    pub(crate) alice: Stack,
    pub(crate) bob: Stack,
    pub(crate) listener: TcpListener,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene::with(Profile::default())
    }

    pub(crate) fn with(profile: Profile) -> Scene {
        let (left, right) = pair(&MemoryConfig::default()).unwrap();
        let host = |number: u8| Stack::builder().address([10, 0, 0, number].into(), 24);
        let alice = host(1).profile(profile).start(left).unwrap();
        let bob = host(2).start(right).unwrap();
        let listener = bob.listen("10.0.0.2:7").unwrap();
        Scene { directory: tempfile::tempdir().unwrap(), alice, bob, listener }
    }

    pub(crate) fn connection(&self) -> (TcpStream, TcpStream) {
        let stream = self.alice.connect("10.0.0.2:7").unwrap();
        (stream, self.listener.accept().unwrap().0)
    }

    /// Where the sockets are; it is not there yet.
    pub(crate) fn place(&self) -> PathBuf {
        self.directory.path().join("transom")
    }

    pub(crate) fn open(&self) -> StatusSocket {
        StatusSocket::open_in(&self.place(), &self.alice).unwrap()
    }

    pub(crate) fn collector(&self) -> Collector {
        Collector::in_directory(Sources::Transom, &self.place())
    }
}

fn find<'a>(rows: &'a [Row], stream: &TcpStream) -> &'a Row {
    let local = stream.local_addr().unwrap();
    rows.iter().find(|row| row.local == local).unwrap_or_else(|| panic!("{rows:?}"))
}

#[test]
fn each_connection_is_told_with_its_state_and_its_rates() {
    let scene = Scene::new();
    let socket = scene.open();
    let mut collector = scene.collector();
    assert_eq!(collector.look().rows.len(), 0);
    let (mut stream, mut peer) = scene.connection();
    let (idle, _other) = scene.connection();
    let first = collector.look();
    assert_eq!((first.rows.len(), first.troubles.len()), (2, 0));
    stream.write_all(&[1; 50_000]).unwrap();
    peer.read_exact(&mut [0; 50_000]).unwrap();
    peer.write_all(&[1; 100]).unwrap();
    stream.read_exact(&mut [0; 100]).unwrap();
    let rows = collector.look().rows;
    let row = find(&rows, &stream);
    assert!(
        matches!(&row.source, Source::Transom { pid, name } if *pid == std::process::id() && !name.is_empty())
    );
    assert!(row.key.starts_with(&format!("{}.", std::process::id())), "{}", row.key);
    assert_eq!((row.state(), row.remote), ("established", stream.peer_addr().unwrap()));
    assert_eq!((row.tcp.counters.bytes_sent, row.tcp.counters.bytes_accepted), (50_000, 100));
    assert!(row.send_rate.unwrap() > row.receive_rate.unwrap());
    assert!(row.tcp.cwnd > 0 && row.tcp.mss > 0 && row.tcp.srtt.is_some(), "{row:?}");
    assert_eq!(row.limit(), "application");
    let row = find(&rows, &idle);
    assert_eq!((row.send_rate, row.receive_rate), (Some(0), Some(0)));
    let path = socket.path().to_owned();
    drop(socket);
    assert!(!path.exists());
    assert!(matches!(ask(&path), Err(AskError::Stale)));
    assert_eq!(collector.look().rows.len(), 0);
}

#[test]
fn extensions_are_told_with_what_they_ask_and_who_decides() {
    let extensions = transom_extensions::stack("rate-cap(rate=1MB)").unwrap();
    let profile = Profile::default().with_extensions(extensions);
    let scene = Scene::with(profile);
    let _socket = scene.open();
    let (stream, _peer) = scene.connection();
    let rows = scene.collector().look().rows;
    let row = find(&rows, &stream);
    assert_eq!(row.layers, ["rate-cap"]);
    let limit = row.limits.iter().find(|limit| limit.by == "rate-cap");
    let limit = limit.unwrap_or_else(|| panic!("{row:?}"));
    assert!(limit.asked.is_some());
}

/// A host can be dropped while somebody looks at it.
#[test]
fn looking_keeps_no_host_alive() {
    let scene = Scene::new();
    let socket = scene.open();
    drop(scene.alice);
    // Nobody is told of a host that is gone.
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !matches!(ask(socket.path()), Err(AskError::CutOff)) {
        assert!(std::time::Instant::now() < end);
    }
}

/// The work of a look grows with the connections, and that of a change with the changes.
#[test]
fn ten_thousand_connections() {
    let scene = Scene::new();
    let _socket = scene.open();
    let mut connections = Vec::new();
    for _ in 0..10_000 {
        connections.push(scene.connection());
    }
    let mut collector = scene.collector();
    let rows = collector.look();
    assert_eq!((rows.rows.len(), rows.troubles), (10_000, Vec::new()));
    let mut changes = crate::Changes::default();
    assert_eq!(changes.of(&rows.rows).rows.len(), 10_000);
    // The second brings rates, and is thereby different.
    changes.of(&collector.look().rows);
    for (stream, peer) in connections.iter_mut().step_by(1000) {
        stream.write_all(b"x").unwrap();
        peer.read_exact(&mut [0]).unwrap();
    }
    // A delayed acknowledgement may come between two looks, so the same one may be told twice, but no other.
    let third = collector.look().rows;
    let changed = changes.of(&third).rows.len();
    assert_eq!(changed, 10);
}

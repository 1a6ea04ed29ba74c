//! Two stacks with one address, behind a process that demultiplexes; here that process is a thread.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{PATIENCE, receive, send};
use transom_device::Demultiplexer;
use transom_device::memory::{MemoryConfig, pair};
use transom_device::open::Opened;
use transom_net::{Stack, TcpStream};

/// Ends the process, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

const BYTES: u64 = 300_000;

/// Sends from one end, and looks at all of it at the other.
fn transfer(from: &TcpStream, to: &TcpStream, seed: u64) {
    for stream in [from, to] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let sent = send(from, seed, BYTES).unwrap();
            from.shutdown(Shutdown::Write).unwrap();
            sent
        });
        assert_eq!(receive(to).unwrap(), sent.join().unwrap());
    });
}

#[test]
fn two_stacks_share_an_address() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demux.sock");
    let (near, far) = pair(&MemoryConfig::default()).unwrap();
    let addresses = vec!["10.9.0.2/24".parse().unwrap()];
    let opened = Opened { device: Box::new(near), addresses, place: "memory".into(), lease: None };
    let mut demux = Demultiplexer::new(&path, opened).unwrap();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let process = scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                demux.turn(Duration::from_millis(20)).unwrap();
            }
            demux.counters()
        });
        let ends = Ends(&ended);
        let peer = Stack::builder().address("10.9.0.1".parse().unwrap(), 24).start(far).unwrap();
        let word = format!("demux:{}", path.display());
        let server = Stack::builder().device(&format!("{word},80")).unwrap();
        let client = Stack::builder().device(&word).unwrap();

        let (at_server, at_peer) =
            (server.listen("10.9.0.2:80").unwrap(), peer.listen("10.9.0.1:443").unwrap());
        let there = peer.connect("10.9.0.2:80").unwrap();
        let (here, _) = at_server.accept().unwrap();
        let out = client.connect("10.9.0.1:443").unwrap();
        let (came, _) = at_peer.accept().unwrap();
        transfer(&there, &here, 1);
        transfer(&here, &there, 2);
        transfer(&out, &came, 3);

        // Port 80 is the server's, and the client is told.
        let refused = Stack::builder().device(&format!("{word},80")).unwrap_err();
        assert!(format!("{refused:?}").contains("another process has port 80"), "{refused:?}");
        drop(ends);
        let counters = process.join().unwrap();
        assert!(counters.handed > 100 && counters.sent > 100, "{counters:?}");
        assert_eq!(counters.refused, 0, "{counters:?}");
    });
}

//! Spans as a subscriber gets them.

use crate::Stack;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use transom_device::memory::{MemoryConfig, pair};

/// Everything that was told, as lines; events name their span's number.
#[derive(Clone, Default)]
struct Heard {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
    open: Arc<Mutex<HashMap<u64, u64>>>,
}

struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "transom"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = self.spans.fetch_add(1, Ordering::Relaxed) + 1;
        let mut words = Words(format!("span {number} {}", span.metadata().name()));
        span.record(&mut words);
        self.lines.lock().unwrap().push(words.0);
        self.open.lock().unwrap().insert(number, 1);
        Id::from_u64(number)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let parent = event.parent().map_or(0, |id| id.into_u64());
        let mut words = Words(format!("event {parent}"));
        event.record(&mut words);
        self.lines.lock().unwrap().push(words.0);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn try_close(&self, id: Id) -> bool {
        self.open.lock().unwrap().remove(&id.into_u64());
        true
    }
}

#[test]
fn a_connection_is_a_span_from_its_beginning_to_its_end() {
    let heard = Heard::default();
    let (left, right) = pair(&MemoryConfig::default()).unwrap();
    let host = |number: u8, device| {
        Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
    };
    let (alice, bob) = (host(1, left), host(2, right));
    let telemetry = tracing::subscriber::with_default(heard.clone(), || alice.telemetry().unwrap());
    let listener = bob.listen("10.0.0.2:7").unwrap();
    let mut stream = alice.connect("10.0.0.2:7").unwrap();
    let mut peer = listener.accept().unwrap().0;
    stream.write_all(b"hello").unwrap();
    peer.read_exact(&mut [0; 5]).unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let wait = |done: &dyn Fn(&[String]) -> bool| {
        while !done(&heard.lines.lock().unwrap()) {
            assert!(Instant::now() < end, "{:?}", heard.lines.lock().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait(&|lines| lines.iter().any(|line| line.contains("to=\"established\"")));
    assert_eq!(heard.open.lock().unwrap().len(), 1);
    stream.shutdown(Shutdown::Write).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    wait(&|lines| lines.iter().any(|line| line.contains("to=\"time-wait\"")));
    drop(telemetry);
    let lines = heard.lines.lock().unwrap().clone();
    let first = &lines[0];
    assert!(first.starts_with("span 1 connection shard=0 "), "{lines:?}");
    assert!(first.contains("local=10.0.0.1:") && first.contains("remote=10.0.0.2:7"), "{first}");
    assert!(lines[1..].iter().all(|line| line.starts_with("event 1 ")), "{lines:?}");
    assert_eq!(heard.open.lock().unwrap().len(), 0, "its span has ended");
    // It does not keep the host alive, nor the host it.
    let telemetry = alice.telemetry().unwrap();
    drop((stream, peer, listener, bob, alice));
    drop(telemetry);
}

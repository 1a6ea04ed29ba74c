//! Metrics as a recorder gets them.

use super::*;
use crate::log::LogPosition;
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString,
    with_local_recorder,
};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use transom_device::memory::{MemoryConfig, pair};
use transom_stack::log::Record as LogRecord;

/// Values by the names of metrics and their labels.
#[derive(Default)]
struct Kept(Mutex<HashMap<String, Arc<AtomicU64>>>);

struct Samples(Arc<AtomicU64>);

impl HistogramFn for Samples {
    fn record(&self, value: f64) {
        assert!(value > 0.0 && value < 60.0, "{value}");
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Kept {
    fn value(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{}", key.name(), labels.join(","));
        self.0.lock().unwrap().entry(name).or_default().clone()
    }

    fn get(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.value(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.value(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Samples(self.value(key))))
    }
}

#[test]
fn a_transfer_is_counted() {
    let (left, right) = pair(&MemoryConfig::default()).unwrap();
    let host = |number: u8, device| {
        Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
    };
    let (alice, bob) = (host(1, left), host(2, right));
    let listener = bob.listen("10.0.0.2:7").unwrap();
    let mut stream = alice.connect("10.0.0.2:7").unwrap();
    let mut peer = listener.accept().unwrap().0;
    stream.write_all(&[7; 10_000]).unwrap();
    peer.read_exact(&mut [0; 10_000]).unwrap();
    peer.write_all(b"thanks").unwrap();
    stream.read_exact(&mut [0; 6]).unwrap();
    let kept = Kept::default();
    with_local_recorder(&kept, || {
        let mut meter = Meter::new();
        for bytes in alice.read_log(&LogPosition::default()).records {
            meter.take(0, &LogRecord::decode(&bytes).unwrap().0);
        }
        meter.end_of_reading();
        meter.missed(3);
        meter.count(&alice);
        meter.count(&alice);
    });
    assert_eq!(kept.get("transom_connections_opened_total"), 1);
    // The SYN takes one place of the sequence space.
    assert_eq!(kept.get("transom_sent_bytes_total"), 10_001);
    assert_eq!(kept.get("transom_received_bytes_total"), 6);
    assert_eq!(kept.get("transom_rtt_seconds"), 1);
    assert_eq!(kept.get("transom_log_missed_total"), 3);
    let packets = kept.get("transom_packets_sent_total");
    assert!(packets > 2 && packets <= alice.counters().packets_sent, "{packets}");
    assert_eq!(f64::from_bits(kept.get("transom_connections")), 1.0);
    // It ends by a reset of the peer's.
    peer.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(peer);
    assert!(stream.read(&mut [0; 1]).is_err());
    with_local_recorder(&kept, || {
        let mut meter = Meter::new();
        for bytes in alice.read_log(&LogPosition::default()).records {
            meter.take(0, &LogRecord::decode(&bytes).unwrap().0);
        }
    });
    assert_eq!(kept.get("transom_connections_ended_totalhow=reset"), 1);
}

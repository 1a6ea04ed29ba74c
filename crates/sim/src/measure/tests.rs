use super::*;
use crate::network::{HostConfig, Topology};
use crate::traffic::{Amount, FlowId, bulk, sink};
use crate::units::Rate;

fn network() -> (Network, LinkId) {
    let mut topology = Topology::new(1);
    let hosts = [topology.host(HostConfig::default()), topology.host(HostConfig::default())];
    let link: crate::link::LinkConfig =
        "rate=10Mbit/s, delay=20ms, queue=30 packets".parse().unwrap();
    let (there, _) = topology.join(hosts[0], hosts[1], link.clone(), link);
    let remote = (topology.address(hosts[1]).unwrap(), 80).into();
    let flow = FlowId(0);
    topology.run(hosts[0], Instant::ZERO, bulk(flow, remote, Amount::Endless)).unwrap();
    topology.run(hosts[1], Instant::ZERO, sink(flow, 80)).unwrap();
    (topology.build().unwrap(), there)
}

#[test]
fn looking_changes_nothing() {
    let (mut plain, link) = network();
    plain.run_until(Instant::from_secs(5)).unwrap();
    // A link counts what left its queue when it is looked at.
    let seen = plain.sample_link(link).map(|sample| sample.counters);
    for millis in [1, 7, 1000] {
        let (mut watched, _) = network();
        let mut recorder = Recorder::new(Duration::from_millis(millis), [link, link.back()]);
        recorder.run_until(&mut watched, Instant::from_secs(5)).unwrap();
        assert_eq!(watched.flows(), plain.flows());
        assert_eq!(watched.totals().packets, plain.totals().packets);
        assert_eq!(watched.sample_link(link).map(|sample| sample.counters), seen);
    }
}

#[test]
fn a_bulk_flow_looks_like_one() {
    let (mut network, link) = network();
    let mut recorder = Recorder::new(Duration::from_millis(100), [link]);
    // In two pieces, between two ticks.
    recorder.run_until(&mut network, Instant::from_millis(4_950)).unwrap();
    recorder.run_until(&mut network, Instant::from_secs(20)).unwrap();
    let samples = &recorder.flows()[0];
    let times: Vec<u64> = samples.iter().map(|sample| sample.at.as_nanos() / 100_000_000).collect();
    assert_eq!(times, (0..=200).collect::<Vec<_>>());
    assert!(samples.is_sorted_by_key(|sample| sample.delivered));
    let rate = Rate::from_bits_per_sec(10_000_000).unwrap();
    let steady = samples[200].delivered - samples[100].delivered;
    let used = per_second(steady, Duration::from_secs(10)) / rate.bits_per_sec() as f64;
    // 1448 of each 1500 bytes are payload.
    assert!((0.90..=1448.0 / 1500.0).contains(&used), "{used}");
    let (sent, last) = (samples[200].sent, samples[200].sender.unwrap());
    assert!(sent.retransmissions > Some(0) && sent.timeouts == Some(0), "{sent:?}");
    assert!(last.ssthresh.is_some(), "{last:?}");
    // 40 ms, and up to 30 packets of 1.2 ms each in the queue.
    let rtt = last.srtt.unwrap();
    assert!(rtt > Duration::from_millis(41) && rtt < Duration::from_millis(79), "{rtt:?}");
    let (_, samples) = &recorder.links()[0];
    assert_eq!(samples.len(), 201);
    assert!(samples.iter().all(|sample| sample.waiting.packets <= 30));
    assert!(samples.iter().any(|sample| sample.waiting.packets > 20));
}

#[test]
fn a_flow_that_begins_later_begins_with_nothing() {
    let mut topology = Topology::new(1);
    let hosts = [(); 2].map(|()| topology.host(HostConfig::default()));
    topology.join(hosts[0], hosts[1], Default::default(), Default::default());
    let remote = (topology.address(hosts[1]).unwrap(), 80).into();
    let bulk = bulk(FlowId(0), remote, Amount::Bytes(10_000));
    topology.run(hosts[0], Instant::from_millis(250), bulk).unwrap();
    topology.run(hosts[1], Instant::ZERO, sink(FlowId(0), 80)).unwrap();
    let mut network = topology.build().unwrap();
    let mut recorder = Recorder::new(Duration::from_millis(100), []);
    recorder.run_until(&mut network, Instant::from_millis(400)).unwrap();
    let seen = recorder.flows()[0].iter();
    let delivered: Vec<_> =
        seen.map(|one| (one.at.as_nanos() / 1_000_000, one.delivered)).collect();
    assert_eq!(delivered, [(200, 0), (300, 10_000), (400, 10_000)]);
    assert_eq!(recorder.flows()[0][0].sent.bytes, Some(0));
}

#[test]
fn fairness_by_hand() {
    assert_eq!(jain_index([5, 5, 5, 5]), 1.0);
    assert_eq!(jain_index([1, 0, 0, 0]), 0.25);
    // (1 + 2 + 3)² / (3 · 14)
    assert_eq!(jain_index([1, 2, 3]), 36.0 / 42.0);
    assert_eq!(jain_index([0, 0]), 1.0);
    assert_eq!(per_second(1_250_000, Duration::from_secs(2)), 5e6);
    assert_eq!(per_second(1, Duration::ZERO), 0.0);
}

#[test]
fn percentiles_by_hand() {
    let values = [10.0, 20.0, 30.0, 40.0];
    assert_eq!(percentile(&values, 50), Some(20.0));
    assert_eq!(percentile(&values, 95), Some(40.0));
    assert_eq!(percentile::<u64>(&[], 50), None);
}

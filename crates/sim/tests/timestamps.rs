//! What timestamps measure on a path that loses acknowledgements too (RFC 7323 sections 4.1 and 4.3).

use std::sync::Arc;
use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Side};
use transom_stack::{ListenConfig, Stack, StackConfig};
use transom_tcp::Profile;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::time::{Duration, Instant};

fn host(address: &str, profile: Profile) -> Stack {
    let mut config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
    config.profile = Arc::new(profile);
    Stack::new(config, Instant::ZERO).unwrap()
}

/// The largest round-trip time that the sender of a bulk transfer took for one in five minutes, and how many timeouts it had. The path takes
/// 20 ms each way at 100 Mbit/s and loses one packet in five, both ways.
fn largest_sample(words: &str, seed: u64) -> (Duration, u64) {
    let link: LinkConfig = "rate=100Mbit/s, delay=20ms, loss=20%".parse().unwrap();
    let sender = host("10.0.0.1", compose(words).unwrap());
    let receiver = host("10.0.0.2", Profile::classic());
    let mut pair = Pair::new(sender, receiver, [&link, &link], seed, Instant::ZERO);
    let remote = "10.0.0.2:80".parse().unwrap();
    let listener = pair.host(Side::B).listen(remote, ListenConfig::default()).unwrap();
    let id = pair.host(Side::A).connect(Instant::ZERO, None, remote, None).unwrap();
    let mut accepted = None;
    let mut buffer = vec![0; 65_536];
    let mut largest = Duration::ZERO;
    while pair.step(Instant::from_secs(300)) {
        let now = pair.now();
        let _ = pair.host(Side::A).write(id, now, &buffer);
        let info = pair.host(Side::A).connection(id).unwrap().info(now);
        largest = largest.max(info.last_rtt.unwrap_or_default());
        accepted = accepted.or_else(|| pair.host(Side::B).accept(listener));
        if let Some((accepted, _)) = accepted {
            while pair.host(Side::B).read(accepted, now, &mut buffer).is_ok() {}
        }
    }
    let now = pair.now();
    let info = pair.host(Side::A).connection(id).unwrap().info(now);
    (largest, info.counters.timeouts)
}

/// The receiver's answer to what it had got before, and whose acknowledgement was lost, must not make the timeout a part of the next
/// round-trip time. Nothing in this path takes longer than the delay, a delayed acknowledgement (40 ms), what a window of ten segments waits for
/// itself (1.2 ms), and the tick of the clock.
#[test]
fn no_sample_is_longer_than_the_path() {
    let bound = Duration::from_millis(20 + 20 + 40 + 2 + 1);
    for words in ["reno + newreno + no-sack", "reno + sack", "reno + rack-tlp"] {
        for seed in 1..=3 {
            let (largest, timeouts) = largest_sample(words, seed);
            assert!(largest <= bound, "{words}, seed {seed}: {largest:?}");
            assert!(timeouts > 100, "{words}, seed {seed}: only {timeouts} timeouts");
        }
    }
}

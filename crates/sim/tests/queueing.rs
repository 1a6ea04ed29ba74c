//! Links and queues of whole networks against closed forms. Packets are of 1250 bytes, which take a millisecond at 10 Mbit/s.

use transom_sim::Draw;
use transom_sim::link::{Counters, LinkConfig};
use transom_sim::measure::{Lane, QueueDelay, Recorder};
use transom_sim::network::{HostConfig, LinkId, Network, NodeId, Topology};
use transom_sim::traffic::{Application, FlowId, datagram_sink, on_off};
use transom_sim::units::Rate;
use transom_tcp::time::{Duration, Instant};

const PORT: u16 = 9;
const FLOW: FlowId = FlowId(0);
/// With 28 bytes of headers, 1250.
const PAYLOAD: u16 = 1222;
const MILLI: u64 = 1_000_000;

/// A source and a sink with `path` between them, from router to router if it has several links; gives the links on the way there.
fn network(
    seed: u64,
    path: &[&str],
    source: impl FnOnce(std::net::SocketAddrV4) -> Box<dyn Application>,
) -> (Network, Vec<LinkId>) {
    let mut topology = Topology::new(seed);
    let (from, to) = (topology.host(HostConfig::default()), topology.host(HostConfig::default()));
    let mut nodes: Vec<NodeId> = vec![from];
    nodes.extend(path.iter().skip(1).map(|_| topology.router()));
    nodes.push(to);
    let links = nodes.windows(2).zip(path).map(|(ends, link)| {
        let link: LinkConfig = link.parse().unwrap();
        topology.join(ends[0], ends[1], link, LinkConfig::default()).0
    });
    let links = links.collect();
    let remote = std::net::SocketAddrV4::new(topology.address(to).unwrap(), PORT);
    topology.run(to, Instant::ZERO, datagram_sink(FLOW, PORT)).unwrap();
    topology.run(from, Instant::ZERO, source(remote)).unwrap();
    (topology.build().unwrap(), links)
}

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_sec(bits).unwrap()
}

/// Datagrams at a constant rate, without a pause.
fn constant(
    bits: u64,
    stop: Instant,
) -> impl FnOnce(std::net::SocketAddrV4) -> Box<dyn Application> {
    let always = (Draw::Constant(1_000 * MILLI), Draw::Constant(0));
    move |remote| on_off(FLOW, PORT, remote, rate(bits), PAYLOAD, always, stop)
}

/// Datagrams whose distances are exponential: each period of being on is a nanosecond, in which there is one.
fn poisson(per_second: u64) -> impl FnOnce(std::net::SocketAddrV4) -> Box<dyn Application> {
    let periods = (Draw::Constant(1), Draw::Exponential(1_000 * MILLI / per_second));
    let at_once = rate(10_000_000_000_000);
    move |remote| on_off(FLOW, PORT, remote, at_once, PAYLOAD, periods, Instant::FAR_FUTURE)
}

/// Each link adds the packet's transmission and its delay; of ten at once, the last also waits for nine at the slowest link.
#[test]
fn store_and_forward() {
    let path = [
        "rate=100Mbit/s, delay=3ms",
        "rate=10Mbit/s, delay=5ms",
        "rate=20Mbit/s, delay=7ms",
        "delay=1ms",
    ];
    let first = 100_000 + 3 * MILLI + MILLI + 5 * MILLI + MILLI / 2 + 7 * MILLI + MILLI;
    for (count, bits) in [(1, 1), (10, 1_000_000_000)] {
        // A packet every 10 us, until there are so many.
        let stop = Instant::from_nanos(10_000 * count - 5_000);
        let (mut network, links) = network(1, &path, constant(bits, stop));
        network.run_until(Instant::from_secs(1)).unwrap();
        let flow = &network.flows()[0];
        assert_eq!(flow.delivered, count * u64::from(PAYLOAD));
        assert_eq!(flow.started, Some(Instant::from_nanos(first)));
        assert_eq!(flow.finished, Some(Instant::from_nanos(first + (count - 1) * MILLI)));
        // At the first link they come every 10 us and go every 100; at the second they come so and go every millisecond.
        let waits: u64 = (0..count).sum();
        let delay = |link: usize| network.link_counters(links[link]).unwrap().queue_delay;
        assert_eq!(delay(0).as_nanos(), waits * 90_000);
        assert_eq!(delay(1).as_nanos(), waits * 900_000);
        assert_eq!((delay(2), delay(3)), (Duration::ZERO, Duration::ZERO));
    }
}

/// Packets that come to a queue at random, and take equally long, wait ρ/(2(1 − ρ)) times as long as that on average (Pollaczek and
/// Khinchine, for M/D/1), and not at all with a probability of 1 − ρ.
#[test]
fn the_mean_wait_of_m_d_1() {
    for (per_second, band) in [(300, 0.01), (500, 0.015), (800, 0.03), (900, 0.06)] {
        let run = |queue: &str| -> (Counters, QueueDelay) {
            let link = format!("rate=10Mbit/s, queue={queue}");
            let (mut network, links) = network(11, &[&link], poisson(per_second));
            let mut recorder = Recorder::new(Duration::from_secs(100), [links[0]]);
            recorder.run_until(&mut network, Instant::from_secs(1000)).unwrap();
            let (_, samples) = &recorder.links()[0];
            (samples[10].counters, QueueDelay::between(samples, Lane::All).unwrap())
        };
        let (counters, delay) = run("unlimited");
        let load = per_second as f64 / 1000.0;
        let arrivals = counters.offered.packets as f64;
        assert!((arrivals / (load * 1e6) - 1.0).abs() < 0.005, "{arrivals}");
        let mean = delay.mean() / MILLI as f64;
        let expected = load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < band, "{load}: {mean:.4}, {expected:.4} expected");
        // Up to that percentile there is no wait, and above it there is.
        let (below, above) = (100.0 * (1.0 - load) - 0.5, 100.0 * (1.0 - load) + 0.5);
        assert_eq!(delay.percentile(below), Duration::ZERO, "{load}");
        assert!(delay.percentile(above) > Duration::ZERO, "{load}");
        // A discipline that is asked for each packet gives the same.
        if per_second == 500 {
            let (managed, _) = run("drop-head(unlimited)");
            assert_eq!(managed, counters);
        }
    }
}

/// Little's law, L = λW: what waits on average, looked at every tenth of a service time, is what comes in a second times how long it waits.
#[test]
fn littles_law() {
    let (mut network, links) = network(5, &["rate=10Mbit/s, queue=unlimited"], poisson(700));
    let (mut sum, ticks) = (0, 500_000u64);
    for tick in 1..=ticks {
        network.run_until(Instant::from_micros(100 * tick)).unwrap();
        sum += network.sample_link(links[0]).unwrap().waiting.packets;
    }
    let counters = network.link_counters(links[0]).unwrap();
    let length = sum as f64 / ticks as f64;
    let seconds = ticks as f64 / 10_000.0;
    let expected = counters.queue_delay.as_nanos() as f64 / 1e9 / seconds;
    assert!((length / expected - 1.0).abs() < 0.01, "{length:.4}, {expected:.4} expected");
}

/// RED drops at distances that are uniform from 1 to 1/p (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
/// Avoidance", 1993, section VII): a share of 2/(1/p + 1), where p goes from 0 at `min` to `max_p` at `max`, and with "gentle" on to 1 at
/// twice `max`. A source that heeds nothing and sends a little more than the link carries has that share dropped by the queue's
/// length alone, which is therefore known.
#[test]
fn red_holds_its_queue_where_its_equation_says() {
    const MIN: f64 = 50.0;
    const MAX: f64 = 150.0;
    const MAX_P: f64 = 0.02;
    for per_mille in [1005u64, 1012, 1018, 1150] {
        let link =
            "rate=10Mbit/s, queue=red(1000 packets, min=50, max=150, w=0.002, p=0.02, gentle)";
        let source = constant(10_000 * per_mille, Instant::FAR_FUTURE);
        let (mut network, links) = network(3, &[link], source);
        network.run_until(Instant::from_secs(200)).unwrap();
        let before = network.link_counters(links[0]).unwrap();
        network.run_until(Instant::from_secs(700)).unwrap();
        let after = network.link_counters(links[0]).unwrap();
        let packets = after.dequeued - before.dequeued;
        let waited = after.queue_delay.as_nanos() - before.queue_delay.as_nanos();
        // A packet waits for the queue that it finds, a millisecond for each, and for the rest of the one being sent.
        let length = waited as f64 / packets as f64 / MILLI as f64;
        let share = 1.0 - 1000.0 / per_mille as f64;
        let p = share / (2.0 - share);
        let expected = if p <= MAX_P {
            MIN + (MAX - MIN) * p / MAX_P
        } else {
            MAX + MAX * (p - MAX_P) / (1.0 - MAX_P)
        };
        let offered = after.offered.packets - before.offered.packets;
        let dropped = after.dropped().packets - before.dropped().packets;
        assert!((dropped as f64 / offered as f64 - share).abs() < 1e-4, "{dropped} of {offered}");
        assert!(
            (length / expected - 1.0).abs() < 0.03,
            "{per_mille}: {length:.2} packets, {expected:.2} expected"
        );
    }
}

/// A link of Gilbert and Elliott's in a network: the share that gets lost is that of the bad state, p/(p + r), and losses come in bursts of
/// 1/r on average (Gilbert, "Capacity of a Burst-Noise Channel", 1960).
#[test]
fn losses_in_bursts() {
    let link = "rate=10Mbit/s, loss=gilbert(0.5%, 25%)";
    let (mut network, links) = network(2, &[link], constant(8_000_000, Instant::FAR_FUTURE));
    let arrivals = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = arrivals.clone();
    network.tap_arrivals(links[0], move |at, _, _| seen.lock().unwrap().push(at));
    network.run_until(Instant::from_secs(1000)).unwrap();
    let counters = network.link_counters(links[0]).unwrap();
    let share = counters.lost.packets as f64 / counters.offered.packets as f64;
    let expected = 0.005 / 0.255;
    // Of 800,000 packets, with the variance of the count 1.745/0.255 times that of a coin's: 0.04 % is one deviation.
    assert!((share - expected).abs() < 0.0016, "{share}");
    // A gap between two that arrive is a burst: of so many as are missing between them.
    let arrivals = arrivals.lock().unwrap();
    let missing: Vec<u64> = arrivals
        .windows(2)
        .map(|pair| (pair[1].since(pair[0]).as_nanos() + 625_000) / 1_250_000 - 1)
        .filter(|missing| *missing > 0)
        .collect();
    let mean = missing.iter().sum::<u64>() as f64 / missing.len() as f64;
    // Geometric: the deviation of one is √(1 − r)/r = 3.46, and there are about 3,900.
    assert!((mean - 4.0).abs() < 0.23, "{mean} of {}", missing.len());
}

/// The extra delay has the moments of its distribution, at the receiver.
#[test]
fn jitter_has_its_moments() {
    for (jitter, mean, deviation) in [
        // √(4²/12)
        ("uniform(3ms, 7ms)", 5.0, (16.0f64 / 12.0).sqrt()),
        ("normal(10ms, 2ms)", 10.0, 2.0),
        // Of shape 3 and scale 2: 3·2/(3 − 1), and √(3·4/((3 − 1)²·(3 − 2))).
        ("pareto(2ms, 3)", 3.0, 3.0f64.sqrt()),
    ] {
        let link = format!("delay=1ms, jitter={jitter}, jitter-order=free");
        let (mut network, links) =
            network(4, &[&link], constant(100_000, Instant::from_secs(10_000)));
        let delays = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = delays.clone();
        // A packet every 100 ms: longer than any extra delay that is going to be drawn.
        let tap = move |at: Instant, _: &[u8], _: Option<&str>| {
            let delay = at.as_nanos() % (100 * MILLI) - MILLI;
            seen.lock().unwrap().push(delay as f64 / MILLI as f64);
        };
        network.tap_arrivals(links[0], tap);
        network.run_until(Instant::from_secs(10_001)).unwrap();
        let delays = delays.lock().unwrap();
        assert_eq!(delays.len(), 100_000);
        let n = delays.len() as f64;
        let seen_mean = delays.iter().sum::<f64>() / n;
        let squares: f64 = delays.iter().map(|one| (one - seen_mean).powi(2)).sum();
        assert!((seen_mean - mean).abs() < 4.0 * deviation / n.sqrt(), "{jitter}: {seen_mean}");
        // The tail of a Pareto of shape 3 has no fourth moment: its deviation is known least.
        let band = if jitter.starts_with("pareto") { 0.15 } else { 0.015 };
        let seen = (squares / n).sqrt();
        assert!((seen / deviation - 1.0).abs() < band, "{jitter}: {seen}, not {deviation}");
    }
}

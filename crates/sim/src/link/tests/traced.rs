//! Links whose rate follows a trace, by hand.

use super::*;
use crate::link::rate_trace::Opportunities;

/// Disciplines that leave alone what a few packets wait.
const QUEUES: [&str; 5] = [
    "unlimited",
    "drop-head(unlimited)",
    "red(100 packets, min=50, max=90)",
    "codel(unlimited, target=1s, interval=10s)",
    "pie(unlimited, target=1s)",
];

fn traced(lines: impl IntoIterator<Item = u32>, options: &str) -> LinkModel<u64> {
    let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    let trace = RateTrace::named("trace").with(Opportunities::parse(&text).unwrap());
    let config = LinkConfig { rate_trace: Some(trace), ..options.parse().unwrap() };
    config.check().unwrap();
    LinkModel::new(&config, Streams::new(1), 0)
}

fn dues(link: &mut LinkModel<u64>) -> Vec<(u64, Instant)> {
    drain(link).into_iter().map(|one| (one.packet, one.due)).collect()
}

#[test]
fn an_even_trace_is_a_constant_rate() {
    // An opportunity each millisecond, of 1500 bytes: 12 Mbit/s. Packets come one by one, in bursts, and after pauses.
    let schedule = (0..40u64).map(|n| (n / 8 * 11, n));
    for queue in QUEUES {
        let options = format!("delay=7ms, queue={queue}");
        let mut constant = link::<u64>(&format!("rate=12Mbit/s, {options}"));
        let mut even = traced([1], &options);
        for (millis, n) in schedule.clone() {
            for link in [&mut constant, &mut even] {
                link.send(Instant::from_millis(millis), n, 1500);
            }
        }
        let (constant, even) = (dues(&mut constant), dues(&mut even));
        assert_eq!(constant.len(), 40, "{queue}");
        assert_eq!(constant, even, "{queue}");
    }
}

#[test]
fn a_link_on_and_off() {
    // An opportunity in each of ten milliseconds, and after ten without the last: eleven in twenty.
    let lines = || (1..=10).chain([20]);
    for (gap, of_queue, delivered) in [
        // A packet each millisecond, half way: what comes in the ten milliseconds without finds one waiting.
        (1_000, "1 packet", 11),
        // Every other millisecond, half the opportunities are of use to nobody.
        (2_000, "1 packet", 6),
        // Which one waits makes no difference to how many get through.
        (1_000, "drop-head(1 packet)", 11),
    ] {
        let mut link = traced(lines(), &format!("queue={of_queue}"));
        let periods = 50;
        for n in 0..periods * 20_000 / gap {
            link.send(Instant::from_micros(500 + n * gap), n, 1500);
        }
        link.queued(Instant::from_millis(20 * periods));
        let counters = link.counters();
        assert_eq!(counters.opportunities, 11 * periods);
        drain(&mut link);
        assert_eq!(link.counters().delivered.packets, delivered * periods, "{gap} {of_queue}");
    }
}

#[test]
fn a_packet_waits_for_its_opportunity_in_the_queue() {
    for queue in QUEUES {
        let mut link = traced([10, 30], &format!("delay=1ms, queue={queue}"));
        link.measure_delays();
        (0..3).for_each(|n| {
            link.send(Instant::from_millis(4), n, 750);
        });
        assert_eq!(link.queued(Instant::from_millis(9)).packets, 3, "{queue}");
        // Two share the first, the third has to wait for the second.
        assert_eq!(link.queued(Instant::from_millis(10)).packets, 1, "{queue}");
        assert_eq!(link.queued(Instant::from_millis(30)).packets, 0, "{queue}");
        // Half of that is left, but has gone by for what comes at the same time.
        link.send(Instant::from_millis(30), 3, 750);
        assert_eq!(link.queued(Instant::from_millis(39)).packets, 1, "{queue}");
        let dues: Vec<u64> =
            dues(&mut link).iter().map(|(_, due)| due.as_nanos() / 1_000_000).collect();
        assert_eq!(dues, [11, 11, 31, 41], "{queue}");
        let counters = link.counters();
        assert_eq!(counters.dequeued, 4);
        assert_eq!(counters.queue_delay, Duration::from_millis(6 + 6 + 26 + 10), "{queue}");
    }
}

#[test]
fn a_file_that_was_not_read_delivers_nothing() {
    for queue in QUEUES {
        let config: LinkConfig = format!("rate-trace=some.trace, queue={queue}").parse().unwrap();
        assert_eq!(config.check(), Err(LinkConfigError::UnreadTrace("some.trace".into())));
        let mut link: LinkModel<u64> = LinkModel::new(&config, Streams::new(1), 0);
        link.send(Instant::ZERO, 1, 1500);
        assert!(link.deliver(Instant::from_secs(1_000_000)).is_none());
    }
    let error = "rate=1Mbit/s, rate-trace=some.trace".parse::<LinkConfig>().unwrap_err();
    assert_eq!(error.to_string(), "a link has either a `rate` or a `rate-trace`");
}

//! A page with every element of a report, from a simple transfer over the link model. The sender keeps a
//! window, halves it on a loss and grows it by a packet each round trip.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use transom_sim::Streams;
use transom_sim::link::{LinkConfig, LinkModel, QueueEvent};
use transom_tcp::time::{Duration, Instant};

use super::{Chart, Hue, ReportData, Row, Section, Shape, Style};

const PACKET: usize = 1500;
type Points = Vec<(f64, f64)>;

/// The data of a transfer.
#[derive(Default)]
struct Trace {
    sent: Points,
    resent: Points,
    acked: Points,
    window: Points,
    halved: Points,
    threshold: Points,
    flight: Points,
    rtt: Points,
    least: Points,
    smoothed: Points,
    queue: Points,
    drops: Points,
    goodput: Points,
}

/// Sends `count` packets over a link and its lossless way back, acknowledging each.
fn transfer(options: &str, seed: u64, count: u64) -> Trace {
    let mut trace = Trace::default();
    let mut link = LinkModel::new(&options.parse::<LinkConfig>().unwrap(), Streams::new(seed), 0);
    let queue = Arc::new(Mutex::new((Vec::new(), Vec::new())));
    let sink = Arc::clone(&queue);
    link.observe_queue(move |sample| {
        let point = (sample.at.as_secs_f64(), sample.length.packets as f64);
        let (lengths, drops) = &mut *sink.lock().unwrap();
        if sample.event == QueueEvent::Dropped { drops.push(point) } else { lengths.push(point) }
    });

    let kib = |packets: f64| packets * PACKET as f64 / 1024.0;
    let (mut window, mut threshold) = (10.0f64, f64::INFINITY);
    let mut flight: BTreeMap<u64, Instant> = BTreeMap::new(); // By order of sending.
    let mut number: BTreeMap<u64, u64> = BTreeMap::new(); // From order of sending to packet.
    let (mut next, mut order, mut done) = (0u64, 0u64, 0u64);
    let mut again = VecDeque::new();
    let mut acks: VecDeque<(Instant, u64)> = VecDeque::new();
    let (mut now, mut smoothed, mut recovered) = (Instant::ZERO, 0.0f64, 0u64);
    let mut second = (0.0, 0u64);
    while done < count {
        while (flight.len() as f64) < window && (next < count || !again.is_empty()) {
            let lost = again.pop_front();
            let packet = lost.unwrap_or(next);
            let point = (now.as_secs_f64(), kib(packet as f64));
            if lost.is_some() {
                trace.resent.push(point);
            } else {
                trace.sent.push(point);
                next += 1;
            }
            link.send(now, order, PACKET);
            flight.insert(order, now);
            number.insert(order, packet);
            order += 1;
        }
        let events = [link.next_delivery(), acks.front().map(|(at, _)| *at)];
        let Some(then) = events.into_iter().flatten().min() else {
            // Everything in flight was lost: start over, as after a timeout.
            now += Duration::from_millis(200);
            again.extend(flight.keys().map(|order| number[order]));
            flight.clear();
            (threshold, window) = ((window / 2.0).max(2.0), 2.0);
            continue;
        };
        now = then;
        while let Some(delivered) = link.deliver(now) {
            acks.push_back((now + Duration::from_millis(20), delivered.packet));
        }
        while let Some((_, acked)) = acks.pop_front_if(|(at, _)| *at <= now) {
            let t = now.as_secs_f64();
            let Some(sent) = flight.remove(&acked) else { continue };
            done += 1;
            let sample = (now - sent).as_nanos() as f64 / 1e6;
            smoothed = if smoothed == 0.0 { sample } else { smoothed + (sample - smoothed) / 8.0 };
            let least = trace.least.last().map_or(sample, |(_, least)| sample.min(*least));
            trace.least.push((t, least));
            trace.rtt.push((t, sample));
            trace.smoothed.push((t, smoothed));
            window += if window < threshold { 1.0 } else { 1.0 / window };
            let lost: Vec<u64> = flight.range(..acked.saturating_sub(2)).map(|(o, _)| *o).collect();
            for lost in lost {
                flight.remove(&lost);
                again.push_back(number[&lost]);
                if lost >= recovered {
                    threshold = (window / 2.0).max(2.0);
                    (window, recovered) = (threshold, order);
                    trace.halved.push((t, kib(window)));
                }
            }
            trace.acked.push((t, kib(done as f64)));
            trace.window.push((t, kib(window)));
            trace.threshold.push((t, kib(threshold)));
            trace.flight.push((t, kib(flight.len() as f64)));
            if t - second.0 >= 0.1 {
                let bits = (done - second.1) as f64 * PACKET as f64 * 8.0;
                trace.goodput.push((t, bits / (t - second.0) / 1e6));
                second = (t, done);
            }
        }
    }
    (trace.queue, trace.drops) = queue.lock().unwrap().clone();
    trace
}

fn section(title: &str, trace: Trace) -> Section {
    let sequence = Chart::new("Time and sequence", "sequence", "KiB")
        .floating()
        .caption("Each packet sent and each acknowledgement; the distance between the two is the round trip.")
        .series("sent", Style::Line, Hue::Blue, trace.sent)
        .series("acknowledged", Style::Step, Hue::Green, trace.acked)
        .markers("retransmitted", Shape::Cross, Hue::Red, trace.resent);
    let window = Chart::new("Congestion window", "window", "KiB")
        .series("flight", Style::Step, Hue::Grey, trace.flight)
        .series("cwnd", Style::Step, Hue::Blue, trace.window)
        .series("ssthresh", Style::Step, Hue::Orange, trace.threshold)
        .markers("halved", Shape::Ring, Hue::Red, trace.halved);
    let rtt = Chart::new("Round-trip time", "RTT", "ms")
        .series("sample", Style::Dots, Hue::Grey, trace.rtt)
        .series("smoothed", Style::Line, Hue::Blue, trace.smoothed)
        .series("least", Style::Step, Hue::Pink, trace.least);
    let queue = Chart::new("Bottleneck queue", "queue", "packets")
        .series("length", Style::Step, Hue::Blue, trace.queue)
        .markers("dropped", Shape::Triangle, Hue::Red, trace.drops);
    let goodput = Chart::new("Goodput", "rate", "Mb/s").series(
        "every 100 ms",
        Style::Step,
        Hue::Green,
        trace.goodput,
    );
    Section {
        title: title.into(),
        charts: vec![sequence, window, rtt, queue, goodput],
        ..Section::default()
    }
}

/// The sample's contents.
pub(super) fn sample() -> ReportData {
    let slow = transfer("rate=10Mbit/s, delay=20ms, queue=50 packets, loss=0.02%", 1, 20_000);
    let fast = transfer("rate=50Mbit/s, delay=5ms, queue=64KiB", 2, 100_000);
    ReportData {
        title: "Sample report: a window over two links".into(),
        lead:
            "Made by a test, to look at: a simple sender over the link models, not Transom's TCP."
                .into(),
        columns: vec!["slow link".into(), "fast link".into()],
        summary: vec![
            Row::new(
                "Link",
                ["10 Mbit/s, 20 ms, 50 packets, 0.02 % loss", "50 Mbit/s, 5 ms, 64 KiB"],
            ),
            Row::new("Sent", ["28.6 MiB", "143 MiB"]),
            Row::new(
                "Retransmitted packets",
                [slow.resent.len(), fast.resent.len()].map(|n| n.to_string()),
            ),
            Row::new("Copies are equal", ["a sample has no file"]).verdict(true),
            Row::new("Something that went wrong", ["0 of 3"]).verdict(false),
        ],
        sections: vec![section("Over the slow link", slow), section("Over the fast link", fast)],
        notes: vec![
            "A note may hold <markup>, \"quotes\" & ampersands: they are shown, not obeyed.".into(),
        ],
        command: "cargo test -p transom-report sample_page -- --ignored".into(),
        ..ReportData::default()
    }
}

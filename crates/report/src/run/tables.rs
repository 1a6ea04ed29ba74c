//! The numbers of a run, after its warm-up.

use transom_lab::scenario::Resolved;
use transom_sim::measure::{
    Lane, LinkSample, QueueDelay, SentSample, WindowSample, jain_index, per_second, percentile,
};
use transom_tcp::time::Instant;

use super::grouped;
use super::seen::{Seen, SeenFlow, SeenLink, millis};
use crate::drawing::parts;
use crate::{Cell, Hue, Table, short};

/// As many lines as a table has; the rest is in the files beside the page.
const MOST: usize = 40;

/// The samples that count: after the warm-up.
fn counted<S>(samples: &[S], from: Instant, at: impl Fn(&S) -> Instant) -> &[S] {
    samples.get(samples.partition_point(|sample| at(sample) < from)..).unwrap_or_default()
}

fn cell(number: Option<f64>) -> Cell {
    number.map_or("–".into(), |number| short(number).into())
}

fn count_cell(count: Option<u64>) -> Cell {
    count.map_or("–".into(), |count| grouped(count).into())
}

/// The flows, one by one and together; nothing before there is anything to count.
pub(super) fn flows(scenario: &Resolved, seen: &Seen<'_>) -> Option<Table> {
    let from = Instant::ZERO + scenario.scenario.warm_up.0;
    let rows: Vec<FlowNumbers> =
        seen.flows.iter().filter_map(|flow| FlowNumbers::of(flow, from)).collect();
    if rows.is_empty() {
        return None;
    }
    let complete = rows.iter().any(|row| !row.took.is_empty());
    let mut head = vec!["flow", "from", "to", "traffic", "goodput (Mbit/s)#", "efficiency (%)#"];
    head.extend(["RTT (ms)#", "sent again#", "timeouts#"]);
    if complete {
        head.extend(["complete#", "p50 (ms)#", "p95 (ms)#", "p99 (ms)#"]);
    }
    let mut table = Table::new("Flows in numbers", &head);
    table.caption = "Efficiency is what was delivered of all bytes sent, headers included; the RTT is the mean of the smoothed one".into();
    table.caption +=
        if complete { "; completion times are percentiles by the nearest rank." } else { "." };
    let hues = Hue::ALL.into_iter().map(Some).chain(std::iter::repeat(None));
    let percentiles = |took: &[f64]| [50, 95, 99].map(|percent| cell(percentile(took, percent)));
    for ((row, flow), hue) in rows.iter().zip(&scenario.flows).zip(hues).take(MOST) {
        let mut cells: Vec<Cell> = vec![
            Cell::from(row.name.clone()).hue(hue),
            flow.from.as_str().into(),
            flow.to.as_str().into(),
            flow.kind().into(),
            cell(Some(row.goodput / 1e6)),
            cell(row.efficiency),
            cell(row.rtt),
            count_cell(row.again),
            count_cell(row.timeouts),
        ];
        if complete {
            cells.push(grouped(row.took.len() as u64).into());
            cells.extend(percentiles(&row.took));
        }
        table.rows.push(cells);
    }
    if rows.len() > MOST {
        let hidden = rows.len() - MOST;
        table.caption += &format!(" The other {hidden} flows are in flows.csv, and in the sum.");
    }
    if rows.len() > 1 {
        let sum = |count: fn(&FlowNumbers) -> Option<u64>| {
            let counts: Vec<u64> = rows.iter().filter_map(count).collect();
            if counts.is_empty() { "–".into() } else { grouped(counts.iter().sum()) }
        };
        let mut cells: Vec<Cell> = vec![
            format!("all {}", rows.len()).into(),
            Cell::default(),
            Cell::default(),
            Cell::default(),
            cell(Some(rows.iter().map(|row| row.goodput).sum::<f64>() / 1e6)),
            Cell::default(),
            Cell::default(),
            sum(|row| row.again).into(),
            sum(|row| row.timeouts).into(),
        ];
        if complete {
            let mut took: Vec<f64> = rows.iter().flat_map(|row| row.took.clone()).collect();
            took.sort_by(f64::total_cmp);
            cells.push(grouped(took.len() as u64).into());
            cells.extend(percentiles(&took));
        }
        table.rows.push(cells);
        let jain = jain_index(rows.iter().map(|row| row.goodput as u64));
        table.caption += &format!(" Jain's fairness index of the goodputs is {jain:.4}.");
    }
    Some(table)
}

/// A flow's numbers in a table.
struct FlowNumbers {
    name: String,
    /// Bits per second.
    goodput: f64,
    /// Bytes delivered of bytes sent, headers included, in per cent.
    efficiency: Option<f64>,
    rtt: Option<f64>,
    again: Option<u64>,
    timeouts: Option<u64>,
    /// Completion times in milliseconds, in order.
    took: Vec<f64>,
}

impl FlowNumbers {
    fn of(flow: &SeenFlow<'_>, from: Instant) -> Option<FlowNumbers> {
        let samples = counted(flow.samples, from, |sample| sample.at);
        let (first, last) = (samples.first()?, samples.last()?);
        let rtts: Vec<f64> =
            samples.iter().filter_map(|sample| sample.sender?.srtt).map(millis).collect();
        let grown = |count: fn(&SentSample) -> Option<u64>| {
            Some(count(&last.sent)?.saturating_sub(count(&first.sent)?))
        };
        let delivered = last.delivered - first.delivered;
        let sent = grown(|sent| sent.bytes).filter(|bytes| *bytes > 0);
        let mut took: Vec<f64> = flow
            .completions
            .iter()
            .filter(|(at, _)| *at >= from)
            .map(|(_, took)| millis(*took))
            .collect();
        took.sort_by(f64::total_cmp);
        Some(FlowNumbers {
            name: flow.name.to_string(),
            goodput: per_second(delivered, last.at.since(first.at)),
            efficiency: sent.map(|sent| delivered as f64 * 100.0 / sent as f64),
            rtt: mean(&rtts),
            again: grown(|sent| sent.retransmissions),
            timeouts: grown(|sent| sent.timeouts),
            took,
        })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The ways of links at which anything waited or was dropped, or windows are controlled.
pub(super) fn links(scenario: &Resolved, seen: &Seen<'_>) -> Option<Table> {
    let from = Instant::ZERO + scenario.scenario.warm_up.0;
    let of_interest: Vec<&SeenLink<'_>> =
        seen.links.iter().filter(|link| link.is_of_interest()).collect();
    let mut head = vec![
        "link",
        "way",
        "utilisation (%)#",
        "queue (packets)#",
        "longest#",
        "delay (ms)#",
        "p99#",
        "dropped#",
        "lost#",
        "marked#",
    ];
    let controlled =
        of_interest.iter().any(|link| link.samples.iter().any(|one| one.window.is_some()));
    if controlled {
        head.extend(["target (KiB)#", "rewritten#"]);
    }
    let dual =
        of_interest.iter().any(|link| link.samples.iter().any(|one| one.counters.low_dequeued > 0));
    if dual {
        head.extend(["low-latency packets#", "their p99 (ms)#", "p99 of the others (ms)#"]);
    }
    head.push("");
    let mut table = Table::new("Links in numbers", &head);
    table.caption = "Queue and delay are means: of the packets that wait, and of how long each was in the queue.".into();
    if controlled {
        table.caption += " So is the target of window control; rewritten are windows of acknowledgements, and their share of all.";
    }
    if dual {
        table.caption +=
            " Of a dual queue, the packets of each of its two queues are shown by themselves, too.";
    }
    let hues = Hue::ALL.into_iter().map(Some).chain(std::iter::repeat(None));
    for (link, hue) in of_interest.iter().zip(hues).take(MOST) {
        let Some(config) = scenario.links.iter().find(|one| one.name == *link.name) else {
            continue;
        };
        let samples = counted(link.samples, from, |sample| sample.at);
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { continue };
        let (start, end, way) = if link.back {
            (&config.to, &config.from, &config.back)
        } else {
            (&config.from, &config.to, &config.there)
        };
        let grown = |count: fn(&LinkSample) -> u64| count(last) - count(first);
        let dropped =
            grown(|one| one.counters.queue_full.packets + one.counters.queue_dropped.packets);
        let offered = grown(|one| one.counters.offered.packets);
        let delivered = grown(|one| one.counters.delivered.bytes);
        let utilisation = link.rate.map(|rate| {
            per_second(delivered, last.at.since(first.at)) * 100.0 / rate.bits_per_sec() as f64
        });
        let waiting: Vec<f64> = samples.iter().map(|one| one.waiting.packets as f64).collect();
        let delay = QueueDelay::between(samples, Lane::All);
        let delay = |value: fn(&QueueDelay) -> f64| cell(delay.as_ref().map(value));
        let share = (offered > 0).then(|| dropped as f64 * 100.0 / offered as f64);
        let mut cells = vec![
            Cell::from(link.name.to_string()).hue(hue),
            format!("{start} → {end}").into(),
            cell(utilisation),
            cell(mean(&waiting)),
            grouped(last.counters.queue_peak.packets).into(),
            delay(|delay| delay.mean() / 1e6),
            delay(|delay| millis(delay.percentile(99.0))),
            match share {
                Some(share) if dropped > 0 => format!("{} ({share:.2} %)", grouped(dropped)).into(),
                _ => grouped(dropped).into(),
            },
            grouped(grown(|one| one.counters.lost.packets)).into(),
            grouped(grown(|one| one.counters.marked)).into(),
        ];
        if controlled {
            cells.extend(window_control(samples));
        }
        if dual {
            cells.push(grouped(grown(|one| one.counters.low_dequeued)).into());
            for lane in [Lane::LowLatency, Lane::Classic] {
                let delay = QueueDelay::between(samples, lane);
                cells.push(cell(delay.map(|delay| millis(delay.percentile(99.0)))));
            }
        }
        cells.push(parts(way).join(", ").into());
        table.rows.push(cells);
    }
    let idle = seen.links.len() - of_interest.len();
    if idle > 0 {
        let what = if idle == 1 { "way of a link" } else { "ways of links" };
        table.caption += &format!(" At {idle} more {what} nothing waited and nothing was dropped.");
    }
    if of_interest.len() > MOST {
        let hidden = of_interest.len() - MOST;
        table.caption += &format!(" The other {hidden} are in links.csv.");
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The mean of the target, in KiB, and how many windows were rewritten, with their share of the acknowledgements.
fn window_control(samples: &[LinkSample]) -> [Cell; 2] {
    let windows: Vec<WindowSample> = samples.iter().filter_map(|one| one.window).collect();
    let targets = windows.iter().filter_map(|one| Some(one.target? as f64 / 1024.0));
    let rewritten = windows.first().zip(windows.last()).map(|(first, last)| {
        let (rewritten, acks) = (last.rewritten - first.rewritten, last.acks - first.acks);
        match rewritten {
            0 => "0".into(),
            _ => {
                let share = rewritten as f64 * 100.0 / acks as f64;
                format!("{} ({share:.2} %)", grouped(rewritten)).into()
            }
        }
    });
    [cell(mean(&targets.collect::<Vec<_>>())), rewritten.unwrap_or("–".into())]
}

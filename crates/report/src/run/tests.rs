//! The page of a small run, against what its observations say.

use std::path::Path;

use transom_lab::run::{RunOptions, judge, simulate};
use transom_lab::scenario::{FlowSeries, LinkSeries, Scenario, Series};

use super::*;
use crate::{Chart, Style};

const SCENARIO: &str = r#"
[scenario]
name = "test"
title = "A test"
description = "Two flows."
duration = "20s"
warm-up = "5s"

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = "20 packets" }

[[flows]]
name = "bulk"
from = "sender1"
to = "receiver1"
kind = "bulk"
[[flows]]
name = "asks"
from = "sender2"
to = "receiver2"
kind = "request-response"
response = "20kB"
think-time = "100ms"

[[expect]]
measure = "goodput"
flow = "bulk"
min = "1Mbit/s"
[[expect]]
measure = "timeouts"
flow = "bulk"
max = 0
[[expect]]
measure = "goodput"
flow = "bulk"
max = "2Mbit/s"
why = "it is meant to fail"
"#;

fn options() -> RunOptions<'static> {
    RunOptions::new(Path::new(""))
}

fn resolved() -> Resolved {
    let scenario =
        Scenario::parse("test.toml", SCENARIO).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.sweep().next().unwrap().resolved
}

fn page<'a>(scenario: &'a Resolved, settings: &'a [Setting]) -> Page<'a> {
    Page::new(RunInfo {
        scenario,
        seed: 3,
        point: (2, 6),
        settings,
        command: "transom lab run x".into(),
        version: "1",
    })
}

fn chart<'a>(data: &'a ReportData, title: &str) -> &'a Chart {
    let mut charts = data.sections.iter().flat_map(|section| &section.charts);
    charts.find(|chart| chart.title == title).unwrap_or_else(|| panic!("no chart {title}"))
}

fn table<'a>(data: &'a ReportData, title: &str) -> &'a Table {
    let mut tables = data.blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        Block::Drawing(_) => None,
    });
    tables.find(|table| table.title == title).unwrap_or_else(|| panic!("no table {title}"))
}

#[test]
fn a_page_has_what_was_seen() {
    let scenario = resolved();
    let seen = simulate(&scenario, 3, options(), |_, _| true).unwrap().unwrap();
    let path = "topology.bottleneck.queue".into();
    let settings = [Setting { path, value: "20 packets".into() }];
    let data = page(&scenario, &settings).of_run(&seen, &judge(&scenario, &seen));
    assert_eq!(data.title, "A test");
    assert!(data.lead.starts_with(
        "Two flows. Point 2 of 6: topology.bottleneck.queue = 20 packets. Seed 3, 20 s, "
    ));
    assert_eq!(
        data.verdict,
        Some(Verdict { passed: false, text: "1 of 3 bands do not hold.".into() })
    );
    // The failed one first, with its reason.
    let expected = table(&data, "Expected");
    let cells =
        |row: usize| expected.rows[row].iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>();
    assert_eq!(
        (cells(0)[0], cells(0)[2], cells(0)[4]),
        ("goodput of bulk", "at most 2 Mbit/s", "it is meant to fail")
    );
    assert_eq!(expected.rows[0][3].verdict, Some(false));
    assert_eq!(cells(2)[2], "at most 0");
    // The flows' table agrees with the band on the same quantity.
    let flows = table(&data, "Flows in numbers");
    let goodput: f64 = flows.rows[0][4].text.parse().unwrap();
    let judged = judge(&scenario, &seen)[0].values[0] / 1e6;
    assert!((goodput - judged).abs() < 0.001 * judged, "{goodput} and {judged}");
    assert_eq!(flows.rows[0][0].hue, Some(crate::Hue::Blue));
    assert_eq!(flows.rows[2][0].text, "all 2");
    let done = seen.flows[1].completions.iter().filter(|(at, _)| at.as_secs_f64() >= 5.0).count();
    assert_eq!(flows.rows[1][9].text, done.to_string());
    for title in [
        "Goodput",
        "Throughput",
        "Congestion window",
        "Bytes in flight",
        "Round-trip time",
        "Retransmissions",
        "Completion times",
        "Utilisation",
        "Queue length",
        "Queueing delay",
        "Packets dropped by queues",
    ] {
        assert!(!chart(&data, title).is_empty(), "{title}");
    }
    // Nothing is shown of what did not happen.
    let titles = || {
        data.sections.iter().flat_map(|section| &section.charts).map(|chart| chart.title.as_str())
    };
    assert!(
        !titles().any(|title| title == "Packets marked" || title == "Packets lost on the wire")
    );
    let queue = &chart(&data, "Queue length").series[0];
    let highest = queue.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    assert!(queue.name == "bottleneck" && (15.0..=20.0).contains(&highest), "{highest}");
    // 20 packets of 1500 bytes at 10 Mbit/s, and the one in front of them.
    let delay = &chart(&data, "Queueing delay").series[1];
    let longest = delay.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    assert!((20.0..=25.3).contains(&longest), "{longest}");
    let dashed = |style: &Style| *style == Style::Dashed;
    assert!(chart(&data, "Congestion window").series.iter().any(|one| dashed(&one.style)));
}

#[test]
fn the_drawings_can_be_chosen() {
    let mut scenario = resolved();
    let seen = simulate(&scenario, 3, options(), |_, _| true).unwrap().unwrap();
    let mut titles = |flows: &[FlowSeries], links: &[LinkSeries]| {
        (scenario.measure.flows, scenario.measure.links) = (flows.to_vec(), links.to_vec());
        let data = page(&scenario, &[]).of_run(&seen, &[]);
        let charts = data.sections.iter().flat_map(|section| &section.charts);
        charts.map(|chart| (chart.title.clone(), chart.series.len())).collect::<Vec<_>>()
    };
    let named = |title: &str, curves: usize| (title.to_owned(), curves);
    // There is always a chart of what was completed, where something was.
    let completed = named("Completion times", 1);
    let both = titles(&[FlowSeries::Rtt, FlowSeries::Cwnd], &[LinkSeries::QueueLength]);
    let expected = [
        named("Congestion window", 2),
        named("Round-trip time", 2),
        completed.clone(),
        named("Queue length", 2),
    ];
    assert_eq!(both, expected);
    let one = titles(&[FlowSeries::Ssthresh], &[]);
    assert_eq!(one[0].0, "Slow-start threshold");
    assert_eq!(titles(&[], &[]), [completed]);
    let flows = [
        FlowSeries::Goodput,
        FlowSeries::Throughput,
        FlowSeries::Cwnd,
        FlowSeries::Ssthresh,
        FlowSeries::Rtt,
        FlowSeries::Flight,
        FlowSeries::Retransmissions,
        FlowSeries::Timeouts,
    ];
    let links = [
        LinkSeries::Throughput,
        LinkSeries::QueueLength,
        LinkSeries::QueueDelay,
        LinkSeries::Drops,
        LinkSeries::Marks,
        LinkSeries::WindowTarget,
        LinkSeries::WindowsRewritten,
    ];
    assert_eq!(titles(&flows, &links), titles(&Series::default().flows, &Series::default().links));
}

#[test]
fn window_control_has_charts_and_columns() {
    let control = "there = { window = \"target-window(upper=15 packets, lower=5 packets, rule=section-3.2)\" }";
    let text = SCENARIO.replace("\"20 packets\" }", &format!("\"20 packets\", {control} }}"));
    let scenario = Scenario::parse("test.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let scenario = scenario.sweep().next().unwrap().resolved;
    let seen = simulate(&scenario, 3, options(), |_, _| true).unwrap().unwrap();
    let data = page(&scenario, &[]).of_run(&seen, &[]);
    let target = &chart(&data, "Window target").series;
    assert_eq!((target.len(), target[0].name.as_str()), (1, "bottleneck"));
    // It begins with 64 KiB.
    assert_eq!(target[0].points[0], (0.0, 64.0));
    let [rewritten, all] = &chart(&data, "Windows rewritten").series[..] else { panic!() };
    assert_eq!((all.name.as_str(), all.style), ("bottleneck seen", Style::Dashed));
    let [(_, rewritten), (_, all)] = [rewritten, all].map(|one| *one.points.last().unwrap());
    assert!(0.0 < rewritten && rewritten <= all, "{rewritten} of {all}");
    let numbers = table(&data, "Links in numbers");
    let place = numbers.head.iter().position(|head| head.text.starts_with("rewritten")).unwrap();
    assert!(numbers.rows[0][place].text.ends_with(" %)"), "{:?}", numbers.rows[0][place].text);
    // The way back has no control.
    assert_eq!(numbers.rows[1][place].text, "–");
    let one = Series { links: vec![LinkSeries::WindowTarget], flows: vec![], ..scenario.measure };
    let data = page(&Resolved { measure: one, ..scenario }, &[]).of_run(&seen, &[]);
    let titles: Vec<&str> = data.sections[1].charts.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(titles, ["Window target"]);
}

#[test]
fn a_run_in_progress_has_the_same_page() {
    let scenario = resolved();
    let mut last = None;
    let seen = simulate(&scenario, 3, options(), |_, recorder| {
        last = Some(page(&scenario, &[]).partial(recorder));
        true
    });
    let after = page(&scenario, &[]).of_run(&seen.unwrap().unwrap(), &[]);
    let last = last.unwrap();
    let curves = |data: &ReportData| {
        let charts = data.sections.iter().flat_map(|section| &section.charts);
        let shown = charts.filter(|chart| chart.title != "Completion times");
        shown.map(|chart| format!("{chart:?}")).collect::<Vec<_>>()
    };
    assert_eq!(curves(&last), curves(&after));
    assert_eq!(last.command, after.command);
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let scenario = resolved();
    let empty =
        Observations { flows: vec![], links: vec![], packets: 0, events: None, lost: vec![] };
    let data = page(&scenario, &[]).of_run(&empty, &[]);
    assert!(data.sections.is_empty() && data.verdict.is_none());
    assert!(crate::render(&data).contains("<svg"));
}

#[test]
fn many_flows_have_a_sum_and_few_curves() {
    let text = SCENARIO
        .replace("pairs = 2", "pairs = 60")
        .replace("\"sender1\"", "\"sender\"")
        .replace("\"receiver1\"", "\"receiver\"");
    let scenario = Scenario::parse("test.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let scenario = scenario.sweep().next().unwrap().resolved;
    let seen = simulate(&scenario, 1, options(), |_, _| true).unwrap().unwrap();
    let data = page(&scenario, &[]).of_run(&seen, &[]);
    let goodput = chart(&data, "Goodput");
    let names: Vec<&str> = goodput.series.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["bulk1", "bulk2", "bulk3", "bulk4", "bulk5", "bulk6", "all flows"]);
    assert!(goodput.caption.ends_with("The curves are those of the first 6 of 61 flows."));
    // The area below the sum is what all of them have got, and there is more of it than of the first six.
    let all = &goodput.series[6].points;
    let starts = std::iter::once(0.0).chain(all.iter().map(|(at, _)| *at));
    let area: f64 = all.iter().zip(starts).map(|((at, rate), before)| rate * (at - before)).sum();
    let delivered: u64 = seen.flows.iter().map(|flow| flow.samples.last().unwrap().delivered).sum();
    let expected = delivered as f64 * 8.0 / 1e6;
    assert!((area - expected).abs() < 1e-6 * expected, "{area} and {expected}");
    let flows = table(&data, "Flows in numbers");
    assert_eq!(flows.rows.len(), 41);
    assert_eq!(flows.rows[40][0].text, "all 61");
}

#[test]
fn numbers_are_grouped() {
    for (number, text) in
        [(0, "0"), (999, "999"), (1000, "1\u{a0}000"), (1_234_567, "1\u{a0}234\u{a0}567")]
    {
        assert_eq!(grouped(number), text);
    }
}

//! The page of a sweep, from judgements made by hand.

use transom_lab::scenario::{Resolved, Scenario, Setting};

use super::*;
use crate::{HorizontalAxis, Style};

fn name(text: &str) -> Name {
    Name::try_from(text.to_owned()).unwrap()
}

/// Bands of a scenario: goodput of at least 5 Mbit/s, and no timeouts of either flow.
fn bands() -> Vec<transom_lab::scenario::Band> {
    let text = r#"
        [scenario]
        name = "test"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        pairs = 2
        bottleneck = { rate = "10Mbit/s" }
        [[flows]]
        name = "bulk"
        from = "sender"
        to = "receiver"
        kind = "bulk"
        [[expect]]
        measure = "goodput"
        flow = "bulk"
        statistic = "sum"
        min = "5Mbit/s"
        why = "it should"
        [[expect]]
        measure = "timeouts"
        flow = "bulk"
        max = 0
    "#;
    resolved(text).expect
}

/// The only point of a scenario.
fn resolved(text: &str) -> Resolved {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.sweep().next().unwrap().resolved
}

/// A run whose flows have this goodput together.
fn run(point: usize, seed: u64, megabits: f64) -> RunOfSweep {
    let [goodput, timeouts] = &bands()[..] else { panic!() };
    let judgement = |band: &transom_lab::scenario::Band, values: Vec<f64>, passed| Judgement {
        band: band.clone(),
        values,
        passed,
    };
    let passed = megabits >= 5.0;
    let judgements = vec![
        judgement(goodput, vec![megabits * 1e6], passed),
        judgement(timeouts, vec![0.0, 0.0], true),
    ];
    let page = format!("{point}-{seed}/report.html");
    let profiles = BTreeMap::new();
    RunOfSweep { point, seed, page, judgements, passed: Some(passed), profiles }
}

fn points(path: &str, values: &[&str]) -> Vec<Point> {
    let setting = |value: &&str| Setting { path: path.into(), value: (*value).into() };
    let point = |(number, value)| Point { point: number + 1, settings: vec![setting(value)] };
    values.iter().enumerate().map(point).collect()
}

fn overview(points: Vec<Point>, runs: Vec<RunOfSweep>) -> Overview {
    Overview {
        title: "Sweep".into(),
        description: String::new(),
        planned: points.len() * 3,
        part: None,
        points,
        seeds: vec![1, 2, 3],
        runs,
        command: "transom lab run test.toml".into(),
        version: "1".into(),
        over: None,
    }
}

fn tables(data: &ReportData) -> Vec<&Table> {
    let blocks = data.blocks.iter().chain(&data.after);
    blocks
        .filter_map(|block| match block {
            Block::Table(table) => Some(table),
            Block::Drawing(_) => None,
        })
        .collect()
}

fn texts(row: &[Cell]) -> Vec<&str> {
    row.iter().map(|cell| cell.text.as_str()).collect()
}

#[test]
fn points_have_means_and_how_sure_they_are() {
    let runs = vec![
        run(1, 1, 6.0),
        run(1, 2, 8.0),
        run(1, 3, 7.0),
        run(2, 1, 9.0),
        run(2, 2, 4.0),
        run(2, 3, 9.5),
    ];
    let data = overview(points("link.delay", &["10ms", "20ms"]), runs).data();
    assert_eq!(data.verdict.as_ref().unwrap().text, "Bands fail in 1 of 6 runs.");
    let tables = tables(&data);
    let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "Failed",
            "goodput (sum) of bulk1, bulk2 (Mbit/s)",
            "timeouts of bulk1",
            "timeouts of bulk2",
            "Runs"
        ]
    );
    // Failed runs come first, with links to their pages.
    assert_eq!(
        texts(&tables[0].rows[0]),
        [
            "point 2, seed 2",
            "delay = 20ms",
            "goodput (sum) of bulk1, bulk2",
            "4.000 Mbit/s",
            "at least 5 Mbit/s",
            "it should"
        ]
    );
    assert_eq!(tables[0].rows[0][0].link.as_deref(), Some("2-2/report.html"));
    let verdicts: Vec<Option<bool>> = tables[4].rows[1].iter().map(|cell| cell.verdict).collect();
    assert_eq!(verdicts, [None, None, Some(true), Some(false), Some(true)]);
    // Mean 7, s = 1, t(0.975, 2) = 4.3027: 4.3027/√3 = 2.484.
    let row = &tables[1].rows[0];
    assert_eq!(texts(row), ["1", "10ms", "3", "7", "2.48", "6", "7", "8", "at least 5 Mbit/s", ""]);
    assert_eq!(row[9].verdict, Some(true));
    assert_eq!(tables[1].rows[1][9].text, "1 of 3");
    let section = &data.sections[0];
    assert_eq!(
        section.across,
        HorizontalAxis::Number { label: "link.delay (ms)".into(), logarithmic: false }
    );
    let chart = &section.charts[0];
    assert_eq!((chart.label.as_str(), chart.unit.as_str()), ("goodput (sum)", "Mbit/s"));
    // Charts come before the tables of numbers.
    let page = crate::render(&data);
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("<h2>Over delay</h2>") < place("<h2>timeouts of bulk1</h2>"));
    let series = &section.charts[0].series[0];
    assert_eq!(series.points, [(10.0, 7.0), (20.0, 7.5)]);
    assert!((series.spread[0].0 - (7.0 - 2.4842)).abs() < 1e-3, "{:?}", series.spread[0]);
}

#[test]
fn names_are_an_axis_too() {
    let runs = vec![run(1, 1, 6.0), run(2, 1, 8.0)];
    let data = overview(points("queue", &["200 packets", "codel"]), runs).data();
    let names = vec!["200 packets".into(), "codel".into()];
    assert_eq!(data.sections[0].across, HorizontalAxis::Names { label: "queue".into(), names });
    assert_eq!(data.sections[0].charts[0].series[0].points, [(0.0, 6.0), (1.0, 8.0)]);
    assert!(data.verdict.unwrap().text.ends_with("4 are missing or waiting."));
}

#[test]
fn the_other_swept_value_has_a_curve_for_each() {
    let mut all = Vec::new();
    for delay in ["1ms", "10ms", "100ms"] {
        for queue in ["codel", "pie"] {
            let setting =
                |path: &str, value: &str| Setting { path: path.into(), value: value.into() };
            let settings = vec![setting("queue", queue), setting("delay", delay)];
            all.push(Point { point: all.len() + 1, settings });
        }
    }
    let runs = (1..=6).map(|point| run(point, 1, point as f64)).collect();
    let data = overview(all, runs).data();
    let section = &data.sections[0];
    assert_eq!(
        section.across,
        HorizontalAxis::Number { label: "delay (ms)".into(), logarithmic: true }
    );
    let curves: Vec<(&str, &[(f64, f64)])> = section.charts[0]
        .series
        .iter()
        .map(|series| (series.name.as_str(), series.points.as_slice()))
        .collect();
    assert_eq!(
        curves,
        [
            ("codel", &[(1.0, 1.0), (10.0, 3.0), (100.0, 5.0)][..]),
            ("pie", &[(1.0, 2.0), (10.0, 4.0), (100.0, 6.0)]),
        ]
    );
}

#[test]
fn more_curves_than_colours_are_several_charts() {
    let mut all = Vec::new();
    for size in 0..8 {
        for delay in ["1ms", "2ms", "3ms", "4ms", "5ms", "6ms", "7ms", "8ms", "9ms"] {
            let setting = |path: &str, value: String| Setting { path: path.into(), value };
            let settings =
                vec![setting("delay", delay.into()), setting("size", format!("{size}kB"))];
            all.push(Point { point: all.len() + 1, settings });
        }
    }
    let runs = (1..=72).map(|point| run(point, 1, 6.0)).collect();
    let data = overview(all, runs).data();
    let goodput: Vec<usize> = data.sections[0]
        .charts
        .iter()
        .filter(|chart| chart.title.starts_with("goodput"))
        .map(|chart| chart.series.len())
        .collect();
    assert_eq!(goodput, [6, 2]);
}

#[test]
fn without_a_sweep_the_seeds_are_the_axis() {
    let points = vec![Point { point: 1, settings: Vec::new() }];
    let data = overview(points, vec![run(1, 1, 6.0), run(1, 2, 8.0), run(1, 3, 7.0)]).data();
    assert_eq!(data.verdict.as_ref().unwrap().text, "All bands hold in all 3 runs.");
    let chart = &data.sections[0].charts[0];
    assert_eq!(chart.series[0].style, Style::Dots);
    assert_eq!(chart.series[0].points, [(1.0, 6.0), (2.0, 8.0), (3.0, 7.0)]);
}

#[test]
fn nothing_at_all_is_a_page() {
    let data = overview(Vec::new(), Vec::new()).data();
    assert!(data.sections.is_empty() && data.verdict.is_none());
    assert!(crate::render(&data).contains("<h2>Runs</h2>"));
}

fn two_settings(delays: &[&str], rates: &[&str]) -> Vec<Point> {
    let mut all = Vec::new();
    for delay in delays {
        for rate in rates {
            let setting =
                |path: &str, value: &str| Setting { path: path.into(), value: value.into() };
            let settings = vec![setting("delay", delay), setting("rate", rate)];
            all.push(Point { point: all.len() + 1, settings });
        }
    }
    all
}

fn maps(data: &ReportData) -> Vec<&crate::Drawing> {
    let drawing = data.blocks.iter().filter_map(|block| match block {
        Block::Drawing(drawing) => Some(drawing),
        Block::Table(_) => None,
    });
    drawing.collect()
}

#[test]
fn two_swept_values_are_a_map_whose_fields_lead_to_runs() {
    let points = two_settings(&["1ms", "5ms", "9ms"], &["1Mbit/s", "2Mbit/s", "3Mbit/s"]);
    let runs = (1..=9).map(|point| run(point, 1, point as f64)).collect();
    let data = overview(points, runs).data();
    let maps = maps(&data);
    assert_eq!(maps.len(), 3, "one for each measure");
    let map = maps[0];
    assert_eq!(map.title, "goodput (sum) of bulk1, bulk2 over delay (ms) and rate (Mbit/s)");
    assert!(map.alternative.ends_with("from 1 to 9 (Mbit/s)."), "{}", map.alternative);
    let svg = map.picture.to_string();
    // Point 1 is at the lower left and palest, point 9 at the upper right and darkest.
    let place = |text: &str| {
        let at = svg.find(text).unwrap_or_else(|| panic!("{text}"));
        let rest = &svg[at..];
        let number = |key: &str| -> f64 {
            let from = rest.find(key).unwrap() + key.len();
            rest[from..].split('"').next().unwrap().parse().unwrap()
        };
        (number(" x=\""), number(" y=\""), number("fill-opacity=\""))
    };
    let (first, last) = (place("href=\"1-1/report.html\""), place("href=\"9-1/report.html\""));
    assert!(first.0 < last.0 && first.1 > last.1, "{first:?} {last:?}");
    assert_eq!((first.2, last.2), (0.06, 0.62));
    // The names of the axes, with their units; the vertical one is no longer than there is room for.
    assert!(svg.contains(">delay (ms)</text>") && svg.contains(">rate (Mbit/s)</text>"), "{svg}");
    assert!(!svg.contains("rotate("), "{svg}");
    // Two values are better seen as curves.
    let points = two_settings(&["1ms", "5ms", "9ms"], &["1Mbit/s", "2Mbit/s"]);
    let runs = (1..=6).map(|point| run(point, 1, point as f64)).collect();
    assert!(self::maps(&overview(points, runs).data()).is_empty());
}

#[test]
fn flows_share_a_chart_and_have_their_profiles() {
    let with = |point: usize, seed: u64| {
        let mut run = run(point, seed, 6.0 + seed as f64);
        for (flow, profile) in [("bulk1", "ltcp"), ("bulk2", "cubic")] {
            run.profiles.insert(name(flow), profile.into());
        }
        run
    };
    let runs = vec![with(1, 1), with(1, 2), with(2, 1), with(2, 2)];
    let data = overview(points("delay", &["1ms", "2ms"]), runs).data();
    let charts = &data.sections[0].charts;
    let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(titles, ["goodput (sum) of bulk1, bulk2", "timeouts"]);
    let names: Vec<&str> = charts[1].series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["bulk1: ltcp", "bulk2: cubic"]);
    assert_eq!(charts[1].series[1].links, ["1-1/report.html", "2-1/report.html"]);
    // The interval over the seeds is a band in the picture, and the page knows where a click leads.
    let svg = crate::plot(&data.sections[0], &charts[0]).to_string();
    assert!(svg.contains("class=\"band f-blue\""), "{svg}");
    assert!(crate::render(&data).contains("\"links\":[\"1-1/report.html\",\"2-1/report.html\"]"));
}

#[test]
fn main_numbers_are_of_each_profile_and_of_all() {
    let text = r#"
        [scenario]
        name = "test"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        pairs = 2
        bottleneck = { rate = "10Mbit/s" }
        [[flows]]
        name = "a"
        from = "sender"
        to = "receiver"
        kind = "bulk"
        profile = { tcp = "ltcp" }
        [[flows]]
        name = "b"
        from = "sender"
        to = "receiver"
        kind = "bulk"
        profile = { tcp = "cubic" }
    "#;
    let scenario = resolved(text);
    let groups = profiles::groups(&scenario);
    let groups: Vec<(&str, usize)> =
        groups.iter().map(|(profile, flows)| (profile.as_str(), flows.len())).collect();
    assert_eq!(groups, [("ltcp", 2), ("cubic", 2)]);
    assert_eq!(profiles::of(&scenario)[&name("b2")], "cubic");
}

/// The way of each flow leads over two links that are as slow as each other, and two faster ones.
#[test]
fn links_that_are_no_bottleneck_are_not_measured() {
    let text = r#"
        [scenario]
        name = "test"
        duration = "1s"
        [hosts.a]
        [hosts.b]
        [hosts.c]
        [routers.r]
        [routers.s]
        [[links]]
        name = "fast"
        from = "a"
        to = "r"
        rate = "100Mbit/s"
        [[links]]
        name = "slow"
        from = "s"
        to = "r"
        there = { rate = "20Mbit/s" }
        back = { rate = "10Mbit/s" }
        [[links]]
        name = "slow-too"
        from = "s"
        to = "b"
        rate = "10Mbit/s"
        [[links]]
        name = "idle"
        from = "s"
        to = "c"
        rate = "1Mbit/s"
        [[flows]]
        name = "bulk"
        from = "a"
        to = "b"
        kind = "bulk"
    "#;
    let scenario = resolved(text);
    let names: Vec<String> =
        bottlenecks::of(&scenario).into_iter().map(|link| link.name.to_string()).collect();
    assert_eq!(names, ["slow", "slow-too"]);
}

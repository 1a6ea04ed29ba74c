//! The view on a terminal in memory.

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use transom_report::{Chart as ReportChart, Hue, Section, Style as ReportStyle};

fn live(runs: usize) -> Arc<Live> {
    let run = |n: usize| (format!("seed {n}"), PathBuf::from(format!("results/{n}/report.html")));
    Live::new("Four flows".into(), (0..runs).map(run).collect())
}

fn data() -> ReportData {
    let line = |slope: f64| (0..100).map(|n| (f64::from(n), f64::from(n) * slope)).collect();
    let goodput = ReportChart::new("Goodput", "goodput", "Mbit/s")
        .series("bulk1", ReportStyle::Step, Hue::Blue, line(0.1))
        .series("bulk2", ReportStyle::Step, Hue::Orange, line(0.05));
    let window = ReportChart::new("Congestion window", "cwnd", "KiB")
        .series("bulk1", ReportStyle::Step, Hue::Blue, line(3.0))
        .series("bulk1 ssthresh", ReportStyle::Dashed, Hue::Blue, line(1.0));
    let queue = ReportChart::new("Queue length", "queue", "packets").series(
        "bottleneck",
        ReportStyle::Step,
        Hue::Blue,
        line(1.0),
    );
    let section =
        |title: &str, charts| Section { title: title.into(), charts, ..Section::default() };
    ReportData {
        sections: vec![section("Flows", vec![goodput, window]), section("Links", vec![queue])],
        ..ReportData::default()
    }
}

/// What is on a terminal of this size.
fn screen(view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_run_in_progress_shows_three_charts() {
    let live = live(1);
    live.reached(0, 0.42, || (data(), String::new()));
    let screen = screen(&mut View::new(live.clone()), 100, 40);
    for part in [
        "Four flows",
        "42 %",
        "Goodput (Mbit/s)",
        "■ bulk1",
        "■ bulk2",
        "Congestion window (KiB)",
        "Queue length (packets)",
        "■ bottleneck",
        "99 s",
        "10",
        "q: close",
    ] {
        assert!(screen.contains(part), "{part} is missing:\n{screen}");
    }
    assert!(!screen.contains("ssthresh"), "{screen}");
    // Curves are drawn as dots of braille.
    assert!(
        screen.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count() > 100,
        "{screen}"
    );
}

#[test]
fn a_sweep_has_a_list_with_verdicts() {
    let live = live(4);
    live.done(0, Some(true), Some(data()));
    live.done(1, Some(false), Some(data()));
    live.reached(2, 0.5, || (data(), String::new()));
    let mut view = View::new(live.clone());
    view.follow();
    assert_eq!(view.run, 2);
    let text = screen(&mut view, 120, 30);
    for part in
        ["passed seed 0", "FAILED seed 1", "50 % seed 2", "2 of 4 runs are done", "bands fail in 1"]
    {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(view.press(KeyCode::Down));
    view.follow();
    assert_eq!(view.run, 3);
    assert!(screen(&mut view, 120, 30).contains("Nothing yet."));
    assert!(view.press(KeyCode::Down));
    assert_eq!(view.run, 3);
    (0..9).for_each(|_| assert!(view.press(KeyCode::Up)));
    assert_eq!(view.run, 0);
    assert!(view.press(KeyCode::Char('f')));
    view.follow();
    assert_eq!(view.run, 2);
}

#[test]
fn no_terminal_is_too_small() {
    let live = live(3);
    live.reached(0, 0.1, || (data(), String::new()));
    for (width, height) in [(1, 1), (5, 3), (20, 4), (40, 8), (300, 100)] {
        screen(&mut View::new(live.clone()), width, height);
    }
}

#[test]
fn values_that_are_all_alike_or_missing_are_drawn() {
    let live = live(1);
    let flat = ReportChart::new("Goodput", "", "")
        .series("flat", ReportStyle::Step, Hue::Blue, vec![(0.0, 0.0), (1.0, 0.0)])
        .series("gap", ReportStyle::Step, Hue::Red, vec![(0.0, f64::NAN)]);
    let sections =
        vec![Section { title: "Flows".into(), charts: vec![flat], ..Section::default() }];
    live.reached(0, 0.1, || (ReportData { sections, ..ReportData::default() }, String::new()));
    assert!(screen(&mut View::new(live.clone()), 60, 20).contains("flat"));
}

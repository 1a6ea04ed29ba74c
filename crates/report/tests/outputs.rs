//! The page of a program's connections, and samples of a simulated sender, against what they were when they were stored.

use std::fmt::Write as _;
use transom_report::{Connections, ReportData, Seen, render};
use transom_sim::measure::SenderSample;
use transom_testkit::{assert_stored, tell_story};

fn stored(name: &str) -> String {
    format!("{}/tests/stored/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_page_of_a_program_is_as_it_was() {
    let mut seen = Seen::new("10.0.0.1:40000", "10.0.0.2:80", 0.0);
    for (at, state) in tell_story().looks {
        seen.add(at.as_secs_f64(), &state);
    }
    let page =
        Connections { lead: "A program.".into(), seen: vec![seen], ..Connections::default() };
    let page = render(&ReportData::from(&page));
    // Style and scripts are the page's own, and change by themselves.
    let body = page.split_once("<body").expect("a body").1;
    assert_stored(stored("connections.html"), body);
}

#[test]
fn samples_of_senders_are_as_they_were() {
    let mut text = String::new();
    for (at, state) in tell_story().looks {
        let sample = SenderSample::from(state);
        let windows = (sample.cwnd, sample.ssthresh, sample.in_flight, sample.mss);
        let times = (sample.srtt, sample.last_rtt, sample.rto);
        let _ = writeln!(text, "{at:?} {windows:?} {times:?}");
    }
    assert_stored(stored("samples.txt"), &text);
}

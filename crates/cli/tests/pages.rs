//! The laboratory's pages in a browser: everything is drawn, nothing is complained about, and one can look closer.

#[cfg(feature = "web")]
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
#[cfg(feature = "web")]
use std::process::Stdio;

use crate::browser::Browser;
use serde_json::Value;

/// Two flows and a queue that drops, with a band that holds and one that does not, three points and two seeds.
const SCENARIO: &str = r#"
[scenario]
name = "pages"
title = "Two flows & a <queue>"
description = "A small run, to look at its page."
duration = "20s"
warm-up = "5s"
seeds = [1, 2]

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = "30 packets" }
access = { delay = "2ms" }

[[flows]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"
stagger = "2s"

[sweep]
topology.bottleneck.delay = ["5ms", "20ms", "80ms"]

[[expect]]
measure = "utilisation"
link = "bottleneck"
min = 0.5
max = 1.001
[[expect]]
measure = "goodput"
flow = "bulk"
min = "3Mbit/s"
why = "a fair share, which a long way does not give"
"#;

/// The scenario in a directory of its own; without its sweep and its seeds if it is to be a single run.
fn scenario(directory: &Path, single: bool) -> PathBuf {
    let file = directory.join("pages.toml");
    let mut text = SCENARIO.to_owned();
    if single {
        text = text.replace("seeds = [1, 2]", "seeds = [1]");
        let (before, rest) = text.split_once("[sweep]").unwrap();
        let (_, after) = rest.split_once("[[expect]]").unwrap();
        text = format!("{before}[[expect]]{after}");
    }
    std::fs::write(&file, text).unwrap();
    file
}

fn run(file: &Path, results: &Path, more: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_transom"))
        .args(["lab", "run", "--quiet", "--output"])
        .args([results, file])
        .args(more)
        .output()
        .unwrap();
    // A band that fails is no failure to make the page.
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The only directory in a directory.
fn only_run(results: &Path) -> PathBuf {
    let entries = std::fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path());
    let mut runs = entries.filter(|path| path.is_dir());
    let run = runs.next().unwrap();
    assert!(runs.next().is_none());
    run
}

fn url(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// The titles of all charts; fails unless each has something drawn.
fn charts(browser: &mut Browser) -> Vec<String> {
    let all = browser.evaluate(
        r#"[...document.querySelectorAll("figure")].map((figure) => {
            const canvas = figure.querySelector("canvas");
            if (!canvas) return [figure.querySelector("h3").textContent, 0, ""];
            // A copy, which may be read.
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, 0, 0);
            const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
            let drawn = 0;
            for (let i = 3; i < pixels.length; i += 4) drawn += pixels[i] > 0;
            return [figure.querySelector("h3").textContent, drawn, figure.querySelector(".chart").ariaLabel];
        })"#,
    );
    let all = all.as_array().unwrap();
    assert!(!all.is_empty(), "no charts");
    for chart in all {
        assert!(chart[1].as_u64().unwrap() > 2000, "an empty chart: {chart}");
        let (title, words) = (chart[0].as_str().unwrap(), chart[2].as_str().unwrap());
        assert!(words.starts_with(title) && words.len() > title.len() + 10, "{words}");
    }
    all.iter().map(|chart| chart[0].as_str().unwrap().to_owned()).collect()
}

/// What each chart shows of its horizontal axis.
fn scales(browser: &mut Browser) -> Vec<(f64, f64)> {
    let scales = browser.evaluate(
        "[...document.querySelectorAll('.chart')].map(({ plot }) => [plot.scales.x.min, plot.scales.x.max])",
    );
    let pair = |value: &Value| (value[0].as_f64().unwrap(), value[1].as_f64().unwrap());
    scales.as_array().unwrap().iter().map(pair).collect()
}

/// A place in the first chart, from 0 to 1 across, when that is in sight.
fn place(browser: &mut Browser, across: f64) -> (f64, f64) {
    let rectangle = browser.evaluate(
        "(() => { const over = document.querySelector('.u-over'); over.scrollIntoView({ block: 'center' }); \
         const { x, y, width, height } = over.getBoundingClientRect(); return [x, y, width, height]; })()",
    );
    let at = |index: usize| rectangle[index].as_f64().unwrap();
    (at(0) + at(2) * across, at(1) + at(3) / 2.0)
}

/// Zooming into the first chart zooms those of its section, and those alone.
fn zooms(browser: &mut Browser, in_first_section: usize) {
    let before = scales(browser);
    let (from, to) = (place(browser, 0.25), place(browser, 0.5));
    browser.drag(from, to);
    browser
        .wait_for(&format!("document.querySelector('.chart').plot.scales.x.max < {}", before[0].1));
    let zoomed = scales(browser);
    for (number, (before, after)) in before.iter().zip(&zoomed).enumerate() {
        if number < in_first_section {
            assert_eq!(after, &zoomed[0], "chart {number}");
            assert!(after.0 > before.0 && after.1 < before.1, "chart {number}: {after:?}");
        } else {
            assert_eq!(after, before, "chart {number}");
        }
    }
    browser.double_click(to);
    browser.wait_for(&format!(
        "document.querySelector('.chart').plot.scales.x.max === {}",
        before[0].1
    ));
    assert_eq!(scales(browser), before);
}

/// What happens to a page that follows a run: the same charts get other numbers.
fn newer_numbers_leave_the_zoom_alone(browser: &mut Browser) {
    let all = scales(browser);
    browser.evaluate("document.querySelector('.chart').plot.setScale('x', { min: 1, max: 2 })");
    browser.evaluate(
        "const newer = JSON.parse(document.getElementById('charts').textContent); \
         newer[0].charts[0].curves[0].y.fill(123); transomReport.show(newer, false)",
    );
    assert_eq!(scales(browser)[0], (1.0, 2.0));
    let highest = "Math.max(...document.querySelector('.chart').plot.data[1])";
    assert_eq!(browser.evaluate(highest), 123);
    // Charts that are not zoomed show all of what is new.
    browser.evaluate(
        "const older = JSON.parse(document.getElementById('charts').textContent); \
         transomReport.show(older, true)",
    );
    assert_eq!(scales(browser), all);
    browser.evaluate(
        "for (const curve of older[0].charts[0].curves) curve.x[curve.x.length - 1] += 5e6; \
         transomReport.show(older, false)",
    );
    assert_eq!(scales(browser)[0], (all[0].0, all[0].1 + 5.0));
    browser.evaluate(
        "transomReport.show(JSON.parse(document.getElementById('charts').textContent), true)",
    );
}

/// Nothing but tables and drawings, which scroll by themselves, is wider than the window.
fn fits(browser: &mut Browser) {
    let wide = browser.evaluate("document.documentElement.scrollWidth > innerWidth");
    assert_eq!(wide, false, "the page is wider than the window");
}

#[test]
fn the_page_of_a_run() {
    let Some(mut browser) = Browser::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let results = directory.path().join("results");
    run(&scenario(directory.path(), true), &results, &[]);
    browser.open(&url(&only_run(&results).join("report.html")));
    let titles = charts(&mut browser);
    for title in ["Goodput", "Congestion window", "Round-trip time", "Queue length", "Utilisation"]
    {
        assert!(titles.iter().any(|one| one == title), "{title} is missing of {titles:?}");
    }
    assert_eq!(browser.evaluate("document.title"), "Two flows & a <queue>");
    assert_eq!(browser.evaluate("document.querySelectorAll('svg.drawing').length"), 1);
    let flows = browser.evaluate(
        "document.querySelector('section:has(.chart)').querySelectorAll('.chart').length",
    );
    zooms(&mut browser, usize::try_from(flows.as_u64().unwrap()).unwrap());
    fits(&mut browser);
    newer_numbers_leave_the_zoom_alone(&mut browser);
    browser.screenshot("run-1280");
    browser.prefer("dark");
    charts(&mut browser);
    browser.screenshot("run-dark");
    browser.prefer("light");
    // On paper the charts are as wide as paper.
    let media = |browser: &mut Browser, media: &str| {
        browser.call("Emulation.setEmulatedMedia", serde_json::json!({ "media": media }));
    };
    media(&mut browser, "print");
    browser.wait_for(
        "[...document.querySelectorAll('.chart')].every(({ plot }) => plot.width === 680)",
    );
    browser.screenshot("run-print");
    media(&mut browser, "");
    browser.wait_for(
        "[...document.querySelectorAll('.chart')].every(({ plot }) => plot.width > 1000)",
    );
    browser.resize(400, 800);
    charts(&mut browser);
    fits(&mut browser);
    browser.screenshot("run-400");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn the_page_of_a_sweep() {
    let Some(mut browser) = Browser::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let results = directory.path().join("results");
    run(&scenario(directory.path(), false), &results, &[]);
    browser.open(&url(&results.join("index.html")));
    let titles = charts(&mut browser);
    // One chart for a measure, with a curve for each flow.
    assert_eq!(titles, ["utilisation of bottleneck", "goodput"]);
    // The delays are powers of four: on a logarithmic axis, each with its mark.
    assert_eq!(browser.evaluate("document.querySelector('.chart').plot.scales.x.distr"), 3);
    zooms(&mut browser, 2);
    fits(&mut browser);
    browser.screenshot("sweep-1280");
    browser.prefer("dark");
    browser.screenshot("sweep-dark");
    browser.prefer("light");
    browser.resize(400, 800);
    charts(&mut browser);
    fits(&mut browser);
    browser.screenshot("sweep-400");
    // Every run has a page, and the way there is a link.
    let links = browser
        .evaluate("[...document.querySelectorAll('a')].map((link) => link.getAttribute('href'))");
    let mut links: Vec<&str> = links.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    links.sort_unstable();
    links.dedup();
    assert_eq!(links.len(), 6);
    for link in links {
        assert!(results.join(link).is_file(), "{link}");
    }
    browser.open(&url(&results.join("index.html")));
    browser.follow(".table a");
    browser.wait_for("document.title === 'Two flows & a <queue>' && document.querySelector('svg.drawing') !== null");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// A run that is watched, and ended if the test fails.
#[cfg(feature = "web")]
struct Watched(std::process::Child);

#[cfg(feature = "web")]
impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts runs that can be watched, and gives the address.
#[cfg(feature = "web")]
fn watch(file: &Path, results: &Path) -> (Watched, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_transom"))
        .args(["lab", "run", "--watch", "--output"])
        .args([results, file])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let watched = Watched(child);
    let url = lines.find_map(|line| Some(line.strip_prefix("Watch it at ")?.to_owned()));
    // The rest is read too, so that nobody waits for it to be.
    std::thread::spawn(move || lines.for_each(drop));
    (watched, url.expect("no address"))
}

#[cfg(feature = "web")]
#[test]
fn a_run_that_is_watched_ends_as_its_page() {
    let Some(mut browser) = Browser::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let results = directory.path().join("results");
    let file = scenario(directory.path(), true);
    let long = std::fs::read_to_string(&file).unwrap().replace("\"20s\"", "\"400s\"");
    std::fs::write(&file, long).unwrap();
    let (mut watched, address) = watch(&file, &results);
    browser.open(&address);
    browser.wait_for("document.querySelectorAll('.chart canvas').length > 4");
    browser.screenshot("watched");
    browser.wait_for("document.body.dataset.done === 'true'");
    let live = charts(&mut browser);
    let words = "[...document.querySelectorAll('.chart')].map((chart) => chart.ariaLabel)";
    let tables =
        "[...document.querySelectorAll('td, th, .verdict')].map((cell) => cell.textContent)";
    let (live_words, live_tables) = (browser.evaluate(words), browser.evaluate(tables));
    assert_eq!(watched.0.wait().unwrap().code(), Some(0));
    browser.open(&url(&only_run(&results).join("report.html")));
    assert_eq!(charts(&mut browser), live);
    assert_eq!(browser.evaluate(words), live_words);
    assert_eq!(browser.evaluate(tables), live_tables);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[cfg(feature = "web")]
#[test]
fn a_sweep_that_is_watched_has_a_list_of_its_runs() {
    let Some(mut browser) = Browser::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let results = directory.path().join("results");
    let (mut watched, address) = watch(&scenario(directory.path(), false), &results);
    browser.open(&address);
    browser.wait_for("document.querySelectorAll('tbody tr').length === 6");
    browser.wait_for("document.body.dataset.done === 'true'");
    let state = browser.evaluate("document.getElementById('state').textContent");
    assert!(state.as_str().unwrap().starts_with("6 of 6 runs are done"), "{state}");
    browser.screenshot("watched-sweep");
    // One of the first runs, whose picture has gone: its page is read from where it was written.
    browser.open(&format!("{address}run/0"));
    browser.wait_for("document.querySelectorAll('.chart canvas').length > 4");
    assert!(matches!(watched.0.wait().unwrap().code(), Some(0 | 1)));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

//! Pages, pictures and views of runs from the outside, without a browser.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{TABLE, run};

const SCENARIO: &str = r#"
[scenario]
name = "reports"
duration = "3s"
seeds = [1, 2]

[topology]
kind = "dumbbell"
bottleneck = { rate = "2Mbit/s", delay = "10ms", queue = "10 packets" }

[[flows]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"
"#;

struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    fn new(scenario: &str) -> Lab {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("reports.toml"), scenario).unwrap();
        Lab { directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, more: &[&str]) -> support::Ended {
        let (file, results) = (self.path("reports.toml"), self.path("results"));
        run([&["lab", "run", &file, "-q", "-o", &results], more].concat())
    }
}

/// Everything in a directory, by its path in there.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(here) = waiting.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_path_buf();
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// An event log becomes a page and a picture.
#[test]
fn a_log_is_drawn() {
    let lab = Lab::new(&format!("{SCENARIO}\n[measure]\nlog = [\"sender\"]\n"));
    lab.run(&["--seed", "1"]).success();
    let stored = contents(Path::new(&lab.path("results")));
    let log = stored.keys().find(|path| path.ends_with("log-sender1.tlog")).unwrap();
    let log = Path::new(&lab.path("results")).join(log).to_str().unwrap().to_owned();
    let [page, picture, other] = ["log.html", "log.svg", "log.pdf"].map(|name| lab.path(name));
    run(["log", "plot", &log, "-o", &page]).success();
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("Windows of the sender") && text.contains("Connection "), "{text}");
    run(["log", "plot", &log, "-o", &picture]).success();
    let text = fs::read_to_string(&picture).unwrap();
    assert!(text.starts_with("<svg xmlns") && text.contains("Sent data"), "{text}");
    run(["log", "plot", &log, "-o", &other]).fails_with(1, "must end in .svg, .png or .html");
    let unknown = ["log", "plot", &log, "-o", &picture, "--connection", "77"];
    run(unknown).fails_with(1, "has no connection 77");
    // The log itself, as lines, as before.
    assert!(run(["log", &log]).success().text().contains("\"event\":\"ack\""));
}

#[cfg(feature = "png")]
#[test]
fn pages_and_pictures_are_made_again_as_they_were() {
    let lab = Lab::new(SCENARIO);
    lab.run(&["--png"]).success();
    let results = lab.path("results");
    let before = contents(Path::new(&results));
    let named = |name: &str| before.keys().filter(|path| path.ends_with(name)).count();
    assert_eq!((named("report.html"), named("network.png"), named("flows-goodput.png")), (2, 2, 2));
    assert!(before.contains_key(Path::new("index.html")));
    // The scenario has no expectations; everything is measured anyway.
    assert!(
        before.contains_key(Path::new("over-the-seeds-goodput-sum-of-bulk1.png")),
        "{:?}",
        before.keys()
    );
    for path in before.keys() {
        let extension = path.extension().unwrap();
        if extension == "html" || extension == "png" {
            fs::remove_file(Path::new(&results).join(path)).unwrap();
        }
    }
    let said = run(["lab", "report", &results, "--png"]).success();
    assert_eq!(said.text(), format!("The report is {results}/index.html.\n"));
    let after = contents(Path::new(&results));
    assert!(before.keys().eq(after.keys()), "{:?}", after.keys());
    for (path, bytes) in &before {
        assert!(after[path] == *bytes, "{} differs", path.display());
    }
    // A run with pages gets its pictures when they are asked for later.
    let pictures = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "png");
    for path in before.keys().filter(pictures) {
        fs::remove_file(Path::new(&results).join(path)).unwrap();
    }
    lab.run(&["--png"]).success();
    assert!(contents(Path::new(&results)) == before);
}

#[test]
fn a_single_run_has_no_overview() {
    let lab = Lab::new(&SCENARIO.replace("seeds = [1, 2]", ""));
    lab.run(&[]).success();
    let all = contents(Path::new(&lab.path("results")));
    assert!(!all.contains_key(Path::new("index.html")), "{:?}", all.keys());
    let (path, page) = all.iter().find(|(path, _)| path.ends_with("report.html")).unwrap();
    let page = String::from_utf8_lossy(page);
    assert!(page.contains("reports.toml --seed 1</code>"), "{}", path.display());
    let said = run(["lab", "report", &lab.path("results")]).success();
    assert!(said.text().trim_end().ends_with("report.html."), "{}", said.text());
}

#[test]
fn the_command_on_a_page_makes_the_same_run() {
    let lab = Lab::new(&SCENARIO.replace("seeds = [1, 2]", "").replace("10ms", "11ms"));
    lab.run(&["--seed", "7"]).success();
    let results = lab.path("results");
    let before = contents(Path::new(&results));
    let scenario = before.keys().find(|path| path.ends_with("scenario.toml")).unwrap();
    let scenario = Path::new(&results).join(scenario);
    // As its page has it: from the scenario beside it.
    let again = lab.path("again");
    run(["lab", "run", scenario.to_str().unwrap(), "-q", "--seed", "7", "-o", &again]).success();
    let after = contents(Path::new(&again));
    for (path, bytes) in before.iter().filter(|(path, _)| path.extension().unwrap() == TABLE) {
        assert!(after[path] == *bytes, "{}", path.display());
    }
    assert!(before.keys().any(|path| path.extension().unwrap() == TABLE));
}

#[test]
fn files_that_cannot_be_shown_say_so() {
    let lab = Lab::new(SCENARIO);
    let nothing = lab.path("nothing");
    run(["lab", "report", &nothing]).fails_with(1, "there are no results in");
    #[cfg(feature = "tui")]
    lab.run(&["--tui"])
        .fails_with(1, "--tui draws on a terminal, and standard output is no terminal");
    // A missing feature is named as early.
    for (lacks, option, name, what) in [
        (cfg!(not(feature = "png")), "--png", "png", "PNG files"),
        (cfg!(not(feature = "tui")), "--tui", "tui", "view in the terminal"),
        (cfg!(not(feature = "web")), "--watch", "web", "server for browsers"),
    ] {
        if lacks {
            let ended = lab.run(&[option]);
            assert!(ended.stderr.contains(&format!("build with `--features {name}`")));
            ended.fails_with(1, &format!("this build of transom has no {what}"));
        }
    }
    // Nothing has been run.
    assert!(!Path::new(&lab.path("results")).exists());
    lab.run(&["--watch=here"]).fails_with(2, "write ADDR:PORT");
    #[cfg(feature = "web")]
    lab.run(&["--watch=192.0.2.1:1"]).fails_with(1, "cannot listen on 192.0.2.1:1");
    lab.run(&["--tui", "--json"]).fails_with(2, "cannot be used with");
}

#[cfg(feature = "web")]
#[test]
fn the_address_to_watch_at_is_printed() {
    let lab = Lab::new(SCENARIO);
    let ended = lab.run(&["--watch"]).success();
    assert!(ended.stderr.starts_with("Watch it at http://127.0.0.1:"), "{}", ended.stderr);
}

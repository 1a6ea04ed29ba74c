use super::csv;
#[cfg(feature = "parquet")]
use super::parquet;
use super::plain;
use super::stored::{PARQUET, PLAIN};
use super::tables::{COMPLETIONS, FLOWS, LINKS};
use super::*;
use crate::run::{
    FlowObservations, Judgement, LinkObservations, Observations, RunOptions, judge, simulate,
};
use crate::scenario::{Name, Scenario};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use tempfile::tempdir;
use transom_sim::link::{Counters, Delays, Traffic};
use transom_sim::measure::{FlowSample, LinkSample, SenderSample, SentSample, WindowSample};
use transom_sim::units::Rate;
use transom_tcp::time::{Duration, Instant};

mod arrays;
mod merging;
mod round_trip;
mod tasks;

const SHARED: &str = r#"
[scenario]
name = "shared"
tcp = "classic"
duration = "2s"
seeds = [1, 2]

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "2Mbit/s", delay = "10ms", queue = "20 packets", loss = "1%" }

[[flows]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"

[sweep]
topology.bottleneck.delay = ["10ms", "20ms", "40ms"]

[[expect]]
measure = "utilisation"
link = "bottleneck"
min = 0.3
max = 1.001

[[expect]]
measure = "goodput"
flow = "bulk"
statistic = "sum"
relative-to = { at = { topology.bottleneck.delay = "10ms" } }
max = 1.2
"#;

/// A scenario, its plan and its points.
struct Sweep {
    scenario: Scenario,
    plan: Plan,
}

impl Sweep {
    fn new(text: &str, shard: Option<&str>) -> Self {
        let scenario = Scenario::parse("t.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
        let shard = shard.map(|shard| shard.parse().unwrap());
        let plan = Plan::new(
            &scenario,
            Choice { file: "t.toml".into(), shard, seeds: None, emulated: false, units: None },
        );
        Sweep { scenario, plan }
    }

    fn seen(&self, planned: &PlannedRun) -> Observations {
        let variant = self.scenario.point(planned.point - 1).unwrap();
        let options = RunOptions::new(Path::new(""));
        simulate(&variant.resolved, planned.seed, options, |_, _| true).unwrap().unwrap()
    }

    /// Runs what is missing, and says how many runs that were.
    fn run(&self, store: &Store) -> usize {
        store.set_plan(&self.plan).unwrap();
        let mut made = 0;
        for planned in self.plan.own() {
            let variant = self.scenario.point(planned.point - 1).unwrap();
            let run = Run { plan: &self.plan, planned, variant: &variant };
            if let Found::Finished(_) = store.renew(run).unwrap() {
                continue;
            }
            store.begin(planned).unwrap().finish(run, &self.seen(planned)).unwrap();
            made += 1;
        }
        for mut run in store.runs().unwrap() {
            store.compare(&mut run).unwrap();
        }
        made
    }
}

/// All files with their contents.
fn tree(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let name = |path: &Path| path.strip_prefix(directory).unwrap().display().to_string();
    let files = files::within(directory).unwrap();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

#[test]
fn stored_runs_are_read_back_and_not_repeated() {
    // With an extension that it cannot have, so that there is a departure to be told of.
    let lacking = "kind = \"bulk\"\nprofile = { tcp = \"no-sack\", extensions = \"rr\" }";
    let text = SHARED.replacen("kind = \"bulk\"", lacking, 1);
    let (sweep, directory) = (Sweep::new(&text, None), tempdir().unwrap());
    let store = Store::create(directory.path()).unwrap();
    assert_eq!(sweep.run(&store), 6);
    for (planned, stored) in sweep.plan.own().zip(store.runs().unwrap()) {
        let variant = sweep.scenario.point(planned.point - 1).unwrap();
        assert_eq!(stored.scenario().unwrap(), variant.resolved);
        let seen = stored.observations().unwrap();
        assert_eq!(seen, sweep.seen(planned));
        assert_eq!(seen.flows[0].departures.len(), 1);
        let manifest = &stored.manifest;
        assert_eq!(manifest.bands, judge(&variant.resolved, &seen));
        assert_eq!((manifest.point, manifest.seed), (planned.point, planned.seed));
        assert_eq!(manifest.passed(), Some(true), "{manifest:#?}");
        // The first point is what the others are compared with.
        assert_eq!(manifest.comparisons.len(), usize::from(planned.point > 1));
        if let [comparison] = &manifest.comparisons[..] {
            let baseline = sweep.plan.run(1, planned.seed).unwrap();
            let goodput = |seen: &Observations| -> f64 {
                let delivered = seen.flows.iter().map(|flow| {
                    let (first, last) = (&flow.samples[0], flow.samples.last().unwrap());
                    (last.delivered - first.delivered) as f64
                        / last.at.since(first.at).as_secs_f64()
                });
                delivered.sum()
            };
            let quotient = goodput(&seen) / goodput(&sweep.seen(baseline));
            let value = comparison.judgement.as_ref().unwrap().values[0];
            assert!((value / quotient - 1.0).abs() < 1e-6 && value != 1.0, "{value} {quotient}");
        }
    }
    let before = tree(directory.path());
    assert_eq!(sweep.run(&store), 0);
    assert!(tree(directory.path()) == before);
    fs::remove_dir_all(directory.path().join(&sweep.plan.runs[3].directory)).unwrap();
    assert_eq!(sweep.run(&store), 1);
    assert!(tree(directory.path()) == before);
}

#[test]
fn another_band_title_or_drawing_repeats_no_run() {
    let directory = tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    assert_eq!(Sweep::new(SHARED, None).run(&store), 6);
    let other = SHARED
        .replace("name = \"shared\"", "name = \"shared\"\ntitle = \"Another\"")
        .replacen("[sweep]", "[measure]\nflows = [\"cwnd\"]\n[sweep]", 1)
        .replace("max = 1.001", "max = 0.31\nwhy = \"it is meant to fail\"");
    let other = Sweep::new(&other, None);
    // Something that was stored with a run stays with it.
    assert_eq!(other.run(&store), 0);
    assert!(store.runs().unwrap().iter().all(|run| run.manifest.passed() == Some(false)));
    let fresh = tempdir().unwrap();
    let anew = Store::create(fresh.path()).unwrap();
    assert_eq!(other.run(&anew), 6);
    assert!(tree(directory.path()) == tree(fresh.path()));
}

#[test]
fn a_table_begins_with_its_columns() {
    let (sweep, directory) = (Sweep::new(SHARED, None), tempdir().unwrap());
    let store = Store::create(directory.path()).unwrap();
    sweep.run(&store);
    let stored = store.runs().unwrap().remove(3);
    let seen = stored.observations().unwrap();
    for (file, rows) in [
        ("flows.csv", seen.flows.iter().map(|flow| flow.samples.len()).sum::<usize>()),
        ("links.csv", seen.links.iter().map(|link| link.samples.len()).sum()),
        ("completions.csv", 0),
    ] {
        let text = fs::read_to_string(stored.directory.join(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let columns = lines[0].split(',').count();
        assert!(lines.iter().all(|line| line.split(',').count() == columns), "{file}");
        assert_eq!(lines.len(), rows + 1, "{file}");
    }
    // A row by hand: what the last sample of the first flow says of it.
    let last = seen.flows[0].samples.last().unwrap();
    let sender = last.sender.unwrap();
    let text = fs::read_to_string(stored.directory.join("flows.csv")).unwrap();
    let line = text.lines().rfind(|line| line.starts_with("bulk1,")).unwrap();
    let [bytes, payload] = [last.sent.bytes, last.sent.payload].map(Option::unwrap);
    let begins =
        [last.at.as_nanos(), last.delivered, 0, 0, last.sent.packets.unwrap(), bytes, payload];
    let begins: String = begins.iter().map(|cell| format!("{cell},")).collect();
    assert!(line.starts_with(&format!("bulk1,{begins}")), "{line}");
    assert!(line.ends_with(&format!(",{}", sender.rto.as_nanos())), "{line}");
}

/// Where a file is not what was written, the error names it.
#[test]
fn damage_is_named() {
    let (sweep, directory) = (Sweep::new(SHARED, None), tempdir().unwrap());
    let store = Store::create(directory.path()).unwrap();
    sweep.run(&store);
    let run = store.runs().unwrap().remove(0);
    let path = |name: &str| run.directory.join(name);
    let form = if cfg!(feature = "parquet") { PARQUET } else { PLAIN };
    let tables = ["flows", "links", "completions"].map(|table| format!("{table}.{form}"));
    for name in tables.iter().map(String::as_str).chain(["scenario.toml"]) {
        let whole = fs::read(path(name)).unwrap();
        let read = || run.observations().map(|_| ()).and(run.scenario().map(|_| ()));
        assert!(read().is_ok());
        // Another byte: found when it is read.
        let mut altered = whole.clone();
        *altered.last_mut().unwrap() ^= 1;
        fs::write(path(name), altered).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("damaged"), "{error}");
        // Another length, and no file at all: found when the run is looked for.
        fs::write(path(name), &whole[..whole.len() / 2]).unwrap();
        let error = StoredRun::open(&run.directory).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("should have"), "{error}");
        fs::remove_file(path(name)).unwrap();
        let error = StoredRun::open(&run.directory).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        fs::write(path(name), whole).unwrap();
    }
    let manifest = fs::read_to_string(path("run.json")).unwrap();
    for (from, to, expected) in [
        ("\"format\": 1", "\"format\": 2", "format 2"),
        ("\"point\"", "\"pint\"", "unknown field `pint`"),
        ("flows.csv", "../flows.csv", "it names the file"),
        ("\"min\": \"0.3\"", "\"min\": \"0.3ms\"", "number"),
        ("}", "", "damaged"),
    ] {
        assert!(manifest.contains(from), "{from}");
        fs::write(path("run.json"), manifest.replace(from, to)).unwrap();
        let error = StoredRun::open(&run.directory).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(matches!(store.find(&sweep.plan.runs[0]), Found::Damaged(_)));
    }
    // The next time it is made again, and only it.
    assert_eq!(sweep.run(&store), 1);
    assert_eq!(store.runs().unwrap()[0].observations().unwrap(), sweep.seen(&sweep.plan.runs[0]));
}

/// A build with Parquet reads the results of one without it.
#[cfg(feature = "parquet")]
#[test]
fn plain_tables_are_read_by_every_build() {
    let (sweep, directory) = (Sweep::new(SHARED, None), tempdir().unwrap());
    let store = Store::create(directory.path()).unwrap();
    sweep.run(&store);
    let mut run = store.runs().unwrap().remove(0);
    let seen = run.observations().unwrap();
    let mut tables = [Vec::new(), Vec::new(), Vec::new()];
    plain::write(&mut tables[0], &FLOWS, &[], &seen.flows).unwrap();
    plain::write(&mut tables[1], &COMPLETIONS, &[], &seen.flows).unwrap();
    plain::write(&mut tables[2], &LINKS, &[], &seen.links).unwrap();
    run.manifest.files.retain(|file| !file.name.ends_with(PARQUET));
    for (table, contents) in ["flows", "completions", "links"].iter().zip(tables) {
        let (name, path) =
            (format!("{table}.{PLAIN}"), run.directory.join(format!("{table}.{PLAIN}")));
        fs::write(&path, contents).unwrap();
        let (bytes, sha256) = files::pass(&path, &mut std::io::sink()).unwrap();
        run.manifest.files.push(FileEntry { name, bytes, sha256 });
    }
    assert_eq!(run.observations().unwrap(), seen);
}

/// A build without Parquet does not read Parquet files. It does not take them for damaged, and does not run them again.
#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_its_files_are_left_alone() {
    let (sweep, directory) = (Sweep::new(SHARED, None), tempdir().unwrap());
    let store = Store::create(directory.path()).unwrap();
    sweep.run(&store);
    let run = store.runs().unwrap().remove(0);
    let path = |name: &str| run.directory.join(name);
    for table in ["flows", "completions", "links"] {
        let [plain, parquet] = [PLAIN, PARQUET].map(|form| format!("{table}.{form}"));
        fs::rename(path(&plain), path(&parquet)).unwrap();
        let manifest = fs::read_to_string(path("run.json")).unwrap();
        fs::write(path("run.json"), manifest.replace(&plain, &parquet)).unwrap();
    }
    let text = SHARED.replace("name = \"shared\"", "name = \"shared\"\ntitle = \"Another\"");
    let again = Sweep::new(&text, None);
    let variant = again.scenario.point(0).unwrap();
    let run = Run { plan: &again.plan, planned: &again.plan.runs[0], variant: &variant };
    let error = store.renew(run).unwrap_err();
    assert!(matches!(error, StoreError::NoParquet(_)), "{error}");
    assert!(error.to_string().contains("build with `--features parquet`"), "{error}");
}

#[test]
fn an_interrupted_run_is_no_run() {
    let (sweep, directory) = (Sweep::new(SHARED, None), tempdir().unwrap());
    let error = Store::open(directory.path()).unwrap_err();
    assert!(error.to_string().starts_with("there are no results in "), "{error}");
    let store = Store::create(directory.path()).unwrap();
    let pending = store.begin(&sweep.plan.runs[0]).unwrap();
    fs::write(pending.directory().join("capture.pcapng"), "some").unwrap();
    assert!(store.list().unwrap().is_empty());
    drop(pending);
    assert!(tree(directory.path()).is_empty());
    // A program that was killed cannot remove it.
    let pending = store.begin(&sweep.plan.runs[0]).unwrap();
    fs::write(pending.directory().join("run.json"), "{}").unwrap();
    std::mem::forget(pending);
    assert!(store.list().unwrap().is_empty());
    // As long as a store is open, there is no other.
    let error = Store::create(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::Busy(_)), "{error}");
    drop(store);
    Store::create(directory.path()).unwrap();
    assert!(tree(directory.path()).is_empty());
}

#[test]
fn files_beside_a_run_stay_with_it() {
    let (sweep, directory) = (Sweep::new(SHARED, None), tempdir().unwrap());
    let store = Store::create(directory.path()).unwrap();
    let planned = &sweep.plan.runs[0];
    let variant = sweep.scenario.point(0).unwrap();
    let pending = store.begin(planned).unwrap();
    fs::create_dir(pending.directory().join("programs")).unwrap();
    fs::write(pending.directory().join("programs/out.txt"), "hello").unwrap();
    let run = Run { plan: &sweep.plan, planned, variant: &variant };
    let stored = pending.finish(run, &sweep.seen(planned)).unwrap();
    let entry = stored.manifest.files.iter().find(|file| file.name == "programs/out.txt").unwrap();
    assert_eq!(entry.bytes, 5);
    // echo -n hello | sha256sum
    let sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(entry.sha256, sum);
    let text = SHARED.replace("name = \"shared\"", "name = \"shared\"\ntitle = \"Another\"");
    let other = Sweep::new(&text, None);
    let variant = other.scenario.point(0).unwrap();
    let run = Run { plan: &other.plan, planned: &other.plan.runs[0], variant: &variant };
    let Found::Finished(renewed) = store.renew(run).unwrap() else { panic!() };
    assert_eq!(renewed.scenario().unwrap().scenario.title.as_deref(), Some("Another"));
    assert_eq!(fs::read(renewed.directory.join("programs/out.txt")).unwrap(), b"hello");
}

#[test]
fn the_same_experiment_twice_in_a_sweep_has_two_places() {
    let text = SHARED.replace("\"20ms\", \"40ms\"]", "\"10000us\", \"40ms\"]");
    let plan = Sweep::new(&text, None).plan;
    assert_eq!(plan.runs[0].id, plan.runs[2].id);
    assert_eq!(plan.runs[2].directory, format!("{}-2", plan.runs[0].directory));
    assert_eq!(plan.run(2, 1), Some(&plan.runs[2]));
    assert_eq!((plan.run(2, 3), plan.run(4, 1)), (None, None));
}

#[test]
fn runs_are_dealt_like_cards() {
    let of = |shard: &str| {
        let shard: Shard = shard.parse().unwrap();
        (0..7).filter(|run| shard.has(*run)).collect::<Vec<usize>>()
    };
    assert_eq!([of("1/3"), of("2/3"), of("3/3")], [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    assert_eq!(of("1/1").len(), 7);
    for wrong in ["0/3", "4/3", "1/0", "1", "a/b", "-1/3", ""] {
        let error = wrong.parse::<Shard>().unwrap_err().to_string();
        assert!(error.contains("such as 2/3"), "{error}");
    }
}

/// Where a point stands in a sweep is no part of a run's identity either.
#[test]
fn another_order_of_points_repeats_no_run() {
    let directory = tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    assert_eq!(Sweep::new(SHARED, None).run(&store), 6);
    let other = SHARED.replace("[\"10ms\", \"20ms\", \"40ms\"]", "[\"40ms\", \"10ms\", \"20ms\"]");
    let other = Sweep::new(&other, None);
    assert_eq!(other.run(&store), 0);
    let fresh = tempdir().unwrap();
    assert_eq!(other.run(&Store::create(fresh.path()).unwrap()), 6);
    assert!(tree(directory.path()) == tree(fresh.path()));
}

#[test]
fn judgements_are_read_back_as_they_were() {
    let bands = r#"
[[expect]]
measure = "goodput"
flow = "bulk"
min = "1.5Mbit/s"
why = "because"
[[expect]]
measure = "rtt"
flow = "bulk"
statistic = "p99"
max = "20ms"
[[expect]]
measure = "cwnd"
flow = "bulk"
from = "1s"
max = "64KiB"
[[expect]]
measure = "goodput"
flow = "bulk1"
relative-to = { flow = "bulk2" }
min = 0.333
"#;
    let scenario = Sweep::new(&format!("{SHARED}{bands}"), None).scenario.point(0).unwrap();
    let bands = scenario.resolved.expect;
    assert_eq!(bands.len(), 5);
    for band in bands {
        // The last is one that is read back as another if it is not read to the last digit.
        let values = vec![0.0, 1e12, f64::NAN, 0.981_595_092_024_539_9];
        let judgement = Judgement { band, values, passed: false };
        let text = serde_json::to_string(&judgement).unwrap();
        let back: Judgement = serde_json::from_str(&text).unwrap();
        assert_eq!((&back.band, back.passed), (&judgement.band, false));
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back.values), bits(&judgement.values), "{text}");
    }
}

//! Experiments of the papers run as the command says. The pages in the repository are those that its scenarios, texts and stored values give, and nothing
//! is beside them.
//!
//! Nothing here waits for a clock, so it is a program of its own: `.ci/test-program` lets it run beside those that do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

const BLESS: &str = "TRANSOM_BLESS=1 cargo test -p transom-cli --test papers";

/// As large is a picture at most, so that a review shows it.
const LARGEST: usize = 40_000;

/// Every experiment that is owed: those of the five papers, the comparison with other congestion controllers, L4S, and designs that a paper only names.
const OWED: [&str; 46] = [
    "ictcp/table2",
    "ictcp/table3",
    "ictcp/fig3",
    "ictcp/fig4",
    "ictcp/fig5",
    "ictcp/fig6",
    "ictcp/fig7",
    "ictcp/fig8",
    "ictcp/fig9",
    "ictcp/fig10",
    "ictcp/fig11",
    "ictcp/fig12",
    "ictcp/companion",
    "ltcp/fig2",
    "ltcp/throughput",
    "ltcp/fig5",
    "ltcp/fig6",
    "ltcp/fig7",
    "ltcp/fig8",
    "ltcp/fig9",
    "ltcp/fig10",
    "ltcp/fig11",
    "ltcp/peers",
    "ltcp/double",
    "tcpu/fig6-7",
    "tcpu/ilp",
    "tcpu/demux",
    "compose/goodput",
    "compose/efficiency",
    "compose/units",
    "router/fig4",
    "router/fig5",
    "router/fig7",
    "router/fig8",
    "router/fig9",
    "router/fig10",
    "router/fig11",
    "router/table1",
    "router/table2",
    "router/shrink",
    "router/rules",
    "l4s/balance",
    "l4s/paths",
    "l4s/mixed",
    "l4s/steps",
    "l4s/bleached",
];

/// The pages and pictures that the repository's values give.
static MADE: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    said(&papers(&["pages", "--to", place.path().to_str().unwrap()], &root()));
    files(place.path())
});

/// The table of results that they give.
static TABLE: LazyLock<String> = LazyLock::new(|| said(&papers(&["results"], &root())));

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn papers(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_transom"))
        .arg("papers")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command printed that succeeded.
#[track_caller]
fn said(output: &Output) -> String {
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    said
}

/// The files of a directory.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).map(|entries| entries.flatten().collect::<Vec<_>>());
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, fs::read_to_string(&path).ok()?))
    };
    entries.unwrap_or_default().into_iter().filter_map(|entry| read(entry.path())).collect()
}

#[test]
fn pages_and_table_are_current() {
    let (made, table) = (&*MADE, &*TABLE);
    let (place, page) = (root().join("docs/papers"), root().join("RESULTS.md"));
    if std::env::var_os("TRANSOM_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(&place).unwrap();
        for name in files(&place).keys().filter(|name| !made.contains_key(*name)) {
            fs::remove_file(place.join(name)).unwrap();
        }
        made.iter().for_each(|(name, text)| fs::write(place.join(name), text).unwrap());
        fs::write(&page, table).unwrap();
    }
    let kept = files(&place);
    let orphans: Vec<&String> = kept.keys().filter(|name| !made.contains_key(*name)).collect();
    assert!(orphans.is_empty(), "no experiment has {orphans:?} in docs/papers");
    for (name, text) in made {
        assert!(kept.get(name) == Some(text), "docs/papers/{name} is out of date\n    {BLESS}");
    }
    assert!(fs::read_to_string(&page).unwrap() == *table, "RESULTS.md is out of date\n    {BLESS}");
}

#[test]
fn every_experiment_has_a_page_and_a_line() {
    let (made, table) = (&*MADE, &*TABLE);
    for id in OWED {
        let name = id.replace('/', "-");
        let page = made.get(&format!("{name}.md")).unwrap_or_else(|| panic!("{id} has no page"));
        assert!(page.starts_with(&format!("# {id}: ")) && page.contains("## The claim"), "{id}");
        let line = format!("| [{id}](docs/papers/{name}.md) |");
        assert_eq!(table.matches(&line).count(), 1, "{id}");
    }
    assert_eq!(table.matches("](docs/papers/").count(), OWED.len());
    assert_eq!(made.keys().filter(|name| name.ends_with(".md")).count(), OWED.len());
    let texts = files(&root().join("papers/pages"));
    let owed: Vec<String> =
        OWED.iter().map(|id| format!("{}.toml", id.replace('/', "-"))).collect();
    let orphans: Vec<&String> = texts.keys().filter(|name| !owed.contains(name)).collect();
    assert!(orphans.is_empty(), "no experiment has {orphans:?} in papers/pages");
}

#[test]
fn pictures_are_there_and_small() {
    let made = &*MADE;
    let mut shown = 0;
    for (page, text) in made.iter().filter(|(name, _)| name.ends_with(".md")) {
        for part in text.split("![").skip(1) {
            let (alternative, rest) = part.split_once("](").unwrap();
            let (file, _) = rest.split_once(')').unwrap();
            let svg = made.get(file).unwrap_or_else(|| panic!("{page}: {file} is not there"));
            assert!(svg.len() < LARGEST, "{file} has {} bytes", svg.len());
            assert!(alternative.len() > 20, "{page}: {file} is not described");
            shown += 1;
        }
    }
    let pictures = made.keys().filter(|name| name.ends_with(".svg")).count();
    assert!(shown == pictures && shown > 0, "{shown} of {pictures} pictures are shown");
}

/// Each experiment has values, or says why not; none are of an earlier scenario; and no band accepts its control.
#[test]
fn stored_values_are_those_of_the_scenarios() {
    let said = said(&papers(&["results", "--check"], &root()));
    assert!(said.contains("0 defects"), "{said}");
}

/// Two that take little: they come out as the paper says, are kept, not run twice, and stand in the page of results.
#[test]
fn quick_experiments_come_out() {
    let directory = tempfile::tempdir().unwrap();
    let stored = root().join("papers/results");
    let stored = stored.to_str().unwrap();
    let run =
        ["run", "ltcp/fig11", "--seeds", "1", "--quiet", "--keep", "kept", "--stored", stored];
    let output = papers(&run, directory.path());
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("ltcp/fig11, quick") && said.contains("4 of 4 bands hold"), "{said}");
    assert!(said.contains("As stored: all "), "{said}");
    let place = directory.path().join("results/papers/ltcp/fig11/quick");
    assert!(place.join("results.json").is_file());
    let again = text(&papers(&run, directory.path()).stdout);
    assert!(again.contains("there already"), "{again}");
    let page = text(&papers(&["results", "--from", "kept"], directory.path()).stdout);
    let row = |id: &str| -> Vec<String> {
        let start = format!("| [{id}](");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with(&start)).collect();
        assert_eq!(rows.len(), 1, "{id}: {page}");
        rows[0].split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    // The page has two claims more, of the same experiment in real time, which was not run.
    let cells = row("ltcp/fig11");
    assert!(
        cells[4].contains("Mbit/s (1 run)") && cells[5] == "partly, 3 of 5 claims, quick form",
        "{cells:?}"
    );
    // Experiments that were not run say so.
    assert_eq!(row("ltcp/fig9")[5], "not run");
    // Its page has the claims, and a picture of the course that the run kept.
    let output = papers(&["pages", "--from", "kept", "--to", "pages"], directory.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let pages = directory.path().join("pages");
    let page = std::fs::read_to_string(pages.join("ltcp-fig11.md")).unwrap();
    // Each has a control that its band rejects.
    let claims = |line: &&str| line.contains("| holds") && line.contains(" | 1 | rejected, ");
    assert_eq!(page.lines().filter(claims).count(), 4, "{page}");
    assert!(page.contains("](ltcp-fig11-1.svg)") && page.contains("quick form"), "{page}");
    assert!(!page.contains("without a fingerprint") && !page.contains("changed since"), "{page}");
    assert!(pages.join("ltcp-fig11-1.svg").is_file());
    // What no experiment has any more goes; what is no page stays.
    for name in ["ltcp-fig99.md", "ltcp-fig99-1.svg", "notes.txt"] {
        std::fs::write(pages.join(name), "old").unwrap();
    }
    assert!(
        papers(&["pages", "--from", "kept", "--to", "pages"], directory.path()).status.success()
    );
    let is_there = |name: &str| pages.join(name).exists();
    assert!(!is_there("ltcp-fig99.md") && !is_there("ltcp-fig99-1.svg") && is_there("notes.txt"));
    let check = papers(&["results", "--check", "--from", "kept"], directory.path());
    assert!(!check.status.success(), "the other experiments have no values");
    assert!(text(&check.stdout).contains("ltcp/fig9: has no values, and no reason"));
    assert!(!text(&check.stdout).contains("ltcp/fig11"), "{}", text(&check.stdout));
}

#[test]
fn experiments_can_be_listed_and_described() {
    let here = Path::new(".");
    let list = text(&papers(&["list"], here).stdout);
    assert!(list.contains("ltcp/fig5") && list.contains("compose/goodput"), "{list}");
    let output = papers(&["describe", "ltcp/fig8"], here);
    let described = text(&output.stdout);
    assert!(
        described.contains("101.25 Mbit/s of 500") && described.contains("Set-up:"),
        "{described}"
    );
    let output = papers(&["describe", "ltcp/fig5", "--scenario"], here);
    let file = std::fs::read_to_string(root().join("papers/ltcp/fig5.toml")).unwrap();
    assert_eq!(text(&output.stdout).trim_end(), file.trim_end());
    let output = papers(&["run", "ltcp/fig99"], here);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("there is no experiment ltcp/fig99"));
    // A page whose values come from a benchmark says which command makes them.
    let output = papers(&["run", "tcpu/ilp"], here);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("--group ilp"), "{}", text(&output.stderr));
}

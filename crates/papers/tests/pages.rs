//! The pages in the repository are those that its scenarios, texts and stored values give, and nothing is beside them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const BLESS: &str = "TRANSOM_BLESS=1 cargo test -p transom-papers --test pages";

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

/// Everything that the repository's values give.
static MADE: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| transom_papers::pages(&root().join("papers/results")).unwrap());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a directory with these endings.
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
    let root = root();
    let from = root.join("papers/results");
    let made = &*MADE;
    let table = transom_papers::results(&from).unwrap();
    let (place, page) = (root.join("docs/papers"), root.join("RESULTS.md"));
    if std::env::var_os("TRANSOM_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(&place).unwrap();
        for name in files(&place).keys().filter(|name| !made.contains_key(*name)) {
            fs::remove_file(place.join(name)).unwrap();
        }
        made.iter().for_each(|(name, text)| fs::write(place.join(name), text).unwrap());
        fs::write(&page, &table).unwrap();
    }
    let kept = files(&place);
    let orphans: Vec<&String> = kept.keys().filter(|name| !made.contains_key(*name)).collect();
    assert!(orphans.is_empty(), "no experiment has {orphans:?} in docs/papers");
    for (name, text) in made {
        assert!(kept.get(name) == Some(text), "docs/papers/{name} is out of date\n    {BLESS}");
    }
    assert!(fs::read_to_string(&page).unwrap() == table, "RESULTS.md is out of date\n    {BLESS}");
}

#[test]
fn every_experiment_has_a_page_and_a_line() {
    let from = root().join("papers/results");
    let made = &*MADE;
    let table = transom_papers::results(&from).unwrap();
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
    let defects = transom_papers::check(&root().join("papers/results")).unwrap();
    assert!(defects.is_empty(), "{defects:#?}");
}

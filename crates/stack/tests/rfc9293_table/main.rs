//! Keeps the RFC 9293 conformance table honest.
//!
//! Theory of operation: `docs/conformance/rfc9293.toml` says of every requirement of the RFC
//! whether it is done. The sources say where: a comment there names the requirement in brackets, as
//! in `[MUST-n]`, on the code that meets it and on the test that would notice if it did not. This
//! test reads both, refuses any disagreement ([`check`]), and renders them as
//! `docs/conformance/rfc9293.md` and `applications.md` ([`report`]), which have to be committed as rendered.
//!
//! Locations are a file and the item around the marker, never a line number. The page changes when
//! the answer changes, not whenever the code moves. Finding the item and telling tests from code
//! needs a little more than a text search, hence a small lexer ([`lex`]) and an outline of items
//! ([`outline`]) under the scan for markers ([`scan`]).

mod check;
mod lex;
mod outline;
mod report;
mod scan;
mod table;

use std::fs;
use std::path::Path;

use crate::table::Status;

/// The command that rewrites the page, named by every failure it would mend.
const BLESS: &str = "TRANSOM_BLESS=1 cargo test -p transom-stack --test rfc9293_table";

#[test]
fn table_agrees_with_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root.join("docs/conformance/rfc9293.toml");

    let text = fs::read_to_string(&source).expect("docs/conformance/rfc9293.toml is readable");
    let table = table::parse(&text).unwrap_or_else(|error| panic!("rfc9293.toml: {error}"));
    let found = scan::workspace(&root).expect("the sources under crates/ are readable");
    let mut problems = check::problems(&table, &found);

    let pages = [
        ("rfc9293.md", report::render(&table, &found.markers)),
        ("applications.md", report::applications(&table, &found.markers)),
    ];
    for (name, rendered) in pages {
        let page = root.join("docs/conformance").join(name);
        if std::env::var_os("TRANSOM_BLESS").is_some_and(|value| value == "1") {
            fs::write(&page, &rendered).expect("docs/conformance is writable");
        } else if fs::read_to_string(&page).ok().as_deref() != Some(&rendered) {
            problems.push(format!(
                "docs/conformance/{name} is out of date; rewrite it with\n    {BLESS}"
            ));
        }
    }

    let count = |status| table.iter().filter(|row| row.status == status).count();
    eprintln!(
        "RFC 9293: {} done, {} not done; {} markers in {} files",
        count(Status::Done),
        count(Status::NotDone),
        found.markers.len(),
        found.files,
    );
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

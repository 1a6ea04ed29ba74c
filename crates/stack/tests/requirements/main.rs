//! Keeps the tables of requirements honest: of RFC 9293 (TCP), RFC 8200 (IPv6), RFC 4443 (ICMPv6), RFC 1122 section 3 (hosts) and RFC 792 (ICMP).
//!
//! Theory of operation: a file such as `docs/conformance/rfc9293.toml` says of every requirement of a document whether it is done. The
//! sources say where: a comment there names the requirement in brackets, as in `[MUST-n]` or `[RFC8200-4.5-n]`, on the code that meets it
//! and on the test that would notice if it did not. This test reads both, refuses any disagreement ([`check`]), and renders them as
//! `docs/conformance/rfc9293.md` and so on ([`report`]), which have to be committed as rendered. [`documents`] says which there are.
//!
//! Locations are a file and the item around the marker, never a line number. The page changes when
//! the answer changes, not whenever the code moves. Finding the item and telling tests from code
//! needs a little more than a text search, hence a small lexer ([`lex`]) and an outline of items
//! ([`outline`]) under the scan for markers ([`scan`]).

mod check;
mod documents;
mod lex;
mod outline;
mod report;
mod scan;
mod table;

use std::fs;
use std::path::Path;

use crate::table::Status;

/// The command that rewrites the pages, named by every failure it would mend.
const BLESS: &str = "TRANSOM_BLESS=1 cargo test -p transom-stack --test requirements";

#[test]
fn tables_agree_with_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("docs/conformance");
    let found = scan::workspace(&root).expect("the sources under crates/ are readable");
    let mut problems = found.malformed.clone();
    problems.extend(check::strangers(&found.markers));
    let mut pages = vec![];
    for document in &documents::ALL {
        let file = document.file();
        let text = fs::read_to_string(folder.join(format!("{file}.toml")))
            .unwrap_or_else(|error| panic!("docs/conformance/{file}.toml: {error}"));
        let table = table::parse(&text).unwrap_or_else(|error| panic!("{file}.toml: {error}"));
        problems.extend(check::problems(document, &table, &found.markers));
        pages.push((format!("{file}.md"), report::render(document, &table, &found.markers)));
        if document.applications {
            let page = report::applications(&table, &found.markers);
            pages.push(("applications.md".to_owned(), page));
        }
        let counts = Status::ALL.map(|status| {
            let count = table.iter().filter(|row| row.status == status).count();
            format!("{count} {}", status.name())
        });
        eprintln!("{}: {}", document.name(), counts.join(", "));
    }
    for (name, rendered) in pages {
        let page = folder.join(&name);
        if std::env::var_os("TRANSOM_BLESS").is_some_and(|value| value == "1") {
            fs::write(&page, &rendered).expect("docs/conformance is writable");
        } else if fs::read_to_string(&page).ok().as_deref() != Some(&rendered) {
            problems.push(format!(
                "docs/conformance/{name} is out of date; rewrite it with\n    {BLESS}"
            ));
        }
    }
    eprintln!("{} markers in {} files", found.markers.len(), found.files);
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

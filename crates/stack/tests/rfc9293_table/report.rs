//! The table and the markers as a page to read.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::BLESS;
use crate::scan::Marker;
use crate::table::{Kind, Requirement, Status};

/// Renders the page, in Markdown.
pub(crate) fn render(table: &[Requirement], markers: &[Marker]) -> String {
    let mut page = format!(
        "# RFC 9293 conformance\n\n\
         Generated from [rfc9293.toml](rfc9293.toml) and the markers in the sources. Rewrite:\n\
         `{BLESS}`\n\n\
         Requirements are in our own words, in the order of the RFC's Appendix B.\n\
         Locations are files below `crates/` and the item within.\n\n"
    );
    summary(&mut page, table);
    let rows = Kind::ALL.map(|kind| format!("{} {}", kind.appendix_b_rows(), kind.name()));
    let _ = write!(
        page,
        "\nKinds are those of the text. Appendix B lists some ids in several rows and marks a few\n\
             otherwise; its rows, all accounted for in the table, are {}.\n",
        rows.join(", ")
    );
    let mut topic = "";
    for row in table {
        if row.topic != topic {
            topic = &row.topic;
            let _ = write!(
                page,
                "\n## {topic}\n\n\
                 | Id | Section | Kind | Requirement | Status | Code | Tests |\n\
                 |---|---|---|---|---|---|---|\n"
            );
        }
        requirement(&mut page, row, markers);
    }
    page
}

/// How many requirements of each kind are how far.
fn summary(page: &mut String, table: &[Requirement]) {
    let count = |kind: Option<Kind>, status: Status| {
        table
            .iter()
            .filter(|row| row.status == status && kind.is_none_or(|kind| row.kind == kind))
            .count()
    };
    page.push_str("| |");
    for status in Status::ALL {
        let _ = write!(page, " {} |", status.name());
    }
    page.push_str("\n|---|--:|--:|\n");
    for kind in Kind::ALL.into_iter().map(Some).chain([None]) {
        let _ = write!(page, "| {} |", kind.map_or("all", Kind::name));
        for status in Status::ALL {
            let _ = write!(page, " {} |", count(kind, status));
        }
        page.push('\n');
    }
}

fn requirement(page: &mut String, row: &Requirement, markers: &[Marker]) {
    let Requirement { id, topic: _, section, kind, appendix_b: _, text, status, note } = row;
    let note = if note.is_empty() { String::new() } else { format!("<br>*{}*", cell(note)) };
    let _ = writeln!(
        page,
        "| {id} | {section} | {} | {}{note} | {} | {} | {} |",
        kind.name(),
        cell(text),
        status.name(),
        places(markers, id, false),
        places(markers, id, true),
    );
}

/// The places that carry an id's marker, each once, in order.
fn places(markers: &[Marker], id: &str, test: bool) -> String {
    let places: BTreeSet<String> = markers
        .iter()
        .filter(|marker| marker.id == id && marker.test == test)
        .map(|marker| match &marker.item {
            Some(item) => format!("`{}:{item}`", marker.file),
            None => format!("`{}`", marker.file),
        })
        .collect();
    places.into_iter().collect::<Vec<_>>().join("<br>")
}

/// Text that leaves a table's cell whole.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

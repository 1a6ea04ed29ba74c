//! A table and the markers as a page to read.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::BLESS;
use crate::documents::Document;
use crate::scan::Marker;
use crate::table::{Kind, Requirement, Status};

/// Renders the page of a document, in Markdown.
pub(crate) fn render(document: &Document, table: &[Requirement], markers: &[Marker]) -> String {
    let (name, file, order) = (document.name(), document.file(), document.order);
    let mut page = format!(
        "# {name} conformance\n\n\
         Generated from [{file}.toml]({file}.toml) and the markers in the sources. Rewrite:\n\
         `{BLESS}`\n\n\
         Requirements are in our own words, {order}.\n\
         Locations are files below `crates/` and the item within.\n\n"
    );
    summary(&mut page, table);
    if let Some((list, _)) = document.list {
        let rows = Kind::ALL.map(|kind| (document.listed(kind).unwrap_or_default(), kind.name()));
        let rows = rows.into_iter().filter(|(count, _)| *count > 0);
        let rows: Vec<String> = rows.map(|(count, name)| format!("{count} {name}")).collect();
        let rows = rows.join(", ");
        let _ = if document.applications {
            write!(
                page,
                "\nKinds are those of the text. {list} lists some ids in several rows and marks a few\n\
                 otherwise; its rows, all accounted for in the table, are {rows}.\n"
            )
        } else {
            writeln!(page, "\nEvery row of {list} is in the table: {rows}.")
        };
    }
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
    let has = |status: &Status| table.iter().any(|row| row.status == *status);
    let shown: Vec<Status> = Status::ALL.into_iter().filter(has).collect();
    let count = |kind: Option<Kind>, status: Status| {
        table
            .iter()
            .filter(|row| row.status == status && kind.is_none_or(|kind| row.kind == kind))
            .count()
    };
    page.push_str("| |");
    for status in &shown {
        let _ = write!(page, " {} |", status.name());
    }
    let _ = write!(page, "\n|---|{}\n", "--:|".repeat(shown.len()));
    for kind in Kind::ALL.into_iter().map(Some).chain([None]) {
        let _ = write!(page, "| {} |", kind.map_or("all", Kind::name));
        for status in &shown {
            let _ = write!(page, " {} |", count(kind, *status));
        }
        page.push('\n');
    }
}

fn requirement(page: &mut String, row: &Requirement, markers: &[Marker]) {
    let Requirement { id, section, kind, text, status, note, .. } = row;
    let note = if note.is_empty() { String::new() } else { format!("<br>*{}*", cell(note)) };
    let _ = writeln!(
        page,
        "| {id} | {section} | {} | {}{note} | {} | {} | {} |",
        kind.name(),
        cell(text),
        status.name(),
        places(markers, |marker| marker.id == *id && !marker.test),
        places(markers, |marker| marker.id == *id && marker.test),
    );
}

/// Renders the page on what programs have of all this, in Markdown.
pub(crate) fn applications(table: &[Requirement], markers: &[Marker]) -> String {
    let mut page = format!(
        "# RFC 9293 as programs see it\n\n\
         The requirements in which a program has a part, with what it calls or sees in Rust (`transom-net`) and in C\n\
         (`transom-sansio`). The tests go through these calls. Where a cell is empty, the other interface has it alone.\n\
         How each requirement is met is in [rfc9293.md](rfc9293.md); this page is generated with it:\n\
         `{BLESS}`\n\n\
         | Id | Requirement | Rust | C | Tests |\n|---|---|---|---|---|\n"
    );
    let seen = |row: &&Requirement| row.interfaces().iter().any(|(call, _)| !call.is_empty());
    for row in table.iter().filter(seen) {
        let Requirement { id, text, rust, c, .. } = row;
        let through = |marker: &Marker| {
            let places = row.interfaces().map(|(_, place)| place);
            places.iter().any(|place| marker.file.starts_with(place))
        };
        let tests = places(markers, |marker| marker.id == *id && marker.test && through(marker));
        let [text, rust, c] = [text, rust, c].map(|text| cell(text));
        let _ = writeln!(page, "| {id} | {text} | {rust} | {c} | {tests} |");
    }
    page
}

/// The places that carry a marker that is wanted, each once, in order.
fn places(markers: &[Marker], wanted: impl Fn(&Marker) -> bool) -> String {
    let places: BTreeSet<String> = markers
        .iter()
        .filter(|marker| wanted(marker))
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

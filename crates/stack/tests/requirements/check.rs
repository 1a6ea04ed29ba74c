//! Where a table, its document and the sources disagree.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::{Document, Ids};
use crate::scan::Marker;
use crate::table::{Kind, Requirement, Status};

/// Every disagreement about a document, as a message that says what to do.
pub(crate) fn problems(
    document: &Document,
    table: &[Requirement],
    markers: &[Marker],
) -> Vec<String> {
    let mut problems = vec![];
    match document.ids {
        Ids::Labels(_) => complete(document, table, &mut problems),
        Ids::Sections => numbered(document, table, &mut problems),
    }
    listed(document, table, &mut problems);
    for row in table {
        well_formed(document, row, &mut problems);
    }
    let known: BTreeSet<&str> = table.iter().map(|row| row.id.as_str()).collect();
    let labels = document.labels();
    let known: BTreeSet<&str> =
        known.into_iter().chain(labels.iter().map(String::as_str)).collect();
    let own = |marker: &&Marker| {
        Document::of(&marker.id).is_some_and(|owner| owner.number == document.number)
    };
    for marker in markers.iter().filter(own) {
        placed(document, marker, &known, &mut problems);
    }
    backed(table, markers, &mut problems);
    seen_by_programs(table, markers, &mut problems);
    problems
}

/// Markers of no document at all.
pub(crate) fn strangers(markers: &[Marker]) -> Vec<String> {
    let strangers = markers.iter().filter(|marker| Document::of(&marker.id).is_none());
    strangers
        .map(|Marker { id, file, line, .. }| {
            format!("crates/{file}:{line}: [{id}] is of a document that has no table")
        })
        .collect()
}

/// The table has every id of the document once.
fn complete(document: &Document, table: &[Requirement], problems: &mut Vec<String>) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for row in table {
        *times.entry(&row.id).or_default() += 1;
    }
    for id in document.labels() {
        match times.remove(id.as_str()) {
            Some(1) => {}
            Some(times) => problems.push(format!("{id} is in the table {times} times")),
            None => problems.push(format!("{id} is missing from the table")),
        }
    }
    problems.extend(times.keys().map(|id| format!("{id} is no id of {}", document.name())));
}

/// Where the document has no labels, each id is that of the row's section, and counts up there.
fn numbered(document: &Document, table: &[Requirement], problems: &mut Vec<String>) {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for Requirement { id, section, .. } in table {
        let number = last.entry(section).or_default();
        *number += 1;
        let expected = document.section_id(section, *number);
        if *id != expected {
            problems.push(format!("{id} is the row of {expected}"));
        }
    }
}

/// The table has as many rows of each kind as the document's own list.
fn listed(document: &Document, table: &[Requirement], problems: &mut Vec<String>) {
    let Some((list, _)) = document.list else { return };
    for kind in Kind::ALL {
        let rows = table.iter().flat_map(Requirement::rows).filter(|row| **row == kind).count();
        let expected = document.listed(kind).unwrap_or_default();
        if rows != expected {
            let name = kind.name();
            problems.push(format!("{rows} rows of {list} are {name}, the RFC has {expected}"));
        }
    }
}

/// A row has what it needs to be read.
fn well_formed(document: &Document, row: &Requirement, problems: &mut Vec<String>) {
    let id = &row.id;
    if !document.fits(id, row.kind) {
        problems.push(format!("{id} cannot be a {}", row.kind.name()));
    }
    let section = row.section.split('.').all(|part| part.parse::<u8>().is_ok());
    if !section || row.topic.is_empty() || row.text.is_empty() {
        problems.push(format!("{id} needs a topic, a section number and a text"));
    }
    if row.status != Status::Done && row.note.trim().is_empty() {
        problems.push(format!("{id} is {} and no note says why", row.status.name()));
    }
}

/// A marker names an id of the document, and one in test code is on something that runs.
fn placed(
    document: &Document,
    marker: &Marker,
    known: &BTreeSet<&str>,
    problems: &mut Vec<String>,
) {
    let Marker { id, file, line, .. } = marker;
    if !known.contains(id.as_str()) {
        let name = document.name();
        problems.push(format!("crates/{file}:{line}: [{id}] is no id of {name}"));
    }
    if marker.test && !marker.in_fn {
        problems.push(format!("crates/{file}:{line}: [{id}] is in test code but on no function"));
    }
}

/// A requirement that is done is marked in the code and in a test that runs by default.
fn backed(table: &[Requirement], markers: &[Marker], problems: &mut Vec<String>) {
    for row in table.iter().filter(|row| row.status == Status::Done) {
        let id = &row.id;
        let mut own = markers.iter().filter(|marker| marker.id == *id);
        if !own.clone().any(|marker| !marker.test) {
            problems.push(format!("{id} is done, but no code is marked [{id}]"));
        }
        if !own.any(|marker| marker.test && marker.in_fn && !marker.ignored) {
            problems.push(format!("{id} is done, but no test is marked [{id}]"));
        }
    }
}

/// Each call that the table names for programs is made by a test in that language.
fn seen_by_programs(table: &[Requirement], markers: &[Marker], problems: &mut Vec<String>) {
    for row in table.iter().filter(|row| row.status == Status::Done) {
        for (call, place) in row.interfaces().into_iter().filter(|(call, _)| !call.is_empty()) {
            let id = &row.id;
            let there = |marker: &&Marker| marker.id == *id && marker.file.starts_with(place);
            let runs = |marker: &Marker| marker.test && marker.in_fn && !marker.ignored;
            if !markers.iter().filter(there).any(runs) {
                problems.push(format!("{id}: no test below {place} is marked for {call}"));
            }
        }
    }
}

#[cfg(test)]
mod tests;

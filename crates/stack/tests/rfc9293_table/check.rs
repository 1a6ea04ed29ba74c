//! Where the table, the RFC and the sources disagree.

use std::collections::{BTreeMap, BTreeSet};

use crate::scan::{Found, Marker};
use crate::table::{Kind, Requirement, Status, ids};

/// Every disagreement, as a message that says what to do.
pub(crate) fn problems(table: &[Requirement], found: &Found) -> Vec<String> {
    let mut problems = found.malformed.clone();
    complete(table, &mut problems);
    for row in table {
        well_formed(row, &mut problems);
    }
    let known: BTreeSet<String> = ids().collect();
    for marker in &found.markers {
        placed(marker, &known, &mut problems);
    }
    backed(table, &found.markers, &mut problems);
    seen_by_programs(table, &found.markers, &mut problems);
    problems
}

/// The table has every id of the RFC once, and as many rows of each kind as Appendix B.
fn complete(table: &[Requirement], problems: &mut Vec<String>) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for row in table {
        *times.entry(&row.id).or_default() += 1;
    }
    for id in ids() {
        match times.remove(id.as_str()) {
            Some(1) => {}
            Some(times) => problems.push(format!("{id} is in the table {times} times")),
            None => problems.push(format!("{id} is missing from the table")),
        }
    }
    problems.extend(times.keys().map(|id| format!("{id} is no id of RFC 9293")));
    for kind in Kind::ALL {
        let rows = table.iter().flat_map(Requirement::rows).filter(|row| **row == kind).count();
        let expected = kind.appendix_b_rows();
        if rows != expected {
            let name = kind.name();
            problems.push(format!("{rows} rows of Appendix B are {name}, the RFC has {expected}"));
        }
    }
}

/// A row has what it needs to be read.
fn well_formed(row: &Requirement, problems: &mut Vec<String>) {
    let id = &row.id;
    let prefix = id.split_once('-').map_or("", |(prefix, _)| prefix);
    if !row.kind.fits(prefix) {
        problems.push(format!("{id} cannot be a {}", row.kind.name()));
    }
    let section = row.section.split('.').all(|part| part.parse::<u8>().is_ok());
    if !section || row.topic.is_empty() || row.text.is_empty() {
        problems.push(format!("{id} needs a topic, a section number and a text"));
    }
    if row.status == Status::NotDone && row.note.trim().is_empty() {
        problems.push(format!("{id} is not done and no note says why"));
    }
}

/// A marker names an id of the RFC, and one in test code is on something that runs.
fn placed(marker: &Marker, known: &BTreeSet<String>, problems: &mut Vec<String>) {
    let Marker { id, file, line, .. } = marker;
    if !known.contains(id) {
        problems.push(format!("crates/{file}:{line}: [{id}] is no id of RFC 9293"));
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

//! Tables as plain text, from which a run is read back in a build without Parquet.
//!
//! Theory of operation. The first line is a JSON object: the program that made the table, the names of its columns, and the owners. Each further
//! line is a row: the number of its owner from zero, then a cell for each column, with commas between. An integer is decimal, bytes are
//! hexadecimal; an empty cell has no characters. Derived columns are omitted: they are in the comma-separated values for people.
//!
//! A file that is read may be anything. Its columns have to be those expected, its rows in the order of their owners, and each row has to be
//! one that could have been written.

use super::column::{Column, Kind, Table};
use super::owners::{self, OWNERS};
use serde_json::{Map, Value};
#[cfg(any(test, not(feature = "parquet")))]
use std::io::{self, Write};

/// The names of the columns, in the first line.
const COLUMNS: &str = "transom.columns";

/// A defect of a file.
type Wrong = String;

/// The columns that are kept.
fn columns<O, R>(table: &Table<O, R>) -> impl Iterator<Item = &'static Column<R>> {
    table.columns.iter().filter(|column| !matches!(column.kind, Kind::Derived { .. }))
}

/// Writes a table, with what made it: keys and values.
#[cfg(any(test, not(feature = "parquet")))]
pub(super) fn write<O, R>(
    to: &mut impl Write,
    table: &Table<O, R>,
    made_by: &[(&str, String)],
    owners: &[O],
) -> io::Result<()> {
    let made_by = made_by.iter().map(|(key, value)| (String::from(*key), value.as_str().into()));
    let mut head: Map<String, Value> = made_by.collect();
    let names: Vec<&str> = columns(table).map(|column| column.name).collect();
    head.insert(COLUMNS.into(), names.into());
    head.insert(OWNERS.into(), owners::listed(table, owners));
    writeln!(to, "{}", Value::Object(head))?;
    for (number, owner) in owners.iter().enumerate() {
        for row in (table.rows)(owner) {
            write!(to, "{number}")?;
            for column in columns(table) {
                write!(to, ",")?;
                if let Kind::Bytes { get, .. } = column.kind {
                    get(row).iter().try_for_each(|byte| write!(to, "{byte:02x}"))?;
                } else if let Some(cell) = column.integer(None, row) {
                    write!(to, "{cell}")?;
                }
            }
            writeln!(to)?;
        }
    }
    Ok(())
}

/// Reads a table back from a file's contents: its owners with their rows.
pub(super) fn read<O, R: Default>(table: &Table<O, R>, contents: &[u8]) -> Result<Vec<O>, Wrong> {
    let text = std::str::from_utf8(contents).map_err(|error| error.to_string())?;
    let (head, rows) = text.split_once('\n').ok_or("it has no first line")?;
    let mut head: Map<String, Value> =
        serde_json::from_str(head).map_err(|error| format!("its first line: {error}"))?;
    let names: Vec<&str> = columns(table).map(|column| column.name).collect();
    if head.get(COLUMNS) != Some(&names.into()) {
        return Err(format!("it does not have the columns of the table `{}`", table.name));
    }
    let listed = head.remove(OWNERS).ok_or_else(|| format!("its first line has no `{OWNERS}`"))?;
    let listed = serde_json::from_value(listed).map_err(|error| format!("`{OWNERS}`: {error}"))?;
    let mut owners = owners::of_list(table, listed)?;
    if !rows.is_empty() && !rows.ends_with('\n') {
        return Err("its last line is not whole".into());
    }
    let mut latest = 0;
    for (number, line) in rows.lines().enumerate() {
        let wrong = |what: Wrong| format!("line {}: {what}", number + 2);
        let (owner, row) = row(table, line).map_err(wrong)?;
        if owner < latest {
            return Err(wrong("it belongs further up".into()));
        }
        latest = owner;
        let owner = owners.get_mut(owner);
        let owner = owner.ok_or_else(|| wrong("it belongs to nothing that is listed".into()))?;
        (table.rows_mut)(owner).push(row);
    }
    Ok(owners)
}

/// A row and the number of its owner.
fn row<O, R: Default>(table: &Table<O, R>, line: &str) -> Result<(usize, R), Wrong> {
    let mut cells = line.split(',');
    let owner = cells.next().and_then(|cell| cell.parse().ok()).ok_or("it has no owner")?;
    let mut row = R::default();
    let mut optional = Vec::new();
    for column in columns(table) {
        let strange = || format!("column `{}`: a value cannot be one", column.name);
        let cell = cells.next().ok_or("it has too few cells")?;
        match column.kind {
            Kind::Bytes { set, .. } => {
                bytes(cell).and_then(|bytes| set(&mut row, &bytes)).ok_or_else(strange)?;
            }
            _ => {
                let cell = match cell {
                    "" => None,
                    digits => Some(digits.parse().map_err(|_| strange())?),
                };
                column.set(&mut row, cell).ok_or_else(strange)?;
                optional.push((column, cell));
            }
        }
    }
    if cells.next().is_some() {
        return Err("it has too many cells".into());
    }
    // Cells that do not belong together come back as others.
    match optional.iter().find(|(column, cell)| column.integer(None, &row) != *cell) {
        None => Ok((owner, row)),
        Some((column, _)) => Err(format!(
            "column `{}`: a value is there that cannot be, or one is missing",
            column.name
        )),
    }
}

/// Bytes from two hexadecimal digits each.
fn bytes(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

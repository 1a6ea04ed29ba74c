//! Reading a table.

use super::super::column::{Column, Kind, Table};
use super::super::owners::{self, OWNERS};
use super::{GROUP, schema};
use ::parquet::column::reader::ColumnReader;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::file::serialized_reader::SerializedFileReader;
use bytes::Bytes;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// More rows than any run can have had in memory.
const MOST_ROWS: usize = 1 << 30;

/// A defect of a file.
type Wrong = String;

/// Reads a table back from a file's contents: its owners with their rows.
pub(in super::super) fn read<O, R: Default>(
    table: &Table<O, R>,
    contents: Vec<u8>,
) -> Result<Vec<O>, Wrong> {
    // The library checks what it reads, but does not promise never to panic.
    catch_unwind(AssertUnwindSafe(|| whole(table, contents)))
        .unwrap_or_else(|_| Err("it is no Parquet file that can be understood".into()))
}

fn whole<O, R: Default>(table: &Table<O, R>, contents: Vec<u8>) -> Result<Vec<O>, Wrong> {
    let library = |error: ParquetError| error.to_string();
    let file = SerializedFileReader::new(Bytes::from(contents)).map_err(library)?;
    let metadata = file.metadata().file_metadata();
    let expected = schema(table).map_err(library)?;
    if metadata.schema_descr().root_schema().get_fields() != expected.get_fields() {
        return Err(format!("it does not have the columns of the table `{}`", table.name));
    }
    let listed = metadata
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == OWNERS)?.value.as_ref())
        .ok_or_else(|| format!("its metadata has no `{OWNERS}`"))?;
    let listed = serde_json::from_str(listed).map_err(|error| format!("`{OWNERS}`: {error}"))?;
    let mut owners = owners::of_list(table, listed)?;
    let (mut count, mut current) = (0usize, 0);
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number).map_err(library)?;
        let here = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
        count = count.saturating_add(here);
        if here > GROUP || count > MOST_ROWS {
            return Err("it has more rows than any run".into());
        }
        add(table, &mut owners, &mut current, group.as_ref(), here)?;
    }
    Ok(owners)
}

/// Gives the rows of a group to their owners, which come in order, from the `current` one on.
fn add<O, R: Default>(
    table: &Table<O, R>,
    owners: &mut [O],
    current: &mut usize,
    group: &dyn RowGroupReader,
    count: usize,
) -> Result<(), Wrong> {
    let mut keys = Vec::new();
    for (number, (name, _)) in table.keys.iter().enumerate() {
        keys.push(texts(group, number, count).map_err(|wrong| in_column(name, wrong))?);
    }
    let mut rows: Vec<R> = std::iter::repeat_with(R::default).take(count).collect();
    let mut optional = Vec::new();
    for (number, column) in (table.keys.len()..).zip(table.columns) {
        let wrong = |wrong| in_column(column.name, wrong);
        if let Some(cells) = fill(group, number, column, &mut rows).map_err(wrong)? {
            optional.push((column, cells));
        }
    }
    // Cells that do not belong together come back as others.
    for (column, cells) in optional {
        if cells.iter().zip(&rows).any(|(cell, row)| *cell != column.integer(None, row)) {
            let wrong = "a value is there that cannot be, or one is missing";
            return Err(in_column(column.name, wrong.into()));
        }
    }
    for (number, row) in rows.into_iter().enumerate() {
        let is_of = |owner: &O| {
            keys.iter()
                .zip((table.key)(owner))
                .all(|(key, own)| key.get(number).is_some_and(|key| key.data() == own.as_bytes()))
        };
        while owners.get(*current).is_some_and(|owner| !is_of(owner)) {
            *current += 1;
        }
        let owner = owners.get_mut(*current).ok_or("a row belongs to nothing that is listed")?;
        (table.rows_mut)(owner).push(row);
    }
    Ok(())
}

fn in_column(name: &str, wrong: Wrong) -> Wrong {
    format!("column `{name}`: {wrong}")
}

/// The cells of a column of texts or bytes.
fn texts(group: &dyn RowGroupReader, number: usize, count: usize) -> Result<Vec<ByteArray>, Wrong> {
    let library = |error: ParquetError| error.to_string();
    let reader = group.get_column_reader(number).map_err(library)?;
    let ColumnReader::ByteArrayColumnReader(mut reader) = reader else {
        return Err("it is no column of texts".into());
    };
    let mut texts = Vec::new();
    while texts.len() < count {
        let (read, _, _) =
            reader.read_records(count - texts.len(), None, None, &mut texts).map_err(library)?;
        if read == 0 {
            return Err("it has too few values".into());
        }
    }
    Ok(texts)
}

/// The cells of a column of integers.
fn cells<R>(
    group: &dyn RowGroupReader,
    number: usize,
    column: &Column<R>,
    count: usize,
) -> Result<impl Iterator<Item = Option<u64>>, Wrong> {
    let library = |error: ParquetError| error.to_string();
    let reader = group.get_column_reader(number).map_err(library)?;
    let ColumnReader::Int64ColumnReader(mut reader) = reader else {
        return Err("it is no column of integers".into());
    };
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut records = 0;
    while records < count {
        let levels = column.is_optional().then_some(&mut levels);
        let (read, _, _) =
            reader.read_records(count - records, levels, None, &mut values).map_err(library)?;
        if read == 0 {
            return Err("it has too few values".into());
        }
        records += read;
    }
    if !column.is_optional() {
        levels.resize(count, 1i16);
    }
    if levels.iter().filter(|level| **level > 0).count() != values.len() {
        return Err("it has another number of values than it says".into());
    }
    let mut values = values.into_iter().map(i64::cast_unsigned);
    Ok(levels.into_iter().map(move |level| if level > 0 { values.next() } else { None }))
}

/// Puts a column's cells into the rows, and gives them back where some may be empty.
fn fill<R>(
    group: &dyn RowGroupReader,
    number: usize,
    column: &Column<R>,
    rows: &mut [R],
) -> Result<Option<Vec<Option<u64>>>, Wrong> {
    const INVALID: &str = "a value cannot be one";
    match column.kind {
        Kind::Derived { .. } => {}
        Kind::Bytes { set, .. } => {
            for (cell, row) in texts(group, number, rows.len())?.iter().zip(rows) {
                set(row, cell.data()).ok_or(INVALID)?;
            }
        }
        Kind::Integer { optional, set, .. } => {
            let cells: Vec<_> = cells(group, number, column, rows.len())?.collect();
            for (cell, row) in cells.iter().zip(rows) {
                set(row, *cell).ok_or(INVALID)?;
            }
            return Ok(optional.then_some(cells));
        }
    }
    Ok(None)
}

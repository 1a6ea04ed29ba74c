//! Tables as comma-separated values (RFC 4180).
//!
//! The first line has the names of the columns. A cell that has no value is empty. No name or number needs quotes. The scenario lies beside the
//! table, as `scenario.toml`, and `run.json` has the seed.

use super::column::Table;
use std::io::{self, Write};

/// Writes a table.
pub(super) fn write<O, R>(
    to: &mut impl Write,
    table: &Table<O, R>,
    owners: &[O],
) -> io::Result<()> {
    let keys = table.keys.iter().map(|(name, _)| *name);
    let columns: Vec<_> = table.columns.iter().filter(|column| !column.is_bytes()).collect();
    let names: Vec<&str> = keys.chain(columns.iter().map(|column| column.name)).collect();
    writeln!(to, "{}", names.join(","))?;
    for owner in owners {
        let key = (table.key)(owner).join(",");
        let mut before = None;
        for row in (table.rows)(owner) {
            write!(to, "{key}")?;
            for column in &columns {
                match column.integer(before, row) {
                    Some(cell) => write!(to, ",{cell}")?,
                    None => write!(to, ",")?,
                }
            }
            writeln!(to)?;
            before = Some(row);
        }
    }
    Ok(())
}

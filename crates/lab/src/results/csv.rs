//! Tables as comma-separated values (RFC 4180, with comments before the head).
//!
//! Each file begins with the seed and the scenario that made it, in comments: lines that begin with `#`. Then come the names of the
//! columns, and the rows. A cell that has no value is empty. No name or number needs quotes.

use super::column::Table;
use crate::scenario::Resolved;
use std::io::{self, Write};

/// Writes a table.
pub(super) fn write<T: Table>(
    to: &mut impl Write,
    scenario: &Resolved,
    seed: u64,
    owners: &[T::Owner],
) -> io::Result<()> {
    writeln!(to, "# seed = {seed}")?;
    for line in scenario.to_toml().lines() {
        writeln!(to, "{}{line}", if line.is_empty() { "#" } else { "# " })?;
    }
    let keys = T::KEYS.iter().map(|(name, _)| *name);
    let columns: Vec<_> = T::columns().iter().filter(|column| !column.is_bytes()).collect();
    let names: Vec<&str> = keys.chain(columns.iter().map(|column| column.name)).collect();
    writeln!(to, "{}", names.join(","))?;
    for owner in owners {
        let key = T::key(owner).join(",");
        let mut before = None;
        for row in T::rows(owner) {
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

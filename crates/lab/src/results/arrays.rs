//! The tables of a run as arrays, a column each: for programs that compute with them.

use super::column::Table;
use super::tables::{COMPLETIONS, FLOWS, LINKS};
use crate::run::Observations;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Array {
    /// Its name.
    pub name: &'static str,
    /// Its description, with the unit.
    pub doc: &'static str,
    /// Its cells.
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Texts, each as often as it is repeated in a row: the rows of an owner follow each other.
    Texts(Vec<(String, usize)>),
    /// Integers.
    Integers(Vec<u64>),
    /// Integers, some of which may be missing.
    Maybe(Vec<Option<u64>>),
}

/// The tables of a run, each with its name: flows, completions and links. The columns of a table have the same length. Those of bytes are left out: the
/// columns computed from them are there.
pub fn arrays(seen: &Observations) -> [(&'static str, Vec<Array>); 3] {
    [of(&FLOWS, &seen.flows), of(&COMPLETIONS, &seen.flows), of(&LINKS, &seen.links)]
}

fn of<O, R>(table: &Table<O, R>, owners: &[O]) -> (&'static str, Vec<Array>) {
    let keys = table.keys.iter().enumerate().map(|(number, (name, doc))| {
        let text = |owner: &O| {
            let key = (table.key)(owner).get(number).map(|key| (*key).to_owned());
            (key.unwrap_or_default(), (table.rows)(owner).len())
        };
        Array { name, doc, cells: Cells::Texts(owners.iter().map(text).collect()) }
    });
    let columns = table.columns.iter().filter(|column| !column.is_bytes()).map(|column| {
        let cells = owners.iter().flat_map(|owner| {
            let rows = (table.rows)(owner);
            let before = std::iter::once(None).chain(rows.iter().map(Some));
            rows.iter().zip(before).map(|(row, before)| column.integer(before, row))
        });
        let cells = match column.is_optional() {
            true => Cells::Maybe(cells.collect()),
            // Such a column has a cell in every row.
            false => Cells::Integers(cells.map(Option::unwrap_or_default).collect()),
        };
        Array { name: column.name, doc: column.doc, cells }
    });
    (table.name, keys.chain(columns).collect())
}

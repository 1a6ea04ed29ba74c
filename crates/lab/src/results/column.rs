//! Columns of tables, each defined once.
//!
//! Theory of operation. The rows of a [`Table`] belong to a flow or to one direction of a link, their *owner*. A `Column` has a name, a
//! description, and functions that take its cell from a row and put it back. A cell is an integer or empty, rarely bytes. All code that writes or
//! reads tables uses these definitions, so a new field is only a new line in [`tables`](super::tables).
//!
//! After reading, each cell is taken out again and compared. This finds contradictory cells (a round-trip time without a sender) without code for
//! each case.

use transom_sim::units::Rate;
use transom_tcp::time::{Duration, Instant};

/// One column of a table whose rows are `R`.
pub(crate) struct Column<R> {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its description, with its unit.
    pub(crate) doc: &'static str,
    pub(super) kind: Kind<R>,
}

/// How to get a cell and how to set it. The setter returns whether the value is possible.
pub(super) enum Kind<R> {
    /// Every row has a value.
    Always { get: fn(&R) -> u64, set: fn(&mut R, u64) -> Option<()> },
    /// There may be none.
    Sometimes { get: fn(&R) -> Option<u64>, set: fn(&mut R, Option<u64>) -> Option<()> },
    /// Data other than a number. It is not in the comma-separated values.
    Bytes { get: fn(&R) -> &[u8], set: fn(&mut R, &[u8]) -> Option<()> },
    /// A value derived from a row and the one before it. It is written for people, and not read back.
    Derived { get: fn(Option<&R>, &R) -> Option<u64> },
}

impl<R> Column<R> {
    /// Whether some of its cells may be empty.
    pub(crate) fn is_optional(&self) -> bool {
        matches!(self.kind, Kind::Sometimes { .. } | Kind::Derived { .. })
    }

    /// Whether its cells are bytes and no integers.
    pub(crate) fn is_bytes(&self) -> bool {
        matches!(self.kind, Kind::Bytes { .. })
    }

    /// The integer in a row, if there is one; `before` is the row before it of the same owner.
    pub(crate) fn integer(&self, before: Option<&R>, row: &R) -> Option<u64> {
        match self.kind {
            Kind::Always { get, .. } => Some(get(row)),
            Kind::Sometimes { get, .. } => get(row),
            Kind::Derived { get } => get(before, row),
            Kind::Bytes { .. } => None,
        }
    }

    /// Puts an integer into a row. None if it cannot be one.
    pub(super) fn set(&self, row: &mut R, cell: Option<u64>) -> Option<()> {
        match self.kind {
            Kind::Always { set, .. } => set(row, cell?),
            Kind::Sometimes { set, .. } => set(row, cell),
            Kind::Derived { .. } => Some(()),
            Kind::Bytes { .. } => None,
        }
    }
}

/// The type of a cell.
pub(super) trait Integer: Sized {
    fn into_cell(self) -> u64;
    /// None if it is out of range.
    fn from_cell(cell: u64) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            fn into_cell(self) -> u64 {
                // No counter of this program is wider than 64 bits.
                self as u64
            }

            fn from_cell(cell: u64) -> Option<Self> {
                cell.try_into().ok()
            }
        }
    )*};
}
integers!(u64, u32, usize);

impl Integer for Instant {
    fn into_cell(self) -> u64 {
        self.as_nanos()
    }

    fn from_cell(cell: u64) -> Option<Self> {
        Some(Instant::from_nanos(cell))
    }
}

impl Integer for Duration {
    fn into_cell(self) -> u64 {
        self.as_nanos()
    }

    fn from_cell(cell: u64) -> Option<Self> {
        Some(Duration::from_nanos(cell))
    }
}

impl Integer for Rate {
    fn into_cell(self) -> u64 {
        self.bits_per_sec()
    }

    fn from_cell(cell: u64) -> Option<Self> {
        Rate::from_bits_per_sec(cell)
    }
}

/// Columns of a row type, one a line: how it is kept, its name, what it says, and where it is.
///
/// - `always`: a field that every row has.
/// - `maybe`: a field that is an `Option`.
/// - `always in part` and `maybe in part`: the same of a part of the row that may not be there: `part` is an `Option` of a [`Part`].
/// - `bytes`: a field, how it is turned into bytes, and how these are turned into it, if they can be.
/// - `derived`: how it follows from the row before, if there is one, and the row.
macro_rules! columns {
    ($row:ty: $($lines:tt)*) => { columns!(@ $row, [] $($lines)*) };
    (@ $row:ty, [$($done:expr,)*]) => { [$($done),*] };
    (@ $row:ty, [$($done:expr,)*] always in $part:ident $name:literal, $doc:literal, $field:ident; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Sometimes {
            get: |row| row.$part.as_ref().map(|part| Integer::into_cell(part.$field)),
            set: |row, cell| {
                if let Some(cell) = cell {
                    row.$part.get_or_insert(Part::EMPTY).$field = Integer::from_cell(cell)?;
                }
                Some(())
            },
        } },] $($rest)*)
    };
    (@ $row:ty, [$($done:expr,)*] maybe in $part:ident $name:literal, $doc:literal, $field:ident; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Sometimes {
            get: |row| row.$part.as_ref()?.$field.map(Integer::into_cell),
            set: |row, cell| {
                if let Some(cell) = cell {
                    row.$part.get_or_insert(Part::EMPTY).$field = Some(Integer::from_cell(cell)?);
                }
                Some(())
            },
        } },] $($rest)*)
    };
    (@ $row:ty, [$($done:expr,)*] always $name:literal, $doc:literal, $($field:tt).+; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Always {
            get: |row| Integer::into_cell(row.$($field).+),
            set: |row, cell| {
                row.$($field).+ = Integer::from_cell(cell)?;
                Some(())
            },
        } },] $($rest)*)
    };
    (@ $row:ty, [$($done:expr,)*] maybe $name:literal, $doc:literal, $($field:tt).+; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Sometimes {
            get: |row| row.$($field).+.map(Integer::into_cell),
            set: |row, cell| {
                row.$($field).+ = match cell {
                    Some(cell) => Some(Integer::from_cell(cell)?),
                    None => None,
                };
                Some(())
            },
        } },] $($rest)*)
    };
    (@ $row:ty, [$($done:expr,)*] bytes $name:literal, $doc:literal, $field:ident, $get:path, $set:path; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Bytes {
            get: |row| $get(&row.$field),
            set: |row, cell| {
                row.$field = $set(cell)?;
                Some(())
            },
        } },] $($rest)*)
    };
    (@ $row:ty, [$($done:expr,)*] derived $name:literal, $doc:literal, $get:expr; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Derived {
            get: $get,
        } },] $($rest)*)
    };
}
pub(super) use columns;

/// A part of a row that may not be there.
pub(super) trait Part {
    /// Its value before anything is known.
    const EMPTY: Self;
}

/// A table: whose its rows are, and its columns.
pub(super) trait Table {
    /// The subject of the table, which is also the name of its files.
    const NAME: &'static str;
    /// The names of the columns that name a row's owner, and their descriptions.
    const KEYS: &'static [(&'static str, &'static str)];
    /// The owner of rows.
    type Owner: 'static;
    /// The rows.
    type Row: Clone + 'static;
    /// Attributes of an owner, stored once and not in every row.
    fn attributes() -> &'static [Column<Self::Owner>];
    /// The columns of a row.
    fn columns() -> &'static [Column<Self::Row>];
    /// A row before its cells are set.
    fn blank() -> Self::Row;
    /// The values of the columns of [`KEYS`](Self::KEYS).
    fn key(owner: &Self::Owner) -> Vec<&str>;
    /// An owner without rows; none if this is no key.
    fn owner(key: &[String]) -> Option<Self::Owner>;
    /// Its rows.
    fn rows(owner: &Self::Owner) -> &[Self::Row];
    /// Its rows, to add to.
    fn rows_mut(owner: &mut Self::Owner) -> &mut Vec<Self::Row>;
}

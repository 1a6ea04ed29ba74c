//! Columns of tables, each defined once.
//!
//! Theory of operation. A [`Table`] has rows that belong to something, a flow or one way of a link, which is their *owner*. A [`Column`] is
//! a name, what it means, and how its cell is taken from a row and put back into one; a cell is an integer or nothing, and seldom bytes. Everything that
//! writes or reads tables goes by these definitions, so that a new field is a new line in [`tables`](super::tables) and no more.
//!
//! What has been put back is taken out again for comparison: cells that contradict each other (a round-trip time where there is no
//! sender) are found without a word about them here.

use transom_sim::units::Rate;
use transom_tcp::time::{Duration, Instant};

/// One column of a table whose rows are `R`.
pub struct Column<R> {
    /// Its name.
    pub name: &'static str,
    /// What it says, with its unit.
    pub doc: &'static str,
    pub(super) kind: Kind<R>,
}

/// How to get a cell and how to set it. What sets it says whether the value can be one.
pub(super) enum Kind<R> {
    /// Every row has a value.
    Always { get: fn(&R) -> u64, set: fn(&mut R, u64) -> Option<()> },
    /// There may be none.
    Sometimes { get: fn(&R) -> Option<u64>, set: fn(&mut R, Option<u64>) -> Option<()> },
    /// Something that is no number. It is not in the comma-separated values.
    Bytes { get: fn(&R) -> &[u8], set: fn(&mut R, &[u8]) -> Option<()> },
    /// What follows from a row and the one before it. It is written for those who read, and not read back.
    Derived { get: fn(Option<&R>, &R) -> Option<u64> },
}

impl<R> Column<R> {
    /// Whether some of its cells may be empty.
    pub fn is_optional(&self) -> bool {
        matches!(self.kind, Kind::Sometimes { .. } | Kind::Derived { .. })
    }

    /// Whether its cells are bytes and no integers.
    pub fn is_bytes(&self) -> bool {
        matches!(self.kind, Kind::Bytes { .. })
    }

    /// The integer in a row, if there is one; `before` is the row before it of the same owner.
    pub fn integer(&self, before: Option<&R>, row: &R) -> Option<u64> {
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

/// What can be in a cell.
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
    /// What it is before anything is known of it.
    const EMPTY: Self;
}

/// A table: whose its rows are, and its columns.
pub(super) trait Table {
    /// What the table is about, which is the name of its files too.
    const NAME: &'static str;
    /// The names of the columns that say whose a row is, and what they say.
    const KEYS: &'static [(&'static str, &'static str)];
    /// What has rows.
    type Owner: 'static;
    /// What they are.
    type Row: Clone + 'static;
    /// What is said of an owner once and not in every row.
    fn attributes() -> &'static [Column<Self::Owner>];
    /// The columns of a row.
    fn columns() -> &'static [Column<Self::Row>];
    /// A row before its cells are set.
    fn blank() -> Self::Row;
    /// What stands in the columns of [`KEYS`](Self::KEYS).
    fn key(owner: &Self::Owner) -> Vec<&str>;
    /// An owner without rows; none if this is no key.
    fn owner(key: &[String]) -> Option<Self::Owner>;
    /// Its rows.
    fn rows(owner: &Self::Owner) -> &[Self::Row];
    /// Its rows, to add to.
    fn rows_mut(owner: &mut Self::Owner) -> &mut Vec<Self::Row>;
}

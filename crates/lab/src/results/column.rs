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
    /// An integer. Where it is `optional`, there may be none.
    Integer {
        optional: bool,
        get: fn(&R) -> Option<u64>,
        set: fn(&mut R, Option<u64>) -> Option<()>,
    },
    /// Data other than a number. It is not in the comma-separated values.
    Bytes { get: fn(&R) -> &[u8], set: fn(&mut R, &[u8]) -> Option<()> },
    /// A value derived from a row and the one before it. It is written for people, and not read back.
    Derived { get: fn(Option<&R>, &R) -> Option<u64> },
}

impl<R> Column<R> {
    /// Whether some of its cells may be empty.
    pub(crate) fn is_optional(&self) -> bool {
        matches!(self.kind, Kind::Integer { optional: true, .. } | Kind::Derived { .. })
    }

    /// Whether its cells are bytes and no integers.
    pub(crate) fn is_bytes(&self) -> bool {
        matches!(self.kind, Kind::Bytes { .. })
    }

    /// The integer in a row, if there is one; `before` is the row before it of the same owner.
    pub(crate) fn integer(&self, before: Option<&R>, row: &R) -> Option<u64> {
        match self.kind {
            Kind::Integer { get, .. } => get(row),
            Kind::Derived { get } => get(before, row),
            Kind::Bytes { .. } => None,
        }
    }

    /// Puts an integer into a row. None if it cannot be one.
    pub(super) fn set(&self, row: &mut R, cell: Option<u64>) -> Option<()> {
        match self.kind {
            Kind::Integer { set, .. } => set(row, cell),
            Kind::Derived { .. } => Some(()),
            Kind::Bytes { .. } => None,
        }
    }
}

/// The type of a field that is a cell.
pub(super) trait Cell: Copy {
    /// Whether it may be empty.
    const OPTIONAL: bool = false;

    fn into_cell(self) -> Option<u64>;

    /// None if it is out of range.
    fn from_cell(cell: Option<u64>) -> Option<Self>;
}

macro_rules! cells {
    ($($type:ty: $value:ident => $into:expr, $cell:ident => $from:expr;)*) => {$(
        impl Cell for $type {
            fn into_cell(self) -> Option<u64> {
                let $value = self;
                Some($into)
            }

            fn from_cell(cell: Option<u64>) -> Option<Self> {
                let $cell = cell?;
                $from
            }
        }
    )*};
}

cells! {
    u64: value => value, cell => Some(cell);
    u32: value => value.into(), cell => cell.try_into().ok();
    usize: value => value as u64, cell => cell.try_into().ok();
    Instant: value => value.as_nanos(), cell => Some(Instant::from_nanos(cell));
    Duration: value => value.as_nanos(), cell => Some(Duration::from_nanos(cell));
    Rate: value => value.bits_per_sec(), cell => Rate::from_bits_per_sec(cell);
}

impl<T: Cell> Cell for Option<T> {
    const OPTIONAL: bool = true;

    fn into_cell(self) -> Option<u64> {
        self?.into_cell()
    }

    fn from_cell(cell: Option<u64>) -> Option<Self> {
        match cell {
            Some(_) => T::from_cell(cell).map(Some),
            None => Some(None),
        }
    }
}

/// Whether the cells of a field may be empty.
pub(super) const fn is_optional<R, T: Cell>(_: fn(&R) -> T) -> bool {
    T::OPTIONAL
}

/// Columns of a row type, one a line: its name, what it says, and the field where it is.
///
/// - `in part`: a field of a part of the row that may not be there: `part` is an `Option`.
/// - `bytes`: a field, how it is turned into bytes, and how these are turned into it, if they can be.
/// - `derived`: how it follows from the row before, if there is one, and the row.
macro_rules! columns {
    ($row:ty: $($lines:tt)*) => { columns!(@ $row, [] $($lines)*) };
    (@ $row:ty, [$($done:expr,)*]) => { [$($done),*] };
    (@ $row:ty, [$($done:expr,)*] $name:literal, $doc:literal, $($field:tt).+; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Integer {
            optional: is_optional(|row: &$row| row.$($field).+),
            get: |row| Cell::into_cell(row.$($field).+),
            set: |row, cell| {
                row.$($field).+ = Cell::from_cell(cell)?;
                Some(())
            },
        } },] $($rest)*)
    };
    (@ $row:ty, [$($done:expr,)*] in $part:ident $name:literal, $doc:literal, $field:ident; $($rest:tt)*) => {
        columns!(@ $row, [$($done,)* Column::<$row> { name: $name, doc: $doc, kind: Kind::Integer {
            optional: true,
            get: |row| Cell::into_cell(row.$part.as_ref()?.$field),
            set: |row, cell| {
                if cell.is_some() {
                    row.$part.get_or_insert_default().$field = Cell::from_cell(cell)?;
                }
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

/// A table: whose its rows are, and its columns. A row begins as its type's default before its cells are set.
pub(super) struct Table<O: 'static, R: 'static> {
    /// The subject of the table, which is also the name of its files.
    pub(super) name: &'static str,
    /// The names of the columns that name a row's owner, and their descriptions.
    pub(super) keys: &'static [(&'static str, &'static str)],
    /// Attributes of an owner, stored once and not in every row.
    pub(super) attributes: &'static [Column<O>],
    /// The columns of a row.
    pub(super) columns: &'static [Column<R>],
    /// The values of the columns of `keys`.
    pub(super) key: fn(&O) -> Vec<&str>,
    /// An owner without rows; none if this is no key.
    pub(super) owner: fn(&[String]) -> Option<O>,
    pub(super) rows: fn(&O) -> &[R],
    /// Its rows, to add to.
    pub(super) rows_mut: fn(&mut O) -> &mut Vec<R>,
}

//! The parts of a report besides its charts: a verdict, pictures and tables.

use super::{Hue, Svg};

/// The overall result, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether everything is as it must be.
    pub(crate) passed: bool,
    /// The sentence.
    pub(crate) text: String,
}

/// A picture or a table.
#[derive(Clone, Debug)]
pub enum Block {
    /// A picture.
    Drawing(Drawing),
    /// A table.
    Table(Table),
}

/// A picture as SVG.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The heading.
    pub(crate) title: String,
    /// A sentence on how to read it; may be empty.
    pub(crate) caption: String,
    /// The same as text, for readers who cannot see it.
    pub(crate) alternative: String,
    /// The picture.
    pub(crate) picture: Svg,
}

/// A table.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Table {
    /// The heading.
    pub title: String,
    /// A sentence on how to read it; may be empty.
    pub caption: String,
    /// The headings of its columns.
    pub(crate) head: Vec<Heading>,
    /// The lines.
    pub rows: Vec<Vec<Cell>>,
}

/// The heading of a column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heading {
    /// The text.
    pub(crate) text: String,
    /// Whether the column has numbers, which are aligned right.
    pub(crate) number: bool,
}

impl From<&str> for Heading {
    fn from(text: &str) -> Heading {
        let number = text.ends_with('#');
        Heading { text: text.strip_suffix('#').unwrap_or(text).into(), number }
    }
}

/// A field of a table.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The colour of the curves that are about the same.
    pub hue: Option<Hue>,
    /// Whether it is as it must be, where that is a question.
    pub verdict: Option<bool>,
    /// A file beside the page, or below it, with details.
    pub link: Option<String>,
}

impl Table {
    /// A table without lines. A heading that ends in `#` is one of numbers.
    pub fn new(title: impl Into<String>, head: &[&str]) -> Table {
        let head = head.iter().map(|text| Heading::from(*text));
        Table { title: title.into(), head: head.collect(), ..Table::default() }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
}

impl Cell {
    /// The field of something drawn in this colour.
    pub(crate) fn hue(self, hue: Option<Hue>) -> Cell {
        Cell { hue, ..self }
    }

    /// Marks the field as passed or failed.
    pub(crate) fn verdict(self, passed: bool) -> Cell {
        Cell { verdict: Some(passed), ..self }
    }

    /// Leads to a file. `path` is relative to the page.
    pub(crate) fn link(self, path: impl Into<String>) -> Cell {
        Cell { link: Some(path.into()), ..self }
    }
}

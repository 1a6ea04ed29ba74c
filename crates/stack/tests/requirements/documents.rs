//! The documents whose requirements are kept in tables, and how each names them.

use crate::table::Kind;

/// How the ids of a document are made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ids {
    /// The document labels its requirements: so many of each series, counted from 1, and no prefix.
    Labels(&'static [(&'static str, u32)]),
    /// It has no labels. An id is the document, the section and a number that counts from 1 within the section: `RFC8200-4.5-1`.
    Sections,
}

/// A document with a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Document {
    /// The number of the RFC.
    pub(crate) number: u16,
    /// What the page says about the order of its rows.
    pub(crate) order: &'static str,
    pub(crate) ids: Ids,
    /// Where the document lists its own requirements, and how many rows of each keyword are there, in the order of [`Kind::ALL`].
    pub(crate) list: Option<(&'static str, [usize; 5])>,
    /// Whether there is a page on what programs see of it.
    pub(crate) applications: bool,
}

/// Every document, in the order in which they are checked.
pub(crate) const ALL: [Document; 5] = [
    Document {
        number: 9293,
        order: "in the order of the RFC's Appendix B",
        ids: Ids::Labels(&[("MUST", 69), ("SHLD", 31), ("MAY", 18), ("REC", 1)]),
        list: Some(("Appendix B", [68, 8, 30, 5, 15])),
        applications: true,
    },
    Document {
        number: 8200,
        order: "in the order of the RFC",
        ids: Ids::Sections,
        list: None,
        applications: false,
    },
    Document {
        number: 4443,
        order: "in the order of the RFC",
        ids: Ids::Sections,
        list: None,
        applications: false,
    },
    Document {
        number: 1122,
        order: "in the order of the RFC's section 3.5, which lists those of section 3",
        ids: Ids::Sections,
        list: Some(("section 3.5", RFC1122_ROWS)),
        applications: false,
    },
    Document {
        number: 792,
        order: "in the order of the RFC; the RFC numbers no sections, so those are its pages",
        ids: Ids::Sections,
        list: None,
        applications: false,
    },
];

/// The rows of section 3.5, without the last one, which is a joke.
const RFC1122_ROWS: [usize; 5] = [80, 12, 31, 5, 26];

impl Document {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        format!("RFC {}", self.number)
    }

    /// The name of its table without an ending: `rfc9293`.
    pub(crate) fn file(&self) -> String {
        format!("rfc{}", self.number)
    }

    /// The beginning of its ids, if it has no labels.
    fn prefix(&self) -> String {
        format!("RFC{}-", self.number)
    }

    /// The document that a marker's id belongs to, if it can be one's at all.
    pub(crate) fn of(id: &str) -> Option<&'static Document> {
        ALL.iter().find(|document| match document.ids {
            Ids::Labels(_) => !id.starts_with("RFC"),
            Ids::Sections => id.starts_with(&document.prefix()),
        })
    }

    /// Every id, where the document itself says which there are.
    pub(crate) fn labels(&self) -> Vec<String> {
        let Ids::Labels(series) = self.ids else { return vec![] };
        let series = series.iter();
        series
            .flat_map(|(prefix, last)| (1..=*last).map(move |n| format!("{prefix}-{n}")))
            .collect()
    }

    /// The id of the requirement with this number in a section.
    pub(crate) fn section_id(&self, section: &str, number: usize) -> String {
        format!("{}{section}-{number}", self.prefix())
    }

    /// Whether an id may carry this keyword. Only labels say it (RFC 9293, 2.1: the negations share the series).
    pub(crate) fn fits(&self, id: &str, kind: Kind) -> bool {
        let label = id.split_once('-').map_or("", |(label, _)| label);
        match (self.ids, kind) {
            (Ids::Sections, _) => true,
            (_, Kind::Must | Kind::MustNot) => label == "MUST",
            (_, Kind::Should) => label == "SHLD" || label == "REC",
            (_, Kind::ShouldNot) => label == "SHLD",
            (_, Kind::May) => label == "MAY",
        }
    }

    /// How many rows of the document's own list have this keyword.
    pub(crate) fn listed(&self, kind: Kind) -> Option<usize> {
        let (_, rows) = self.list?;
        Kind::ALL.iter().position(|other| *other == kind).and_then(|at| rows.get(at).copied())
    }
}

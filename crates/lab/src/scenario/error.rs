//! Errors of a scenario, and their positions.

use super::render;
use super::sweep::Setting;
use super::tree::Span;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(crate) enum Problem {
    #[error("this is not TOML: {0}")]
    Syntax(String),
    #[error("there is no `{key}` here")]
    UnknownKey { key: String, known: Vec<String> },
    #[error("`{key}` is missing")]
    MissingKey { key: String },
    #[error("expected {expected}, found {found}")]
    WrongType { found: String, expected: String },
    /// Something else than one of a few words.
    #[error("there is no `{choice}` to choose")]
    UnknownChoice { choice: String, known: Vec<String> },
    /// The value says in its own words what is wrong with it.
    #[error("{0}")]
    Value(String),
    /// A time or a number that must not be zero.
    #[error("`{key}` must be above zero")]
    Zero { key: &'static str },
    #[error("`{key}` is {value}, but must be {bound}")]
    OutOfBounds { key: &'static str, value: String, bound: String },
    /// Something that cannot be the name of anything.
    #[error("`{0}` cannot be a name")]
    BadName(String),
    #[error("there are two {what} called `{name}`")]
    Duplicate { what: &'static str, name: String },
    #[error("there is no {what} called `{name}`")]
    UnknownName { what: &'static str, name: String, known: Vec<String> },
    /// A flow ends at a router.
    #[error("`{0}` is a router, and flows begin and end at hosts")]
    NotAHost(String),
    /// Two groups of different sizes cannot be paired.
    #[error(
        "`{from}` has {from_count} hosts and `{to}` has {to_count}: pairs need as many of each"
    )]
    UnequalGroups { from: String, from_count: usize, to: String, to_count: usize },
    #[error("this {what} leads from `{node}` to itself")]
    ToItself { what: &'static str, node: String },
    #[error("no link leads to `{0}`")]
    NoLink(String),
    /// No way through routers from one host to another.
    #[error("no path leads from `{from}` to `{to}`")]
    Unreachable { from: String, to: String },
    /// Hosts that no flow needs, but that cannot reach each other.
    #[error("no links join `{0}` and `{1}`: every two hosts need a path")]
    Disconnected(String, String),
    #[error("the scenario has no {0}")]
    Nothing(&'static str),
    #[error("{count} {what} are more than the {limit} that a scenario may have")]
    TooMany { what: &'static str, count: u64, limit: u64 },
    /// More than any machine can do, by what it is estimated to take.
    #[error("{what}")]
    TooCostly { what: String, hint: String },
    /// A sweep sets something that the scenario has not.
    #[error("the sweep's path names no parameter: there is no `{0}`")]
    SweepPath(String),
    /// A form sets something of an item that the scenario has not.
    #[error("the form changes an unknown parameter: there is no `{0}`")]
    FormPath(String),
    /// A sweep that takes the lists side by side, with lists of different lengths.
    #[error(
        "with `zip`, all lists are of one length, but this has {here} values and the first has {first}"
    )]
    UnequalLists { here: usize, first: usize },
    #[error("{0}")]
    Conflict(String),
}

impl Problem {
    /// A hint, if there is one.
    fn hint(&self) -> Option<String> {
        match self {
            Problem::UnknownKey { key, known } | Problem::UnknownChoice { choice: key, known } => {
                Some(did_you_mean(key, known).unwrap_or_else(|| choices(known)))
            }
            Problem::UnknownName { name, known, .. } => {
                did_you_mean(name, known).or_else(|| (!known.is_empty()).then(|| choices(known)))
            }
            Problem::Duplicate { what: "links", .. } => Some("give one of them a `name`".into()),
            Problem::BadName(_) => {
                Some("names begin with a letter and go on with letters, digits, `-` and `_`".into())
            }
            Problem::NotAHost(_) => Some("add a host, and a link from it to the router".into()),
            Problem::NoLink(node) => {
                Some(format!("join it to the network: [[links]] from = \"{node}\", to = …"))
            }
            Problem::Unreachable { .. } => {
                Some("ways lead over links and routers; hosts do not forward".into())
            }
            Problem::UnequalGroups { .. } => {
                Some("pair a group with a single node, or with a group of the same size".into())
            }
            Problem::TooCostly { hint, .. } => Some(hint.clone()),
            Problem::SweepPath(_) => Some(
                "a path is made of names and dots, such as topology.bottleneck.rate or flows.NAME.size"
                    .into(),
            ),
            _ => None,
        }
    }
}

/// The one of `known` that was probably meant by `word`.
pub(crate) fn suggest<'a>(word: &str, known: &'a [String]) -> Option<&'a String> {
    let (distance, best) = known
        .iter()
        .map(|one| (strsim::osa_distance(word, one), one))
        .min_by_key(|(distance, _)| *distance)?;
    // One letter in three may be wrong.
    (distance <= word.chars().count().div_ceil(3)).then_some(best)
}

fn did_you_mean(word: &str, known: &[String]) -> Option<String> {
    suggest(word, known).map(|best| format!("did you mean `{best}`?"))
}

/// The choices, unless they are too many to read.
fn choices(known: &[String]) -> String {
    const SHOWN: usize = 16;
    let shown: Vec<&str> = known.iter().take(SHOWN).map(String::as_str).collect();
    let more = known.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there is {}{more}", shown.join(", "))
}

/// A problem and its place, as people count: from one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The problem, in a sentence.
    pub message: String,
    /// How it can be mended, if that can be said.
    pub hint: Option<String>,
    /// The sweep's values with which it is wrong, if it is not with all.
    pub with: Option<String>,
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
    /// The place in bytes; none of a file that could not be read.
    #[serde(skip)]
    pub(super) span: Option<Span>,
}

/// Problems found so far. The same problem at the same place counts once, however many points of a sweep have it.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: BTreeMap<(usize, usize, Problem), Found>,
    /// The number of points checked so far, and the values of the last.
    points: usize,
    with: Option<String>,
}

/// At which points of the sweep a problem was found.
#[derive(Debug)]
struct Found {
    with: Option<String>,
    points: usize,
    last: usize,
}

impl Problems {
    /// The most errors that are reported.
    const MAX_ERRORS: usize = 100;

    /// From now on, what is found is found at the point with these values.
    pub(crate) fn at_point(&mut self, settings: &[Setting]) {
        let texts: Vec<String> = settings.iter().map(Setting::to_string).collect();
        self.with = (!texts.is_empty()).then(|| texts.join(", "));
        self.points += 1;
    }

    pub(crate) fn add(&mut self, span: Span, problem: Problem) {
        let with = &self.with;
        let found = self.found.entry((span.start, span.end, problem)).or_insert_with(|| Found {
            with: with.clone(),
            points: 0,
            last: 0,
        });
        if found.last != self.points {
            found.last = self.points;
            found.points += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn are_enough(&self) -> bool {
        self.found.len() >= Self::MAX_ERRORS
    }

    pub(crate) fn into_errors(self, name: &str, text: &Arc<str>) -> Errors {
        let Problems { found, points, with: _ } = self;
        let diagnostics = found
            .into_iter()
            .map(|((start, end, problem), found)| {
                // A mistake at every point has nothing to do with the sweep.
                let with = found.with.filter(|_| found.points < points);
                let (line, column) = render::place(text, start);
                let (message, hint) = (problem.to_string(), problem.hint());
                Diagnostic { message, hint, with, line, column, span: Some(start..end) }
            })
            .collect();
        Errors { name: name.into(), text: text.clone(), diagnostics }
    }
}

/// Everything that is wrong with a scenario, in the order of its text. Displayed, each problem quotes its line.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Errors {
    /// The file's name.
    pub name: String,
    text: Arc<str>,
    /// The errors.
    pub diagnostics: Vec<Diagnostic>,
}

impl Errors {
    /// A file that could not be read.
    pub(crate) fn unreadable(name: &str, error: &std::io::Error) -> Self {
        let message = format!("the file cannot be read: {error}");
        let one = Diagnostic { message, hint: None, with: None, line: 1, column: 1, span: None };
        Errors { name: name.into(), text: Arc::from(""), diagnostics: vec![one] }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in self.diagnostics.iter().take(Problems::MAX_ERRORS) {
            render::diagnostic(f, &self.name, &self.text, diagnostic)?;
            writeln!(f)?;
        }
        match self.diagnostics.len() {
            many if many > Problems::MAX_ERRORS => {
                let (shown, name) = (Problems::MAX_ERRORS, &self.name);
                write!(f, "{many} problems in {name}, of which {shown} are shown; nothing was run")
            }
            1 => write!(f, "1 problem in {}; nothing was run", self.name),
            many => write!(f, "{many} problems in {}; nothing was run", self.name),
        }
    }
}

// A panic message that people can read.
impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Errors {}

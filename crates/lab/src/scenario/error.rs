//! Errors of a scenario, and their positions.

use super::render;
use super::sweep::Setting;
use super::tree::Span;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// The text is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// The key is unknown.
    #[error("there is no `{key}` here")]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys there are.
        known: Vec<String>,
    },
    /// A key that is needed is not there.
    #[error("`{key}` is missing")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A value of another type was expected.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The present value.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// Something else than one of a few words.
    #[error("there is no `{choice}` to choose")]
    UnknownChoice {
        /// The present value.
        choice: String,
        /// The known values.
        known: Vec<String>,
    },
    /// The value says in its own words what is wrong with it.
    #[error("{0}")]
    Value(String),
    /// A time or a number that must not be zero.
    #[error("`{key}` must be above zero")]
    Zero {
        /// The key.
        key: &'static str,
    },
    /// A time that is too long.
    #[error("`{key}` is {value}, but must be {bound}")]
    OutOfBounds {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The required bound.
        bound: String,
    },
    /// Something that cannot be the name of anything.
    #[error("`{0}` cannot be a name")]
    BadName(String),
    /// Two things have the same name.
    #[error("there are two {what} called `{name}`")]
    Duplicate {
        /// Their kind: hosts, links, flows.
        what: &'static str,
        /// Their name.
        name: String,
    },
    /// Nothing has this name.
    #[error("there is no {what} called `{name}`")]
    UnknownName {
        /// The owner of the missing value.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A flow ends at a router.
    #[error("`{0}` is a router, and flows begin and end at hosts")]
    NotAHost(String),
    /// Two groups of different sizes cannot be paired.
    #[error(
        "`{from}` has {from_count} hosts and `{to}` has {to_count}: pairs need as many of each"
    )]
    UnequalGroups {
        /// One group.
        from: String,
        /// How many it has.
        from_count: usize,
        /// The other group.
        to: String,
        /// How many it has.
        to_count: usize,
    },
    /// A link or flow from a node to itself.
    #[error("this {what} leads from `{node}` to itself")]
    ToItself {
        /// A link or a flow.
        what: &'static str,
        /// The node.
        node: String,
    },
    /// A node that no link leads to.
    #[error("no link leads to `{0}`")]
    NoLink(String),
    /// No way through routers from one host to another.
    #[error("no path leads from `{from}` to `{to}`")]
    Unreachable {
        /// The first node of the flow.
        from: String,
        /// The last node of the flow.
        to: String,
    },
    /// Hosts that no flow needs, but that cannot reach each other.
    #[error("no links join `{0}` and `{1}`: every two hosts need a path")]
    Disconnected(String, String),
    /// There is nothing of this.
    #[error("the scenario has no {0}")]
    Nothing(&'static str),
    /// Too many of something.
    #[error("{count} {what} are more than the {limit} that a scenario may have")]
    TooMany {
        /// Hosts, links, flows, points of a sweep.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
    /// More than any machine can do, by what it is estimated to take.
    #[error("{what}")]
    TooCostly {
        /// The estimate, and the most there may be.
        what: String,
        /// Which keys to change.
        hint: String,
    },
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
    UnequalLists {
        /// How many values this list has.
        here: usize,
        /// How many the first has.
        first: usize,
    },
    /// Two things that exclude each other.
    #[error("{0}")]
    Conflict(String),
}

impl Problem {
    /// A hint, if there is one.
    pub fn hint(&self) -> Option<String> {
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

/// A problem and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The problem.
    pub problem: Problem,
    /// The place, in bytes from the start of the text.
    pub span: Span,
    /// The sweep's values with which it is wrong, if it is not with all.
    pub with: Option<String>,
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
                Diagnostic { problem, span: start..end, with }
            })
            .collect();
        Errors { name: name.into(), text: text.clone(), diagnostics }
    }
}

/// Everything that is wrong with a scenario, in the order of its text. Displayed, each problem quotes its line.
#[derive(Clone, PartialEq, Eq)]
pub struct Errors {
    name: String,
    text: Arc<str>,
    diagnostics: Vec<Diagnostic>,
}

/// A place as people count: from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Errors {
    /// A file that could not be read.
    pub(crate) fn unreadable(name: &str, error: &std::io::Error) -> Self {
        let mut problems = Problems::default();
        problems.add(0..0, Problem::Unreadable(error.to_string()));
        problems.into_errors(name, &Arc::from(""))
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The errors.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The place of a problem in the text.
    pub fn place(&self, diagnostic: &Diagnostic) -> Place {
        render::place(&self.text, diagnostic.span.start)
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

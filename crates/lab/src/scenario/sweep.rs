//! `[sweep]`: the same experiment with other values.
//!
//! Each key is a path to a value of the scenario and has a list of values, an *axis*. The points are all combinations: the axis written last varies
//! fastest. With `zip = true` the lists are combined side by side instead. A value replaces the one at its path before anything else is read. So
//! everything that can be written can be swept, parameters of presets too, and errors are shown in the list of the sweep.

use super::error::{Problem, Problems};
use super::tree::{Entry, Node, Span, Table, Value};
use std::fmt;

/// More points than anybody waits for.
pub(super) const MOST_POINTS: u64 = 100_000;

/// The swept values, and their combination.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    pub(super) axes: Vec<Axis>,
    zip: bool,
}

/// A path and its values.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) path: String,
    key: Span,
    pub(super) values: Vec<Node>,
}

/// A path and the value it has at a point of the sweep.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting {
    /// The path, such as `topology.bottleneck.rate`.
    pub path: String,
    /// The value as TOML has it; a text without its quotes.
    pub value: String,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.path, self.value)
    }
}

/// The shortest ends of paths that tell these paths apart.
///
/// ```
/// use transom_lab::scenario::short_paths;
///
/// let paths = ["topology.bottleneck.loss", "hosts.a.profile.tcp", "hosts.b.profile.tcp"];
/// assert_eq!(short_paths(&paths), ["loss", "a.profile.tcp", "b.profile.tcp"]);
/// ```
pub fn short_paths<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let ends_with = |path: &str, end: &str| {
        path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let short = |path: &&'a str| {
        let ends = path.rmatch_indices('.').filter_map(|(dot, _)| path.get(dot + 1..));
        let mut alone =
            ends.filter(|end| paths.iter().all(|other| other == path || !ends_with(other, end)));
        alone.next().unwrap_or(path)
    };
    paths.iter().map(short).collect()
}

/// Settings in one line: `loss = 0.01, a.profile.tcp = cubic`. The paths are [short](short_paths).
pub fn short_settings(settings: &[Setting]) -> String {
    let paths: Vec<&str> = settings.iter().map(|one| one.path.as_str()).collect();
    let named = short_paths(&paths).into_iter().zip(settings);
    named.map(|(path, one)| format!("{path} = {}", one.value)).collect::<Vec<_>>().join(", ")
}

impl Sweep {
    /// Reads the section.
    pub(super) fn read(tree: &Table, problems: &mut Problems) -> Sweep {
        let mut sweep = Sweep::default();
        let Some(section) = tree.get("sweep") else { return sweep };
        let Value::Table(table) = &section.value else {
            problems.add(section.span.clone(), wrong_type(&section.value, "a table"));
            return sweep;
        };
        for (key, entry) in table.as_written() {
            match (key, &entry.node.value) {
                ("zip", Value::Boolean(zip)) => sweep.zip = *zip,
                ("zip", other) => {
                    problems.add(entry.node.span.clone(), wrong_type(other, "true or false"));
                }
                _ => sweep.add(key.into(), entry, problems),
            }
        }
        sweep.axes.sort_by_key(|axis| axis.key.start);
        if sweep.zip {
            let first = sweep.axes.first().map_or(0, |axis| axis.values.len());
            for axis in sweep.axes.iter().filter(|axis| axis.values.len() != first) {
                let here = axis.values.len();
                problems.add(axis.key.clone(), Problem::UnequalLists { here, first });
            }
        }
        let points = sweep.product();
        if points > MOST_POINTS {
            let problem =
                Problem::TooMany { what: "points of the sweep", count: points, limit: MOST_POINTS };
            problems.add(section.span.clone(), problem);
        }
        sweep
    }

    /// Paths may be written in quotes, or as TOML's own dotted keys.
    fn add(&mut self, path: String, entry: &Entry, problems: &mut Problems) {
        let span = entry.node.span.clone();
        match &entry.node.value {
            Value::List(values) if values.is_empty() => {
                problems.add(span, Problem::Nothing("value to sweep over in this list"));
            }
            Value::List(values) => {
                if path == "scenario.seeds"
                    || matches!(
                        path.split('.').next(),
                        Some("sweep" | super::form::SECTION | super::paper::SECTION)
                    )
                {
                    let problem = Problem::Conflict(format!("`{path}` cannot be swept"));
                    problems.add(entry.key.clone(), problem);
                    return;
                }
                self.axes.push(Axis { path, key: entry.key.clone(), values: values.clone() });
            }
            Value::Table(table) => {
                for (key, entry) in table.as_written() {
                    self.add(format!("{path}.{key}"), entry, problems);
                }
            }
            other => problems.add(span, wrong_type(other, "a list of values")),
        }
    }

    fn product(&self) -> u64 {
        let lengths = self.axes.iter().map(|axis| axis.values.len() as u64);
        if self.zip && !self.axes.is_empty() {
            lengths.min().unwrap_or(0)
        } else {
            lengths.fold(1, u64::saturating_mul)
        }
    }

    /// How many points there are; without a sweep, one.
    pub(super) fn points(&self) -> usize {
        usize::try_from(self.product().min(MOST_POINTS)).unwrap_or(usize::MAX)
    }

    /// Which value of each axis a point has.
    pub(super) fn indices(&self, point: usize) -> Vec<usize> {
        if self.zip {
            return vec![point; self.axes.len()];
        }
        let mut left = point;
        let mut indices: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let index = left % axis.values.len();
                left /= axis.values.len();
                index
            })
            .collect();
        indices.reverse();
        indices
    }

    /// The point that has these values of axes, and is otherwise as `point`, if there is one. Lists that go side by side are there together: the first
    /// point that has all the values.
    pub(super) fn point_at(&self, chosen: &[(usize, usize)], point: usize) -> Option<usize> {
        let has_all = |point: &usize| {
            let indices = self.indices(*point);
            chosen.iter().all(|&(axis, index)| self.has(axis, &indices, index))
        };
        if self.zip {
            return if chosen.is_empty() { Some(point) } else { (0..self.points()).find(has_all) };
        }
        let mut indices = self.indices(point);
        for &(axis, index) in chosen {
            *indices.get_mut(axis)? = index;
        }
        let each = self.axes.iter().zip(indices);
        Some(each.fold(0, |point, (axis, index)| point * axis.values.len() + index))
    }

    /// Whether an axis has, at these places in the lists, the value that it has at `index`: a list can have a value twice.
    pub(super) fn has(&self, axis: usize, indices: &[usize], index: usize) -> bool {
        let value = |index: &usize| self.axes.get(axis)?.values.get(*index).map(|node| &node.value);
        indices.get(axis).and_then(value) == value(&index)
    }

    /// The axes' values at a point.
    pub(super) fn values(&self, point: usize) -> impl Iterator<Item = (&Axis, &Node)> {
        let each = self.axes.iter().zip(self.indices(point));
        each.filter_map(|(axis, index)| Some((axis, axis.values.get(index)?)))
    }

    /// The axes' values at a point, as texts.
    pub(super) fn settings(&self, point: usize) -> Vec<Setting> {
        self.values(point)
            .map(|(axis, node)| Setting { path: axis.path.clone(), value: node.value.to_string() })
            .collect()
    }

    /// The scenario at a point.
    pub(super) fn apply(&self, tree: &Table, point: usize, problems: &mut Problems) -> Table {
        let mut tree = tree.clone();
        for (axis, value) in self.values(point) {
            let steps: Vec<&str> = axis.path.split('.').collect();
            if let Err(missing) = set(&mut tree, &steps, &axis.key, value) {
                problems.add(axis.key.clone(), Problem::SweepPath(missing));
            }
        }
        tree
    }
}

/// Puts `value` where `steps` lead. Tables on the way that are not there are made: whether they may be there is found out when the
/// scenario is read. In a list, a step is the `name` of an item, or its number from zero.
pub(super) fn set(
    table: &mut Table,
    steps: &[&str],
    key: &Span,
    value: &Node,
) -> Result<(), String> {
    let (step, rest) = match steps {
        [] => return Ok(()),
        [last] => {
            let entry = Entry { key: key.clone(), node: value.clone() };
            // The key of what is replaced stays where it is written: only its value is another.
            let place = table.0.get(*last).map_or(key.clone(), |entry| entry.key.clone());
            table.0.insert((*last).into(), Entry { key: place, ..entry });
            return Ok(());
        }
        [step, rest @ ..] => (*step, rest),
    };
    let empty = || Entry {
        key: key.clone(),
        node: Node { span: key.clone(), value: Value::Table(Table::default()) },
    };
    let entry = table.0.entry(step.into()).or_insert_with(empty);
    let within = |missing: String| format!("{step}.{missing}");
    match &mut entry.node.value {
        Value::Table(table) => set(table, rest, key, value).map_err(within),
        Value::List(list) => {
            let Some((item, rest)) = rest.split_first() else { return Err(step.into()) };
            // A link without a name is called by its ends.
            let named = |node: &Node| {
                let text = |key| node.table()?.get(key)?.text();
                match (text("name"), text("from"), text("to")) {
                    (Some(name), ..) => name == *item,
                    (None, Some(from), Some(to)) => format!("{from}-{to}") == *item,
                    _ => false,
                }
            };
            let index = list
                .iter()
                .position(named)
                .or_else(|| item.parse().ok().filter(|index| *index < list.len()));
            let node = index.and_then(|index| list.get_mut(index));
            match node {
                Some(node) if rest.is_empty() => {
                    *node = value.clone();
                    Ok(())
                }
                Some(Node { value: Value::Table(table), .. }) => set(table, rest, key, value)
                    .map_err(|missing| format!("{step}.{item}.{missing}")),
                _ => Err(format!("{step}.{item}")),
            }
        }
        _ => Err(format!("{step}.{}", rest.join("."))),
    }
}

/// A value that is not of the type that is needed.
pub(super) fn wrong_type(value: &Value, expected: &str) -> Problem {
    let found = match value {
        Value::Text(text) => format!("the text {text:?}"),
        Value::Integer(integer) => format!("the number {integer}"),
        Value::Decimal(text) => format!("the number {text}"),
        Value::Boolean(boolean) => format!("`{boolean}`"),
        Value::Date(date) => format!("the date {date}"),
        Value::List(_) => "a list".into(),
        Value::Table(_) => "a table".into(),
    };
    Problem::WrongType { found, expected: expected.into() }
}

impl Axis {
    /// Which of the values this is.
    pub(super) fn index_of(&self, value: &Value) -> Option<usize> {
        self.values.iter().position(|node| node.value == *value)
    }

    /// The values, as texts.
    pub(super) fn texts(&self) -> Vec<String> {
        self.values.iter().map(|node| node.value.to_string()).collect()
    }
}

//! A TOML document as a tree in which every key and value knows where it was written.
//!
//! Every message about a scenario points into its text. So positions have to survive the steps before decoding. A sweep
//! replaces values, and options of a link are copied to both of its directions. A moved value keeps its position.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Bytes of the text.
pub(crate) type Span = Range<usize>;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// A value. A number with a fraction stays as it was written.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Decimal(String),
    Boolean(bool),
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// A key's place, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Span,
    pub(crate) node: Node,
}

/// Entries by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) BTreeMap<String, Entry>);

/// One step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Step::Key(key.into())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Step::Index(index)
    }
}

/// The way to a value from the steps' names and numbers.
macro_rules! way {
    ($($step:expr),* $(,)?) => { &[$($crate::scenario::tree::Step::from($step)),*] };
}
pub(crate) use way;

/// An integer that is beyond 64 bits, and where.
pub(crate) struct TooLarge(pub(crate) Span);

impl Table {
    /// Takes over a parsed table.
    pub(crate) fn new(table: &DeTable<'_>, too_large: &mut Vec<TooLarge>) -> Self {
        let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let node = Node::new(value, too_large);
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            (name.to_string(), Entry { key: key.span(), node })
        };
        Table(table.iter().map(entry).collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.0.get(key).map(|entry| &entry.node)
    }

    /// Keys and values in the order in which they are written.
    pub(crate) fn as_written(&self) -> Vec<(&str, &Entry)> {
        let mut entries: Vec<_> = self.0.iter().map(|(key, entry)| (key.as_str(), entry)).collect();
        entries.sort_by_key(|(_, entry)| (entry.key.start, entry.node.span.start));
        entries
    }

    /// The value at the end of `path`.
    pub(crate) fn find(&self, path: &[Step]) -> Option<&Node> {
        let (first, rest) = path.split_first()?;
        let Step::Key(key) = first else { return None };
        rest.iter().try_fold(self.get(key)?, |node, step| match (step, &node.value) {
            (Step::Key(key), Value::Table(table)) => table.get(key),
            (Step::Index(index), Value::List(list)) => list.get(*index),
            _ => None,
        })
    }

    /// The place of the value at the end of `path`, or of the last thing on the way to it that is there.
    pub(crate) fn span(&self, path: &[Step]) -> Span {
        (1..=path.len())
            .rev()
            .find_map(|len| self.find(path.get(..len)?))
            .map_or(0..0, |node| node.span.clone())
    }

    /// The place of the key at the end of `path`, or as [`Table::span`] has it.
    pub(crate) fn key_span(&self, path: &[Step]) -> Span {
        let key = || {
            let (Step::Key(last), before) = path.split_last()? else { return None };
            let table = match before {
                [] => self,
                _ => self.find(before)?.table()?,
            };
            table.0.get(last).map(|entry| entry.key.clone())
        };
        key().unwrap_or_else(|| self.span(path))
    }

    /// Takes out what is at the end of `path`.
    pub(crate) fn remove(&mut self, path: &[Step]) -> bool {
        match path {
            [] | [Step::Index(_), ..] => false,
            [Step::Key(key)] => self.0.remove(key).is_some(),
            [Step::Key(key), rest @ ..] => match self.0.get_mut(key) {
                Some(entry) => entry.node.remove(rest),
                None => false,
            },
        }
    }
}

impl Node {
    fn new(value: &toml::Spanned<DeValue<'_>>, too_large: &mut Vec<TooLarge>) -> Self {
        let span = value.span();
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(integer) => Value::Integer(integer),
                    Err(_) => {
                        too_large.push(TooLarge(span.clone()));
                        Value::Integer(0)
                    }
                }
            }
            DeValue::Float(float) => Value::Decimal(float.as_str().into()),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(list) => {
                Value::List(list.iter().map(|value| Node::new(value, too_large)).collect())
            }
            DeValue::Table(table) => Value::Table(Table::new(table, too_large)),
        };
        Node { span, value }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn remove(&mut self, path: &[Step]) -> bool {
        match (&mut self.value, path) {
            (Value::Table(table), _) => table.remove(path),
            (Value::List(list), [Step::Index(index), rest @ ..]) => match list.get_mut(*index) {
                Some(_) if rest.is_empty() => {
                    list.remove(*index);
                    true
                }
                Some(node) => node.remove(rest),
                None => false,
            },
            _ => false,
        }
    }
}

// Two values are the same wherever they are written.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Text(a), Value::Text(b))
            | (Value::Decimal(a), Value::Decimal(b))
            | (Value::Date(a), Value::Date(b)) => a == b,
            (Value::Integer(a), Value::Integer(b)) => a == b,
            (Value::Boolean(a), Value::Boolean(b)) => a == b,
            (Value::List(a), Value::List(b)) => {
                a.iter().map(|node| &node.value).eq(b.iter().map(|node| &node.value))
            }
            (Value::Table(Table(a)), Value::Table(Table(b))) => a
                .iter()
                .map(|(k, e)| (k, &e.node.value))
                .eq(b.iter().map(|(k, e)| (k, &e.node.value))),
            _ => false,
        }
    }
}

/// In TOML's form, on one line; an outermost text has no quotes.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn inner(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match value {
                Value::Text(text) => write!(f, "{text:?}"),
                other => other.fmt(f),
            }
        }
        match self {
            Value::Text(text) | Value::Decimal(text) | Value::Date(text) => f.write_str(text),
            Value::Integer(integer) => integer.fmt(f),
            Value::Boolean(boolean) => boolean.fmt(f),
            Value::List(list) => {
                f.write_str("[")?;
                for (index, node) in list.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    inner(&node.value, f)?;
                }
                f.write_str("]")
            }
            Value::Table(Table(entries)) => {
                f.write_str("{")?;
                for (index, (key, entry)) in entries.iter().enumerate() {
                    write!(f, "{} {key} = ", if index > 0 { "," } else { "" })?;
                    inner(&entry.node.value, f)?;
                }
                f.write_str(" }")
            }
        }
    }
}

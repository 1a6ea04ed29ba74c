//! From a tree to types, through serde, with every mistake reported instead of the first.
//!
//! Theory of operation. A deserialiser stops at the first error, with its position. [`decode`] then reports the error, removes
//! the wrong value from the tree and tries again, until there is no error or a required value is gone. So each section is
//! described once, by its derived `Deserialize` implementation.

use super::error::{Problem, Problems, suggest};
use super::tree::{Entry, Node, Span, Step, Table, Value};
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Unexpected, Visitor};
use std::collections::btree_map;
use std::fmt;

/// Reads a `T` from `table`, which was written at `span`. The keys in `also` belong to the same table and are read by other
/// code; they are suggested for an unknown key here.
pub(crate) fn decode<T: DeserializeOwned>(
    table: &Table,
    span: &Span,
    also: &[&'static str],
    problems: &mut Problems,
) -> Option<T> {
    let mut table = table.clone();
    let mut taken: Vec<Vec<Step>> = Vec::new();
    let mut misspelt: Vec<String> = Vec::new();
    loop {
        let mistake = match T::deserialize(TableReader(&table)) {
            Ok(value) => return Some(value),
            Err(mistake) => mistake,
        };
        let Mistake { mut problem, mut path, at_key } = mistake;
        path.reverse();
        let place = match (at_key, path.is_empty()) {
            (_, true) => span.clone(),
            (true, _) => table.key_span(&path),
            (false, _) => table.span(&path),
        };
        match &mut problem {
            // It was there, and has been reported as wrong, or under another name.
            Problem::MissingKey { key } => {
                let mut missing = path.clone();
                missing.push(Step::Key(key.clone()));
                if !taken.contains(&missing) && !misspelt.contains(key) {
                    problems.add(place, problem);
                }
            }
            Problem::UnknownKey { key, known } => {
                // Options of a link stand beside the link's own keys.
                let beside = path.len() == 1
                    || matches!(&path[..], [Step::Key(way), _] if way == "there" || way == "back");
                if beside {
                    known.extend(also.iter().map(|key| key.to_string()));
                }
                misspelt.extend(suggest(key, known).cloned());
                problems.add(place, problem);
            }
            _ => problems.add(place, problem),
        }
        if path.is_empty() || !table.remove(&path) {
            return None;
        }
        taken.push(path);
    }
}

/// A problem and the way to it, last step first.
#[derive(Debug)]
struct Mistake {
    problem: Problem,
    path: Vec<Step>,
    /// It is about the key and not about its value.
    at_key: bool,
}

impl Mistake {
    fn new(problem: Problem) -> Self {
        Mistake { problem, path: Vec::new(), at_key: false }
    }

    fn within(mut self, step: impl Into<Step>) -> Self {
        self.path.push(step.into());
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Mistake {}

/// The value that was found, in the terms of a configuration file.
fn found(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(value) => format!("the text {value:?}"),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// The expected value, in the same terms.
fn wanted(expected: &dyn de::Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "a boolean" => "true or false".into(),
        "a string" => "a text in quotes".into(),
        "a sequence" => "a list".into(),
        "a map" => "a table".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, zero or above".into(),
        other if other.starts_with("struct ") => "a table".into(),
        other if other.starts_with("a nonzero u") => "a whole number above zero".into(),
        _ => expected,
    }
}

impl de::Error for Mistake {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Mistake::new(Problem::Value(message.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Mistake::new(Problem::WrongType { found: found(unexpected), expected: wanted(expected) })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Mistake::new(Problem::WrongType { found: found(unexpected), expected: wanted(expected) })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.iter().map(|name| name.to_string()).collect();
        Mistake::new(Problem::UnknownChoice { choice: variant.into(), known })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.iter().map(|name| name.to_string()).collect();
        Mistake::new(Problem::UnknownKey { key: field.into(), known })
    }

    fn missing_field(field: &'static str) -> Self {
        Mistake::new(Problem::MissingKey { key: field.into() })
    }
}

/// Hands a table to serde.
struct TableReader<'a>(&'a Table);

impl<'de> de::Deserializer<'de> for TableReader<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_map(Entries { left: self.0.0.iter(), value: None })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Entries<'a> {
    left: btree_map::Iter<'a, String, Entry>,
    value: Option<(&'a str, &'a Node)>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mistake> {
        let Some((key, entry)) = self.left.next() else { return Ok(None) };
        self.value = Some((key, &entry.node));
        let reader: StrDeserializer<'_, Mistake> = key.as_str().into_deserializer();
        match seed.deserialize(reader) {
            Ok(key) => Ok(Some(key)),
            Err(mistake) => Err(Mistake { at_key: true, ..mistake }.within(key.as_str())),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let Some((key, node)) = self.value.take() else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(NodeReader(node)).map_err(|mistake| mistake.within(key))
    }
}

/// Hands a value to serde.
struct NodeReader<'a>(&'a Node);

impl<'de> de::Deserializer<'de> for NodeReader<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Integer(integer) => visitor.visit_i64(*integer),
            Value::Decimal(text) => match text.replace('_', "").parse::<f64>() {
                Ok(number) if number.is_finite() => visitor.visit_f64(number),
                _ => Err(de::Error::custom(format_args!("`{text}` is not a finite number"))),
            },
            Value::Boolean(boolean) => visitor.visit_bool(*boolean),
            Value::Date(date) => {
                Err(de::Error::custom(format_args!("{date} is a date, and nothing here is one")))
            }
            Value::List(list) => visitor.visit_seq(Items { list, next: 0 }),
            Value::Table(table) => TableReader(table).deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => {
                let expected = format!("one of {}", variants.join(", "));
                self.deserialize_any(Never(expected)).map(|never| match never {})
            }
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// Takes nothing, and says what was expected instead.
struct Never(String);

impl Visitor<'_> for Never {
    type Value = std::convert::Infallible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct Items<'a> {
    list: &'a [Node],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mistake> {
        let Some(node) = self.list.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(NodeReader(node)).map(Some).map_err(|mistake| mistake.within(index))
    }
}

/// The keys of a type that is read from a table.
pub(crate) fn keys_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // Fails in any case: there is nothing to read.
    let _ = T::deserialize(KeysOnly(&mut keys));
    keys
}

struct KeysOnly<'a>(&'a mut &'static [&'static str]);

impl<'de> de::Deserializer<'de> for KeysOnly<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Mistake> {
        Err(de::Error::custom("there is nothing to read"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

//! The units of a TCP, as written in a scenario: a text, or a table with one key for each unit.
//!
//! The text is that of the command line (`--tcp`). The table has the same words, each under the key of its unit ([`Unit::name`]), and
//! presets under `preset`. [`transom_tcp::compose`] reads both. A table becomes a text first, so that an experiment has one identity
//! in both forms.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, json};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use transom_tcp::Profile;
use transom_tcp::compose::{ComposeError, Composer, PRESETS, Unit, compose};

/// Units by name, known to make a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composition(String);

impl Composition {
    /// The profile.
    pub(crate) fn profile(&self) -> Result<Profile, ComposeError> {
        compose(&self.0)
    }

    /// The choices of both, in which these win.
    pub(crate) fn over(&self, base: &Composition) -> Composition {
        // Each was understood by itself, so both are.
        Composer::default().over(&base.0, &self.0).map_or_else(|_| self.clone(), Composition)
    }
}

impl FromStr for Composition {
    type Err = ComposeError;

    fn from_str(text: &str) -> Result<Self, ComposeError> {
        // One space between words, so that equal texts are written alike.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        compose(&text).map(|_| Composition(text))
    }
}

impl fmt::Display for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Composition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Composition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrTable)
    }
}

/// The key of presets, which choose several units.
const PRESET: &str = "preset";

/// The keys of the table.
static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| [PRESET].into_iter().chain(Unit::ALL.map(Unit::name)).collect());

static PRESET_NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| PRESETS.iter().map(|preset| preset.name).collect());

/// The words of each unit, in the order of [`Unit::ALL`].
static WORDS: LazyLock<Vec<(Unit, Vec<&'static str>)>> =
    LazyLock::new(|| Unit::ALL.map(|unit| (unit, unit.words().collect())).to_vec());

struct TextOrTable;

impl<'de> Visitor<'de> for TextOrTable {
    type Value = Composition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("units such as \"sack + ltcp\", or a table with a key for each")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Composition, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Composition, A::Error> {
        let mut words: Vec<(Key, String)> = Vec::new();
        while let Some(key) = map.next_key_seed(AnyKey)? {
            words.push((key, map.next_value_seed(WordsFor(key))?));
        }
        // In an order that does not depend on how the table was written.
        words.sort_by_key(|(key, _)| key.place());
        let texts: Vec<String> = words.into_iter().map(|(_, text)| text).collect();
        texts.join(" + ").parse().map_err(de::Error::custom)
    }
}

/// A key of the table.
#[derive(Clone, Copy)]
enum Key {
    Preset,
    Unit(Unit),
}

impl Key {
    fn place(self) -> usize {
        match self {
            Key::Preset => 0,
            Key::Unit(unit) => 1 + Unit::ALL.iter().position(|one| *one == unit).unwrap_or(0),
        }
    }
}

struct AnyKey;

impl<'de> DeserializeSeed<'de> for AnyKey {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for AnyKey {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a unit")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Key, E> {
        if text == PRESET {
            return Ok(Key::Preset);
        }
        let unit = Unit::ALL.into_iter().find(|unit| unit.name() == text);
        unit.map(Key::Unit).ok_or_else(|| E::unknown_field(text, &KEYS))
    }
}

/// The words under a key.
struct WordsFor(Key);

impl<'de> DeserializeSeed<'de> for WordsFor {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for WordsFor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self.0 {
            Key::Preset => PRESET_NAMES.first(),
            Key::Unit(unit) => {
                WORDS.iter().find(|(one, _)| *one == unit).and_then(|(_, words)| words.first())
            }
        };
        write!(f, "a word such as {:?}", known.copied().unwrap_or_default())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        match self.0 {
            Key::Preset => {
                let unknown = text
                    .split_whitespace()
                    .find(|word| *word != "+" && !PRESET_NAMES.contains(word));
                if let Some(word) = unknown {
                    return Err(E::unknown_variant(word, &PRESET_NAMES));
                }
                compose(text).map_err(E::custom)?;
            }
            Key::Unit(unit) => match Composer::default().check_unit(unit, text) {
                Ok(()) => {}
                // The choices that fit here help more than all choices.
                Err(ComposeError::Unknown { word, .. }) => {
                    let known = WORDS.iter().find(|(one, _)| *one == unit);
                    let known = known.map_or(&[][..], |(_, words)| words);
                    return Err(E::unknown_variant(&word, known));
                }
                Err(error) => return Err(E::custom(error)),
            },
        }
        Ok(text.into())
    }
}

impl JsonSchema for Composition {
    fn schema_name() -> Cow<'static, str> {
        "Units".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut keys = Map::new();
        let names = PRESET_NAMES.as_slice();
        keys.insert(
            PRESET.into(),
            json!({ "type": "string", "description": "Words that go together; those of the other keys win.", "examples": names }),
        );
        for (unit, words) in WORDS.iter() {
            let description = format!("A word for {unit}.");
            let schema = json!({ "type": "string", "description": description, "examples": words });
            keys.insert(unit.name().into(), schema);
        }
        json_schema!({
            "description": "Which units a TCP is composed of: words joined by \" + \", such as \"sack + ltcp(beta=0.15) + prr\", or a table with a key for \
                            each unit. `transom units` lists them. What is not said keeps its default.",
            "oneOf": [
                { "type": "string", "examples": ["sack + ltcp(beta=0.15) + prr", "modern"] },
                { "type": "object", "properties": keys, "additionalProperties": false },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_compositions_are_written_alike() {
        let read: Composition = "cubic  +\nprr".parse().unwrap();
        assert_eq!(read.to_string(), "cubic + prr");
        let error = "cubic + reno".parse::<Composition>().unwrap_err();
        assert_eq!(error.to_string(), "`cubic` and `reno` are both congestion control");
    }

    #[test]
    fn a_table_is_a_text() {
        let read =
            |text: &str| toml::from_str::<std::collections::BTreeMap<String, Composition>>(text);
        let table =
            "tcp = { undo = 'eifel + dsack', congestion = 'ltcp(beta=0.1)', preset = 'sackbase' }";
        let tcp = read(table).unwrap().remove("tcp").unwrap();
        assert_eq!(tcp.to_string(), "sackbase + ltcp(beta=0.1) + eifel + dsack");
        assert_eq!(
            Ok(tcp.profile().unwrap()),
            compose("sackbase + ltcp(beta=0.1) + eifel + dsack")
        );
        assert_eq!(read("tcp = {}").unwrap().remove("tcp").unwrap().to_string(), "");
        for wrong in [
            "{ congestion = 'sack' }",
            "{ x = 'sack' }",
            "{ preset = 'sack' }",
            "{ undo = '' }",
            "3",
        ] {
            assert!(read(&format!("tcp = {wrong}")).is_err(), "{wrong}");
        }
    }
}

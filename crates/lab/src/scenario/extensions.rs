//! The extensions of a TCP, as written in a scenario: a text such as `"nice + rr"`.
//!
//! They are those of [`transom_extensions`], with a guard around each: one that panics is detached, and the flow continues.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use transom_extensions::cm::Manager;
use transom_extensions::policy::pinned;
use transom_extensions::{CATALOGUE, Guarded, StackError, stack, stack_sharing};
use transom_tcp::extension::ExtensionChoice;

/// Extensions by name, known to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extensions {
    text: String,
}

impl Extensions {
    /// The same, where the macroflows of `cm` are those of `manager`: one for each host of a run, and never for two runs, whose results
    /// would depend on each other.
    pub(crate) fn choices_sharing(&self, manager: &Manager) -> Vec<ExtensionChoice> {
        // Read anew, as the choices that were made when the scenario was read would share across its runs; it was known to be right then.
        let choices = stack_sharing(&self.text, manager).unwrap_or_default();
        choices
            .into_iter()
            .map(|choice| choice.wrapped(|make| Box::new(Guarded::against_panics(make))))
            .collect()
    }
}

impl FromStr for Extensions {
    type Err = StackError;

    fn from_str(text: &str) -> Result<Self, StackError> {
        // One space between words, so that equal texts are written alike.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // The content of a policy's file decides what a run does, so it is part of the run's identity.
        let text = pinned(&text);
        stack(&text)?;
        Ok(Extensions { text })
    }
}

impl fmt::Display for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Extensions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Extensions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Extensions {
    fn schema_name() -> Cow<'static, str> {
        "Extensions".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = CATALOGUE.iter().map(|entry| entry.name).collect();
        let description = format!(
            "Extensions by name, joined by \" + \", such as \"nice + rr(cap=0.8)\": {}.",
            names.join(", ")
        );
        json_schema!({ "type": "string", "description": description })
    }
}

//! For `#[serde(with = "duration_text")]`: a duration as text in a configuration file.

use serde::{Deserializer, Serializer};
use transom_tcp::time::Duration;

use super::{DurationText, deserialize_text, parse_duration};

pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&DurationText(*value))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    deserialize_text(from, "a duration such as \"20ms\"", false, parse_duration)
}

//! For `#[serde(with = "duration_text")]`: a duration as text in a configuration file.

use core::fmt;

use serde::{Deserializer, Serializer, de};
use transom_tcp::time::Duration;

use super::{DurationText, parse_duration};

/// Writes the duration as text.
pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&DurationText(*value))
}

/// Reads the duration from text.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    struct Text;
    impl de::Visitor<'_> for Text {
        type Value = Duration;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration such as \"20ms\"")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
            parse_duration(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Text)
}

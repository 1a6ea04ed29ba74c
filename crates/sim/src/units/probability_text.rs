//! For `#[serde(with = "probability_text")]`: a probability as text in a configuration file, or as a number.

use serde::{Deserializer, Serializer};

use super::{Probability, deserialize_text};

pub(crate) fn serialize<S: Serializer>(value: &Probability, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Probability, D::Error> {
    deserialize_text(from, "a probability such as \"0.5%\" or 0.005", true, str::parse)
}

//! For `#[serde(with = "probability_text")]`: a probability as text in a configuration file, or as a number, through its shortest
//! decimal form, so that 0.005 means "0.005".

use core::fmt;

use serde::{Deserializer, Serializer, de};

use super::Probability;

/// Writes the probability as text.
pub(crate) fn serialize<S: Serializer>(
    value: &Probability,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Reads the probability from text, or from a number.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Probability, D::Error> {
    struct Text;
    impl de::Visitor<'_> for Text {
        type Value = Probability;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a probability such as \"0.5%\" or 0.005")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Probability, E> {
            text.parse().map_err(E::custom)
        }
        fn visit_f64<E: de::Error>(self, number: f64) -> Result<Probability, E> {
            self.visit_str(&number.to_string())
        }
        fn visit_i64<E: de::Error>(self, number: i64) -> Result<Probability, E> {
            self.visit_str(&number.to_string())
        }
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Probability, E> {
            self.visit_str(&number.to_string())
        }
    }
    deserializer.deserialize_any(Text)
}

//! For `#[serde(with = "window_text")]`: whether, and how, the windows in acknowledgements are rewritten for the sake of a link's queue.
//!
//! Written as "none" or one of `target-window`, `explicit-window`, `ack-delay` and `fair-share` with parameters:
//! "target-window(upper=35 packets, lower=15 packets)". See [`PolicyConfig`].

use super::LinkConfigError;
use crate::units::deserialize_text;
use serde::{Deserializer, Serializer};
use transom_router::window::PolicyConfig;

pub(super) fn parse(text: &str) -> Result<Option<PolicyConfig>, LinkConfigError> {
    match text.trim() {
        "none" => Ok(None),
        text => Ok(Some(text.parse()?)),
    }
}

pub(super) fn serialize<S: Serializer>(
    policy: &Option<PolicyConfig>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match policy {
        Some(policy) => to.collect_str(policy),
        None => to.serialize_str("none"),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<PolicyConfig>, D::Error> {
    let expecting = "a window policy such as \"target-window(upper=35 packets, lower=15 packets)\"";
    deserialize_text(from, expecting, false, parse)
}

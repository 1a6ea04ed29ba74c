//! Sets of ports, as people write them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{PolicyError, invalid_value};

/// Ports and ranges of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

#[cfg(any(feature = "daemon", test))]
impl Ports {
    /// Whether a port is among them.
    pub(super) fn contain(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }
}

impl FromStr for Ports {
    type Err = PolicyError;

    /// `80, 8000-8999`; nothing is no port.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let port = |text: &str| match text.trim().parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(invalid_value(format!("`{}` is no port", text.trim()))),
        };
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let range = |part: &str| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let range = port(from)?..=port(to)?;
            match range.is_empty() {
                true => Err(invalid_value(format!("`{part}` ends before it begins"))),
                false => Ok(range),
            }
        };
        parts.map(range).collect::<Result<_, _>>().map(Ports)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match range.start() == range.end() {
                true => write!(f, "{comma}{}", range.start())?,
                false => write!(f, "{comma}{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

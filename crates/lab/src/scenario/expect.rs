//! `[[expect]]`: what must hold, as bands around measured values.
//!
//! A band names a measure, what it is taken of, how many values become one (the statistic), and the least and the greatest that is
//! accepted. With `relative-to`, it is about a quotient: the same measure of something else, or of the run at another point of the
//! sweep, is the divisor. That is all; there are no expressions to parse.

use super::name::Name;
use super::quantity::{Number, Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use transom_sim::units::{Rate, UnitError};

/// What is measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Of a flow: bytes per second that reached the application. A rate.
    Goodput,
    /// Of a flow: bytes per second of all segments sent, headers included. A rate.
    Throughput,
    /// Of a flow: bytes that reached the application. A size.
    Delivered,
    /// Of a flow: segments sent again. A number.
    Retransmissions,
    /// Of a flow: retransmission timeouts. A number.
    Timeouts,
    /// Of a flow: goodput divided by throughput. A number.
    Efficiency,
    /// Of a flow's transfers, or requests: from the start to the last byte. Times.
    CompletionTime,
    /// Of a flow: round-trip times measured. Times.
    Rtt,
    /// Of a flow: congestion window at the sampled times. Sizes.
    Cwnd,
    /// Of a flow: slow-start threshold at the sampled times. Sizes.
    Ssthresh,
    /// Of a flow: bytes in flight at the sampled times. Sizes.
    Flight,
    /// Of two flows and more: Jain's fairness index of their goodputs. A number.
    Jain,
    /// Of a link: throughput divided by its rate. A number.
    Utilisation,
    /// Of a link: packets dropped and lost, divided by packets offered. A number.
    LossRate,
    /// Of a link: packets dropped by its queue. A number.
    Drops,
    /// Of a link: packets marked by its queue. A number.
    Marks,
    /// Of a link: packets in its queue at the sampled times. Numbers.
    QueueLength,
    /// Of a link: how long packets were in its queue. Times.
    QueueDelay,
}

/// The unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    Rate,
    /// Time.
    Time,
    /// Bytes.
    Size,
    /// None.
    Number,
}

/// What a measure is taken of, and how many values it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// One value of each flow.
    FromEachFlow,
    /// Many values of each flow.
    OftenFromFlows,
    /// One value of all flows together.
    FromAllFlows,
    /// One value of a link.
    FromLink,
    /// Many values of a link.
    OftenFromLink,
}

impl Measure {
    /// Its unit.
    pub fn unit(self) -> Unit {
        match self {
            Measure::Goodput | Measure::Throughput => Unit::Rate,
            Measure::CompletionTime | Measure::Rtt | Measure::QueueDelay => Unit::Time,
            Measure::Delivered | Measure::Cwnd | Measure::Ssthresh | Measure::Flight => Unit::Size,
            Measure::Retransmissions
            | Measure::Timeouts
            | Measure::Efficiency
            | Measure::Jain
            | Measure::Utilisation
            | Measure::LossRate
            | Measure::Drops
            | Measure::Marks
            | Measure::QueueLength => Unit::Number,
        }
    }

    /// What it is taken of.
    pub fn taken(self) -> Taken {
        match self {
            Measure::Goodput
            | Measure::Throughput
            | Measure::Delivered
            | Measure::Retransmissions
            | Measure::Timeouts
            | Measure::Efficiency => Taken::FromEachFlow,
            Measure::CompletionTime
            | Measure::Rtt
            | Measure::Cwnd
            | Measure::Ssthresh
            | Measure::Flight => Taken::OftenFromFlows,
            Measure::Jain => Taken::FromAllFlows,
            Measure::Utilisation | Measure::LossRate | Measure::Drops | Measure::Marks => {
                Taken::FromLink
            }
            Measure::QueueLength | Measure::QueueDelay => Taken::OftenFromLink,
        }
    }
}

impl Taken {
    /// Whether it is taken of a link.
    pub fn is_of_link(self) -> bool {
        matches!(self, Taken::FromLink | Taken::OftenFromLink)
    }

    /// The statistic if none is named; `None` for a measure that has only one value.
    pub fn usual_statistic(self) -> Option<Statistic> {
        match self {
            Taken::FromEachFlow => Some(Statistic::Each),
            Taken::OftenFromFlows | Taken::OftenFromLink => Some(Statistic::Mean),
            Taken::FromAllFlows | Taken::FromLink => None,
        }
    }
}

/// How many values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// They do not: the band is about each flow's value on its own. Only for measures that have one value for each flow.
    Each,
    /// The sum. Only for measures that have one value for each flow.
    Sum,
    /// The arithmetic mean.
    Mean,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The standard deviation.
    Deviation,
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// As the link is written.
    #[default]
    There,
    /// The other way.
    Back,
}

/// A text or a number, until it is known of what measure it is a bound.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(transparent, rename = "Bound")]
pub(super) struct Scalar(#[schemars(with = "super::schema::TextOrNumber")] String);

impl std::str::FromStr for Scalar {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Scalar(text.into()))
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

super::quantity::serde_as_text!(
    Scalar,
    "a text such as \"9Mbit/s\", or a number if the measure has no unit",
    number
);

/// A bound of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bits per second.
    Rate(Rate),
    /// A time.
    Time(Time),
    /// Bytes.
    Size(Size),
    /// A number without a unit.
    Number(Number),
}

impl Bound {
    pub(super) fn read(scalar: &Scalar, unit: Unit) -> Result<Bound, UnitError> {
        let text = &scalar.0;
        Ok(match unit {
            Unit::Rate => Bound::Rate(text.parse()?),
            Unit::Time => Bound::Time(text.parse()?),
            Unit::Size => Bound::Size(text.parse()?),
            Unit::Number => Bound::Number(text.parse()?),
        })
    }

    /// The value as an integer: bits per second, nanoseconds, bytes, or billionths.
    pub fn as_integer(self) -> u64 {
        match self {
            Bound::Rate(rate) => rate.bits_per_sec(),
            Bound::Time(time) => time.0.as_nanos(),
            Bound::Size(size) => size.0,
            Bound::Number(number) => number.billionths(),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Rate(rate) => rate.fmt(f),
            Bound::Time(time) => time.fmt(f),
            Bound::Size(size) => size.fmt(f),
            Bound::Number(number) => number.fmt(f),
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A measure, what it is taken of, and when. What is left out of a `relative-to` is as in the band.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct QuantityOptions {
    /// What is measured.
    pub(super) measure: Option<Measure>,
    /// The flow, or the group of flows.
    #[schemars(with = "Option<super::schema::NameText>")]
    pub(super) flow: Option<Name>,
    /// The flows and groups of flows, if they are several.
    #[schemars(with = "Option<Vec<super::schema::NameText>>")]
    pub(super) flows: Option<Vec<Name>>,
    /// The link.
    #[schemars(with = "Option<super::schema::NameText>")]
    pub(super) link: Option<Name>,
    /// The link's direction; by default "there".
    pub(super) direction: Option<Direction>,
    /// How many values become one: by default "each" flow on its own, or the "mean" of many values.
    pub(super) statistic: Option<Statistic>,
    /// The first moment that counts; by default the end of the warm-up.
    pub(super) from: Option<Time>,
    /// The last moment that counts; by default the end of the run.
    pub(super) until: Option<Time>,
}

/// The rest of a band.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BandOptions {
    /// The least that is accepted: a text with the measure's unit, or a number for a measure that has none.
    pub(super) min: Option<Scalar>,
    /// The greatest that is accepted.
    pub(super) max: Option<Scalar>,
    /// Why it should be so.
    pub(super) why: Option<String>,
}

/// A measure of something that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Quantity {
    /// What is measured.
    pub measure: Measure,
    /// Of which flows, in the order of their names in the scenario; empty for a measure of a link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Name>,
    /// Of which link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Name>,
    /// Of which of its directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// How many values become one, for a measure that has many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// The first moment that counts.
    pub from: Time,
    /// The last moment that counts.
    pub until: Time,
}

/// What must hold of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Band {
    /// What is looked at.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// The least that is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Bound>,
    /// The greatest that is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Bound>,
    /// Why it should be so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What the quantity is divided by before it is compared with the bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<Quantity>,
}

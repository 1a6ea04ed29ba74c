//! `[[expect]]`: expectations, as bands around measured values.
//!
//! A band names a measure, its source, a statistic, and the least and the greatest accepted value. With `relative-to`, it is about a
//! quotient; the divisor is the same measure of another source, or at another point of the sweep. With `reaches` or `stays-above`, it is
//! about the time until the measure reaches a level. There are no expressions.

mod measures;

use super::bound::{Bound, Scalar, Unit};
use super::claim::{Claim, ClaimOptions};
use super::name::Name;
use super::quantity::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use transom_sim::units::UnitError;

pub use measures::Measure;
pub(crate) use measures::{MeasureSource, Requirement, TimeCourse};

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

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
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

/// A measure, its source, and its span. Keys that are missing in a `relative-to` are as in the band.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct QuantityOptions {
    /// The measure.
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
    /// Instead of the measure, the time from the first moment that counts until it is at least this.
    pub(super) reaches: Option<Scalar>,
    /// Instead of the measure, the time from the first moment that counts until it is at least this, and stays so until the last.
    pub(super) stays_above: Option<Scalar>,
    /// The window of a rate, a share or a fairness over time; by default "1s".
    pub(super) window: Option<Time>,
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
    /// The paper's claim about it.
    pub(super) claim: Option<ClaimOptions>,
    /// The heading of the column with its values in a table of the sweep's points. A band with a column needs no bounds.
    pub(super) column: Option<String>,
}

/// A measure of something that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenQuantity", rename_all = "kebab-case")]
pub struct Quantity {
    /// The measure.
    pub measure: Measure,
    /// Its flows, in the order of their names in the scenario; empty for a measure of a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Name>,
    /// Its link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Name>,
    /// The direction of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// How many values become one, for a measure that has many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// The first moment that counts.
    pub from: Time,
    /// The last moment that counts.
    pub until: Time,
    /// The time after `from` at which the measure first reaches this, instead of the measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reaches: Option<Bound>,
    /// The time after `from` from which on the measure stays at or above this, instead of the measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stays_above: Option<Bound>,
    /// The window of the measure then, if it is not momentary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Time>,
}

impl Quantity {
    /// The unit of its values.
    pub fn unit(&self) -> Unit {
        let is_moment = self.reaches.is_some() || self.stays_above.is_some();
        if is_moment { Unit::Time } else { self.measure.unit() }
    }
}

/// A quantity as stored, before the unit of its level is known.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct WrittenQuantity {
    measure: Measure,
    #[serde(default)]
    flows: Vec<Name>,
    link: Option<Name>,
    direction: Option<Direction>,
    statistic: Option<Statistic>,
    from: Time,
    until: Time,
    reaches: Option<Scalar>,
    stays_above: Option<Scalar>,
    window: Option<Time>,
}

impl TryFrom<WrittenQuantity> for Quantity {
    type Error = UnitError;

    fn try_from(written: WrittenQuantity) -> Result<Quantity, UnitError> {
        let WrittenQuantity {
            measure,
            flows,
            link,
            direction,
            statistic,
            from,
            until,
            reaches,
            stays_above,
            window,
        } = written;
        let level = |scalar: Option<Scalar>| {
            scalar.map(|one| Bound::read(&one, measure.unit())).transpose()
        };
        let (reaches, stays_above) = (level(reaches)?, level(stays_above)?);
        Ok(Quantity {
            measure,
            flows,
            link,
            direction,
            statistic,
            from,
            until,
            reaches,
            stays_above,
            window,
        })
    }
}

/// An expectation about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenBand", rename_all = "kebab-case")]
pub struct Band {
    /// The quantity.
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
    /// The heading of the column with its values in a table of the sweep's points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The paper's claim about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The divisor of the quantity, before it is compared with the bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<Quantity>,
    /// Whether that is subtracted from the quantity, which is not divided by it then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub difference: bool,
}

impl Band {
    /// The unit of its values and bounds.
    pub fn unit(&self) -> Unit {
        unit(&self.quantity, self.relative_to.is_some(), self.difference)
    }

    /// A value of the quantity, compared with one of what it is relative to: the quotient of both, or the difference.
    pub fn compared(&self, value: f64, other: f64) -> f64 {
        if self.difference { value - other } else { value / other }
    }

    /// Whether it has bounds, or its values are only shown in a table.
    pub fn expects(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// Whether a value is accepted: in bits per second, nanoseconds, bytes, or without a unit.
    pub fn accepts(&self, value: f64) -> bool {
        value.is_finite()
            && self.min.is_none_or(|min| value >= min.as_number())
            && self.max.is_none_or(|max| value <= max.as_number())
    }
}

/// The unit of a quantity by itself, or of its quotient or its difference with another.
fn unit(quantity: &Quantity, is_relative: bool, difference: bool) -> Unit {
    if is_relative && !difference { Unit::Number } else { quantity.unit() }
}

/// A band as stored, before the unit of its bounds is known.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct WrittenBand {
    #[serde(flatten)]
    quantity: Quantity,
    min: Option<Scalar>,
    max: Option<Scalar>,
    why: Option<String>,
    column: Option<String>,
    claim: Option<ClaimOptions>,
    relative_to: Option<Quantity>,
    #[serde(default)]
    difference: bool,
}

impl TryFrom<WrittenBand> for Band {
    type Error = UnitError;

    fn try_from(written: WrittenBand) -> Result<Band, UnitError> {
        let WrittenBand { quantity, min, max, why, column, claim, relative_to, difference } =
            written;
        let unit = unit(&quantity, relative_to.is_some(), difference);
        let read = |scalar: Option<Scalar>| scalar.map(|one| Bound::read(&one, unit)).transpose();
        let claim = claim.map(|claim| claim.read(unit)).transpose()?;
        let (min, max) = (read(min)?, read(max)?);
        Ok(Band { quantity, min, max, why, column, claim, relative_to, difference })
    }
}

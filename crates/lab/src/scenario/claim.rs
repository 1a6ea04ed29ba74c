//! A paper's claim about a quantity, stored with the band that reproduces it.
//!
//! A claim changes nothing of how a band is judged. It is kept with the band, so that a table of what was claimed and what was found can be
//! made from stored runs alone.
//!
//! A claim can name its *control*: a point of the sweep without the effect that the paper describes. A band that accepts its control proves nothing.
//! The control is no part of the resolved scenario: it is about another run ([`Control`]).

use super::bound::{Bound, Scalar, Unit};
use super::expect::Band;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transom_sim::units::UnitError;

/// Which value of several seeds must be in the band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// Their mean: papers average over their runs.
    #[default]
    Mean,
    /// Each of them: the claim says that something never, or always, happens.
    EverySeed,
    /// The paper's number is that of a single run: it lies between the least and the greatest seed.
    Range,
}

impl Judged {
    fn is_mean(&self) -> bool {
        *self == Judged::Mean
    }
}

/// A paper's claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// A short name, by which a page chooses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The statement, in a sentence.
    pub says: String,
    /// The paper's own number, if it has one, in the band's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Bound>,
    /// The explanation if the band does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Whether the statement is ours: the paper does not make it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
    /// Whether the set-up was chosen so that it holds. Then it predicts nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub calibrated: bool,
    /// Which value of several seeds must be in the band.
    #[serde(skip_serializing_if = "Judged::is_mean")]
    pub judged: Judged,
    /// Why no point of the sweep can be its control, after "none: ".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
}

/// A control: runs in which a claim's band must fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Control {
    /// The band, with its claim.
    pub band: Band,
    /// The point whose run the band must reject, as [`Scenario::sweep`](super::Scenario::sweep) counts from zero.
    pub point: usize,
    /// The point at which the divisor is measured, if the band has one at another point.
    pub baseline: Option<usize>,
}

/// The beginning of a reason not to have a control.
const NONE: &str = "none: ";

/// A claim as written, before the unit of its number is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Claim")]
pub(super) struct ClaimOptions {
    /// A short name, by which a page chooses it.
    #[serde(default)]
    name: Option<String>,
    /// The paper's statement, in a sentence.
    says: String,
    /// The paper's own number: a text with the band's unit, or a number if it has none.
    #[serde(default)]
    pub(super) number: Option<Scalar>,
    /// The explanation, for readers who see that the band does not hold.
    #[serde(default)]
    finding: Option<String>,
    /// Whether the statement is ours, and not the paper's.
    #[serde(default)]
    ours: bool,
    /// Whether the set-up was chosen so that the band holds. It predicts nothing then.
    #[serde(default)]
    calibrated: bool,
    /// Which value of several seeds must be in the band: their "mean", which is the default; "every-seed"; or their "range" has the paper's number in it.
    #[serde(default)]
    judged: Judged,
    /// The control: values of the sweep, by path, at which the band must not hold. Or "none: " and the reason why there is none.
    #[serde(default)]
    #[schemars(with = "Option<super::schema::TextOrTable>")]
    control: Option<String>,
}

impl ClaimOptions {
    /// Whether it gives a reason for having no control, and does so in another form than "none: reason".
    pub(super) fn has_wrong_control(&self) -> bool {
        let reason =
            |text: &String| text.strip_prefix(NONE).is_some_and(|why| !why.trim().is_empty());
        self.control.as_ref().is_some_and(|text| !reason(text))
    }

    pub(super) fn read(self, unit: Unit) -> Result<Claim, UnitError> {
        let ClaimOptions { name, says, number, finding, ours, calibrated, judged, control } = self;
        let number = number.map(|number| Bound::read(&number, unit)).transpose()?;
        Ok(Claim { name, says, number, finding, ours, calibrated, judged, control })
    }
}

//! A paper's claim about a quantity, stored with the band that reproduces it.
//!
//! A claim changes nothing of how a band is judged. It is kept with the band, so that a table of what was claimed and what was found can be
//! made from stored runs alone.

use super::bound::{Bound, Scalar, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transom_sim::units::UnitError;

/// A paper's claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// The statement, in a sentence.
    pub says: String,
    /// The paper's own number, if it has one, in the band's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Bound>,
    /// The explanation if the band does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// A claim as written, before the unit of its number is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Claim")]
pub(super) struct ClaimOptions {
    /// The paper's statement, in a sentence.
    says: String,
    /// The paper's own number: a text with the band's unit, or a number if it has none.
    #[serde(default)]
    pub(super) number: Option<Scalar>,
    /// The explanation, for readers who see that the band does not hold.
    #[serde(default)]
    finding: Option<String>,
}

impl ClaimOptions {
    pub(super) fn read(self, unit: Unit) -> Result<Claim, UnitError> {
        let ClaimOptions { says, number, finding } = self;
        let number = number.map(|number| Bound::read(&number, unit)).transpose()?;
        Ok(Claim { says, number, finding })
    }
}

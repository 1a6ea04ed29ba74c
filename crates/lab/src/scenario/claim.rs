//! What a paper says of a quantity: the text beside a band that is there to reproduce it.
//!
//! A claim changes nothing of how a band is judged. It is kept with the band, so that a table of what was claimed and what was found can be
//! made from stored runs alone.

use super::bound::{Bound, Scalar, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transom_sim::units::UnitError;

/// What a paper says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// The statement, in a sentence.
    pub says: String,
    /// The paper's own number, if it has one, in the band's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Bound>,
    /// What was found out where the band does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// A claim as it is written, before it is known in which unit its number is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Claim")]
pub(super) struct ClaimOptions {
    /// The paper's statement, in a sentence.
    says: String,
    /// The paper's own number: a text with the band's unit, or a number if it has none.
    #[serde(default)]
    pub(super) number: Option<Scalar>,
    /// What was found out, for readers who see that the band does not hold.
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

//! Deterministic link models for Transom, and the numbers and units they are made of.
#![forbid(unsafe_code)]

pub mod random;
pub mod units;

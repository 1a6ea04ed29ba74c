//! Stands in for what transom-router is getting.
#![allow(missing_docs)]
use std::num::NonZeroU64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Threshold {
    Packets(u64),
    Bytes(u64),
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetWindowConfig {
    pub upper: Threshold,
    pub lower: Threshold,
    pub halve_after: Threshold,
    pub raise_shift: u8,
    pub initial: NonZeroU64,
    pub most: NonZeroU64,
    pub naive: bool,
}
impl TargetWindowConfig {
    pub fn new(upper: Threshold, lower: Threshold) -> Self {
        TargetWindowConfig {
            upper,
            lower,
            halve_after: Threshold::Packets(15),
            raise_shift: 6,
            initial: NonZeroU64::new(1 << 16).unwrap(),
            most: NonZeroU64::new(1 << 20).unwrap(),
            naive: false,
        }
    }
}

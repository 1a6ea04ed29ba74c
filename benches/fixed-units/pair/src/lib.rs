//! The benchmark's transfer in memory, word for word, over a Transom whose units were chosen when it was compiled.
#![forbid(unsafe_code)]

#[path = "../../../src/clock.rs"]
pub mod clock;
#[path = "../../../src/pair.rs"]
pub mod pair;
#[path = "../../../src/transfer.rs"]
pub mod transfer;

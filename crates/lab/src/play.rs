//! Playing with a scenario: values of its text are changed one by one, and one moment of a run is looked at closely.
//!
//! Theory of operation. A [`Change`] sets one value of a scenario's text, which is then read like any other scenario. So a value that cannot be
//! is refused in the same words. A run is the same whenever it is repeated, so nobody keeps logs: [`decisions`] repeats it up to the
//! moment, with the event logs of all hosts, and says what each record means.
//!
//! ```
//! use transom_lab::play::{Change, apply};
//!
//! let text = "[scenario]\nname = \"one\"\nduration = \"2s\"\n";
//! let longer: Change = "scenario.duration=3s".parse()?;
//! assert!(apply(text, &[longer])?.contains("duration = \"3s\""));
//! # Ok::<(), transom_lab::play::ChangeError>(())
//! ```

mod change;
mod decision;
mod moment;

pub use change::{Change, ChangeError, apply, tree};
pub use decision::Decision;
pub use moment::{Moment, decisions};

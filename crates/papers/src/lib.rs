//! The experiments of the papers that Transom is built from: what they claim, and what came of them.
//!
//! Theory of operation. Every experiment is a scenario in the program itself ([`EXPERIMENTS`]), with what the paper says beside the bands that are to
//! show it. After it has been run, what the claims are about is put into a small file, a [`Summary`]. The table of what was claimed and what was
//! found ([`results()`]) is made from scenarios and summaries alone. What no scenario can show is listed [`others`].
//!
//! ```
//! use transom_papers::find;
//!
//! let found = find(&["ltcp/fig5".into()])?;
//! let experiment = found.first().ok_or("nothing")?;
//! let scenario = experiment.scenario(false)?;
//! assert!(scenario.points() > 0);
//! assert_eq!((experiment.paper(), experiment.described()?.id.as_str()), ("ltcp", "ltcp/fig5"));
//! assert!(find(&["ltcp/fig99".into()]).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod catalogue;
mod error;
pub mod others;
mod results;
mod summary;
mod values;

pub use catalogue::{EXPERIMENTS, Experiment, find, form};
pub use error::Error;
pub use results::results;
pub use summary::Summary;
pub use values::shown;

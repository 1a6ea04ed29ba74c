//! The experiments of the papers that Transom is built from: their claims, and the results.
//!
//! Theory of operation. Every experiment is a scenario in the program itself ([`EXPERIMENTS`]), with the paper's claims beside the bands that
//! reproduce them. After a run, the values for the claims are stored in a small file, a [`Summary`]. A page for each figure of a paper ([`pages()`]), and
//! the table of all of them ([`results()`]), are made from scenarios, summaries and the texts in `papers/pages` only. [`other_experiments()`] lists those
//! that no scenario can show.
//!
//! ```
//! use transom_papers::find;
//!
//! let found = find(&["ltcp/fig5".into()])?;
//! let experiment = found.first().ok_or("nothing")?;
//! let scenario = experiment.scenario(false)?;
//! assert!(scenario.points() > 0);
//! assert_eq!((experiment.id, experiment.described()?.id.as_str()), ("ltcp/fig5", "ltcp/fig5"));
//! assert!(find(&["ltcp/fig99".into()]).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bench;
mod catalogue;
mod chosen;
mod commits;
mod error;
mod figure;
mod findings;
mod matrix;
mod other_experiments;
mod pages;
mod prose;
mod raw;
mod recent;
mod results;
mod sources;
mod summary;
mod text;
mod values;

pub use catalogue::{EXPERIMENTS, Experiment, find, form};
pub use error::Error;
pub use other_experiments::{OtherExperiment, other_experiment, other_experiments};
pub use pages::pages;
pub use results::{check, results};
pub use summary::{Compared, Difference, Summary};
pub use values::shown;

//! Results: what is kept of runs, in a directory.
//!
//! Theory of operation. A results directory has a [`Plan`], `results.json`, which says which runs there are to be, and a directory for
//! each run that is finished, named after the run's identity. A run is written beside its place and put there as a whole when it is
//! complete: what is there is finished, and what was broken off is not there. So whoever runs a scenario again runs only what is missing.
//!
//! ```text
//! results.json             the plan
//! 0f3a52c1b7d9/            a run
//!   run.json               the manifest: which run, what came of it, and the other files' sizes and hashes
//!   scenario.toml          the scenario with everything written out
//!   flows.parquet          the flows' series; likewise links and completions
//!   flows.csv              the same for those who have no Parquet at hand
//! ```
//!
//! In a build without the feature `parquet` the first is `flows.table`, the same as text. Every build reads those; only one with the feature
//! reads the others.
//!
//! What is stored depends on the program, the scenario and the seed alone, and not on the machine, the time, or the order in which runs
//! were made: the same build of the program writes the same bytes. [`merge()`] puts parts of a sweep together that were run on several machines.
//!
//! Observations come back as they were ([`StoredRun::observations`]), so that bands can be judged anew, comparisons between runs be made
//! and pages be written without another run.

mod column;
mod csv;
mod error;
mod files;
mod manifest;
mod merge;
mod owners;
#[cfg(feature = "parquet")]
mod parquet;
mod pending;
mod plain;
mod plan;
mod store;
mod stored;
mod tables;

pub use column::Column;
pub use error::StoreError;
pub use files::replace;
pub use manifest::{Compared, FileEntry, Manifest};
pub use merge::{MergeError, Merged, merge};
pub use pending::{Pending, Run};
pub use plan::{Choice, Plan, PlannedRun, Point, Shard, ShardError};
pub use store::{Entry, Found, Store};
pub use stored::StoredRun;

/// The form in which results are stored. It changes when an older program could misread what a newer one has written, or the other way
/// round.
pub const FORMAT: u32 = 1;

#[cfg(test)]
mod tests;

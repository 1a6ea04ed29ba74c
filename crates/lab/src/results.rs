//! Results: runs that are stored in a directory.
//!
//! Theory of operation. A results directory has a [`Plan`], `results.json`, which lists the planned runs, and a directory for each finished run,
//! named after the run's identity. A run is written to a temporary directory and moved to its place when it is complete. So every stored run is
//! finished, and repeating a scenario makes only the missing runs.
//!
//! ```text
//! results.json             the plan
//! summary.csv              a line for each run: settings, seed, and every measure; summary.parquet is the same
//! 0f3a52c1b7d9/            a run
//!   run.json               the manifest: which run, what came of it, and the other files' sizes and hashes
//!   scenario.toml          the scenario with everything written out
//!   flows.parquet          the flows' series; likewise links and completions
//!   flows.csv              the same for those who have no Parquet at hand: the names of the columns, then the rows
//! ```
//!
//! In a build without the feature `parquet` the first is `flows.table`, the same as text. Every build reads text; only a build with the feature
//! reads Parquet.
//!
//! The stored bytes depend only on the program, the scenario and the seed. The machine, the time and the order of runs do not matter.
//! [`merge()`] joins parts of a sweep that were run on several machines.
//!
//! Observations come back as they were ([`StoredRun::observations`]), so that bands can be judged anew, comparisons between runs be made
//! and pages be written without another run.

mod arrays;
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
mod summary;
mod tables;

pub use arrays::{Array, Cells, arrays};
pub use error::StoreError;
pub use manifest::{Compared, FileEntry, Manifest, State};
pub use merge::merge;
pub use pending::{Pending, Run};
pub use plan::{Choice, Plan, PlannedRun, Point, Shard};
pub use store::{Entry, Found, Store};
pub use stored::StoredRun;
pub use summary::{Line, Summary};

/// The form in which results are stored. It changes when an older program could misread what a newer one has written, or the other way
/// round.
const FORMAT: u32 = 1;

#[cfg(test)]
mod tests;

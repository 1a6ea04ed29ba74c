//! Errors of stored results.

use std::io;
use std::path::{Path, PathBuf};

/// Why results cannot be stored, read or put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {error}", .path.display())]
    Io {
        /// The action: "read", "write", ….
        action: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A file is not what was written.
    #[error("{} is damaged: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: String,
    },
    /// A file was written by another version of the program, in another form.
    #[error(
        "{} has format {found}, and this version of the program reads format {}",
        .path.display(),
        super::FORMAT
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format it has.
        found: u32,
    },
    /// A table is kept in a form that this build of the program cannot read.
    #[error(
        "{} is a Parquet file, and this build of the program has no Parquet files; build with `--features parquet`",
        .0.display()
    )]
    NoParquet(PathBuf),
    /// There is neither a run nor a plan.
    #[error("there are no results in {}", .0.display())]
    NoResults(PathBuf),
    /// Another process writes to the same directory.
    #[error("another program is writing results to {}", .0.display())]
    Busy(PathBuf),
    /// A run with another identity is where this one belongs.
    #[error("{} holds another run, {found}", .path.display())]
    OtherRun {
        /// The run's directory.
        path: PathBuf,
        /// The identity found.
        found: String,
    },
    /// A directory does not say which runs it is to have.
    #[error("{} has no results.json, the list of its runs", .0.display())]
    NoPlan(PathBuf),
    /// Two directories are about different runs.
    #[error("{} and {} have {what}", .one.display(), .other.display())]
    Different {
        /// A directory.
        one: PathBuf,
        /// Another.
        other: PathBuf,
        /// In what they differ.
        what: &'static str,
    },
    /// Both have a run, and it differs.
    #[error(
        "the run {run} is not the same in {} and in {}: {file} differs",
        .one.display(),
        .other.display()
    )]
    SameRunDiffers {
        /// The run's directory.
        run: String,
        /// Which of its files.
        file: String,
        /// A results directory.
        one: PathBuf,
        /// Another.
        other: PathBuf,
    },
    /// Not all runs are there: what is missing, a line for each.
    #[error("some runs are missing:{0}")]
    Incomplete(String),
}

impl StoreError {
    /// For [`Result::map_err`].
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |error| StoreError::Io { action, path, error }
    }

    pub(super) fn damaged(path: &Path, what: impl ToString) -> Self {
        StoreError::Damaged { path: path.into(), what: what.to_string() }
    }

    /// A file has another hash than it should.
    pub(super) fn altered(path: &Path) -> Self {
        StoreError::damaged(path, "its contents are not those that were written")
    }
}

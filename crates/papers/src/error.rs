//! Errors of experiments and summaries.

use std::io;
use std::path::{Path, PathBuf};

use transom_lab::results::StoreError;
use transom_lab::scenario::Errors;

/// Why there is no experiment, no summary or no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither an experiment nor a paper is called so.
    #[error("there is no experiment {0}")]
    Unknown(String),
    /// The requested experiment is not a scenario: another command makes it.
    #[error("{id} is not a scenario: run it with `{command}` in the repository")]
    OtherExperiment {
        /// Its id.
        id: String,
        /// The command.
        command: String,
    },
    /// A scenario cannot be read.
    #[error("{0}")]
    Scenario(Errors),
    /// The text of a page cannot be read.
    #[error("papers/pages/{id}.toml: {error}")]
    PageText {
        /// The experiment.
        id: &'static str,
        /// The defect.
        error: String,
    },
    /// A scenario does not say which paper it is of.
    #[error("{0} does not name its paper")]
    NoPaper(&'static str),
    /// Runs cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {error}", .path.display())]
    Io {
        /// The action: "read" or "write".
        action: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A file is not what a summary is.
    #[error("{} is not a summary: {error}", .path.display())]
    NoSummary {
        /// The file.
        path: PathBuf,
        /// The defect.
        error: serde_json::Error,
    },
    /// A summary is of something else.
    #[error("{} belongs to another experiment or to another version of Transom; make it again", .0.display())]
    AnotherSummary(PathBuf),
}

impl Error {
    /// Why a file or directory could not be used.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::Io { action, path: path.into(), error }
    }
}

//! The conversation at a status socket (docs/live.md).
//!
//! The question is a line, `rows`. The answer is lines of JSON: a [`Head`], a [`Row`](crate::Row) for each connection, and an [`End`]. Then the
//! socket is closed. An answer without its end was cut off. The answer to anything else is a [`Refusal`].

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of the conversation. A change that an older client would misread makes it one more.
pub(crate) const VERSION: u32 = 1;
/// The question.
pub(crate) const QUESTION: &str = "rows";
/// The longest question that is read.
pub(crate) const LONGEST_QUESTION: u64 = 64;
/// So long a question and its answer may take together.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// The longest line of an answer that is read.
pub(crate) const LONGEST_LINE: u64 = 32 << 10;
/// The longest answer that is read.
pub(crate) const LONGEST_ANSWER: u64 = 256 << 20;
/// The most connections in an answer.
pub(crate) const MOST_ROWS: usize = 200_000;

/// The first line of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The version.
    pub(crate) transom: u32,
    /// How many connections there are, about.
    pub(crate) connections: usize,
}

/// The last line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct End {
    /// How many rows there were.
    pub(crate) end: usize,
}

/// The answer to a question that is none.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// Why.
    pub(crate) error: String,
}

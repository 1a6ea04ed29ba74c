//! Every TCP connection of a user's Transom processes, and of the kernel, as it is now.
//!
//! - [`StatusSocket`] answers for a host of this process at a Unix socket, which only this user can reach.
//! - [`Collector`] asks all such sockets, and the kernel by `sock_diag`. It gives a [`Row`] for each connection.
//! - [`Filter`] chooses rows by the words of `ss`. [`Column`] puts them in order.
//! - [`Changes`] tells a late or slow reader no more than what is different from what it knows.
//!
//! `transom top` and `transom dash` show what this crate collects: see docs/live.md.
//!
//! Nobody trusts anybody here. A socket's question and answer are bounded in length and time. The answers of another process are
//! cleaned: nothing in them can steer a terminal.
#![forbid(unsafe_code)]

mod changes;
mod client;
mod collector;
mod column;
mod filter;
mod kernel;
mod owners;
mod place;
mod protocol;
mod row;
mod server;
mod time_series;
mod value;

#[cfg(test)]
mod tests;

pub use changes::{Change, Changes};
pub use collector::{Collector, Snapshot, Sources};
pub use column::Column;
pub use filter::{Filter, FilterError};
pub use row::{Limit, Process, Row, Source};
pub use server::StatusSocket;
pub use time_series::{Course, Point};

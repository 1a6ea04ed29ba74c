//! Reduction: how fast recovery reduces the window to the controller's value.
//!
//! The controller decides how much: it lowers ssthresh, and cwnd to it. Without a unit, the sender then pauses until enough data
//! has left the network (RFC 5681, RFC 6675). A unit spreads the reduction over the round trip of recovery.

mod prr;

pub(crate) use prr::Prr;

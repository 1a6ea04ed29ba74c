//! Messages of both versions written by hand, the limits on errors, and round trips.

mod v4;
mod v6;

//! Westwood+ (Mascolo, Casetti, Gerla, Sanadidi, Wang: "TCP Westwood", MobiCom 2001; Grieco, Mascolo: "Westwood+", CCR 2004) as an
//! extension: one of those that icTCP (section 5.4.7) counts as changing existing variables.
//!
//! The bytes delivered in a round trip over its length, filtered, are the bandwidth that the path was seen to carry. After a loss cwnd and
//! ssthresh are that bandwidth times the least round-trip time.
//!
//! It runs the native controller as a [shadow](crate::shadow) of the connection. It differs from the source as that controller does.
//!
//! The effect of the constraint: if the path carried more than half of the window, the window is still TCP's half. So the purpose of
//! Westwood, robustness against random losses, cannot be reached. The other case remains: a window that was mostly a queue falls to the
//! path's capacity, below the half.

use crate::catalogue::Entry;
use crate::shadow::shadow;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "westwood",
    source: "Grieco, Mascolo: Westwood+, CCR 34(2), 2004",
    summary: "after a loss, sets the window to bandwidth times the least round-trip time, if that is less than half",
    parameters: &[("filter", "0.9: the weight of the past in the bandwidth filter")],
    read: |arguments| {
        shadow(arguments, ENTRY.name, "westwood", |shadow| shadow.limiting_ssthresh())
    },
};

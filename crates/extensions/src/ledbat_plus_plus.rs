//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus) as an extension, for background transfers.
//!
//! The queue is kept below a target of 60 ms. Growth is slower than Reno's by GAIN, and decrease is multiplicative. Slow start is slower too
//! and ends by delay. Periodically the window is two segments for two round trips, so that all flows see the empty path.
//!
//! It runs the native controller as a [shadow](crate::shadow) of the connection. It differs from the source as that controller does.
//!
//! LEDBAT++ is less aggressive than TCP in all it does, and so the constraint takes little from it:
//! - After a slowdown it returns to its window through its own slow start, below TCP's window, which stayed meanwhile.
//! - A TCP that restarts after idleness, or is reduced for marks, takes this window along.
//! - Attached to a connection that has already sent something, it begins with the present window and not with two segments.
//!
//! Its name here has no plus signs, as these join extensions.

use crate::catalogue::Entry;
use crate::shadow::shadow;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat-plus-plus",
    source: "draft-irtf-iccrg-ledbat-plus-plus-06",
    summary: "keeps the queue below a target delay and empties it periodically; for background transfers",
    parameters: &[("target", "60ms of queueing delay to stay below")],
    read: |arguments| shadow(arguments, ENTRY.name, "ledbat++", |shadow| shadow),
};

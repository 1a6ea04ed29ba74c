//! FAST (Wei, Jin, Low, Hegde: "FAST TCP", ToN 2006) as an extension.
//!
//! Once each round trip the window moves to min(2w, (1 − γ)·w + γ·(baseRTT/RTT·w + α)): towards the one that keeps α segments in queues, in
//! steps as large as the distance.
//!
//! It runs the native controller as a [shadow](crate::shadow) of the connection. It differs from the source as that controller does.
//!
//! The effect of the constraint: upwards it is as slow as TCP's own window. So it cannot do what FAST was made for, to fill a wide path in
//! few round trips. Downwards, when the queue holds more than α, it takes its own steps, before a loss.

use crate::catalogue::Entry;
use crate::shadow::shadow;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "fast",
    source: "Wei, Jin, Low, Hegde: FAST TCP, ToN 14(6), 2006",
    summary: "moves to the window that keeps alpha segments in queues",
    parameters: &[
        ("alpha", "20 segments to keep in queues"),
        ("gamma", "0.5: the share of the distance that a round trip covers"),
    ],
    read: |arguments| shadow(arguments, ENTRY.name, "fast", |shadow| shadow),
};

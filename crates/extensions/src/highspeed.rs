//! HighSpeed TCP (RFC 3649) as an extension: an example of an extension that wants more than TCP.
//!
//! Above 38 segments the window grows by a(w) segments a round trip, and a loss takes the share b(w) of it. TCP adds one and takes a half.
//! icTCP names it as the one that cannot be supported in a useful manner (section 5.4.7), because nothing in it is less aggressive than
//! TCP.
//!
//! The controller is the native one, run as a [shadow](crate::shadow) of the connection. Its
//! window grows independently above TCP's. So [`Ruling`](transom_tcp::extension::Ruling) shows its request, and that the safe range decides
//! against it. It has no effect on a connection with Reno: a(w) is never below one, b(w) never above a half. (CUBIC's window may exceed
//! HighSpeed's for a while; then it is a limit.)
//!
//! The request is an upper bound, not an exact value or a lower bound, so that another extension that wants less causes no conflict. It is
//! one segment more than the window, because two counts of acknowledged bytes need not reach an increase at the same byte.

use crate::catalogue::Entry;
use crate::shadow::shadow;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "highspeed",
    source: "RFC 3649",
    summary: "requests HighSpeed TCP's window; without effect, because it is larger than TCP's own",
    parameters: &[],
    read: |arguments| shadow(arguments, ENTRY.name, "highspeed", |shadow| shadow.following(false)),
};

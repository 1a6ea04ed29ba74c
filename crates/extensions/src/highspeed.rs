//! HighSpeed TCP (RFC 3649) as an extension: what it looks like when an extension wants more than TCP.
//!
//! Above 38 segments the window grows by a(w) segments a round trip, and a loss takes the share b(w) of it, where TCP adds one and takes a
//! half. icTCP names it as the one that cannot be supported in a useful manner (section 5.4.7): there is nothing in it that is less
//! aggressive than TCP.
//!
//! The controller is the native one ([`transom_tcp::congestion::highspeed`]), run [beside](crate::beside) the connection, and its window
//! goes its own way above TCP's, so that [`Ruling`](transom_tcp::extension::Ruling) shows what it asks for and that the safe range decides
//! against it. On a connection whose own controller is Reno it changes nothing at all: a(w) is never below one, b(w) never above a half.
//! (Under CUBIC, whose window may be wider than HighSpeed's for a while, it is a limit.)
//!
//! What is asked for is the most, and not this value or at least it: so that beside another extension that wants less, there is no conflict
//! and that one is heard. And it is a segment more than its window, as two counts of what was acknowledged need not come to an increase at
//! the same byte.

use crate::catalogue::Entry;
use crate::shadow::ShadowController;
use transom_tcp::congestion::highspeed;
use transom_tcp::extension::ExtensionChoice;

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "highspeed",
    source: "RFC 3649",
    summary: "asks for HighSpeed TCP's window, and gains nothing: it is more than TCP's own",
    parameters: &[],
    read: |arguments| {
        let controller = (highspeed::ENTRY.read)(arguments)?;
        Ok(ExtensionChoice::new(arguments.choice(), move || {
            Box::new(ShadowController::new(ENTRY.name, &controller).following(false))
        }))
    },
};

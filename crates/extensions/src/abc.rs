//! Appropriate Byte Counting (RFC 3465) as an extension: icTCP-ABC (section 5.4.7).
//!
//! In slow start an acknowledgement counts for the bytes that it acknowledges, up to L segments. In the slow start after a timeout it counts
//! for one segment at most (section 2.3). In congestion avoidance the window grows by a segment for each window of bytes acknowledged
//! (section 2.1).
//!
//! As an extension it has less effect than the RFC:
//! - It corrects for a receiver that divides its acknowledgements. That matters on a connection that counts acknowledgements (`count-acks`);
//!   by default a connection counts bytes already.
//! - It limits the growth from an acknowledgement of many segments in slow start. That matters on every connection whose slow start has no
//!   such limit (the word `abc` of a profile sets one). Bursts become smaller, and a window grows more slowly when acknowledgements are few.
//! - It cannot do what byte counting was proposed for, growing faster where a receiver delays its acknowledgements and the connection
//!   counts them: that would be more than TCP's own.
//! - L above 2 is allowed here and not by the RFC (section 2.3): it takes nothing away from TCP's own window, which is then the limit.
//! - Its window is Reno's. Where the connection's own controller is another one that would grow faster, such as CUBIC, it holds that to Reno.

use crate::catalogue::Entry;
use crate::shadow::ShadowController;
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::extension::ExtensionChoice;
use transom_tcp::slow_start::Standard;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "abc",
    source: "RFC 3465",
    summary: "counts the bytes of an acknowledgement, up to L segments (RFC 3465)",
    parameters: &[("limit", "2 segments: L, the limit for an acknowledgement in slow start")],
    read: |arguments| match arguments.number("limit")?.unwrap_or(2) {
        limit @ 1..=1_000_000 => {
            let limit = u32::try_from(limit).ok();
            Ok(ExtensionChoice::new(arguments.choice(), move || Box::new(extension(limit))))
        }
        limit => Err(arguments
            .impossible(format_args!("limit is between 1 and 1000000 segments, not {limit}"))),
    },
};

/// With this L, in segments.
fn extension(limit: Option<u32>) -> ShadowController {
    ShadowController::new(ENTRY.name, &CongestionChoice::reno()).slow_start(Standard::new(limit))
}

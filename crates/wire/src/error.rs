//! Why bytes were refused, on the way in or on the way out.
//!
//! One flat enum for the whole crate: callers count, log or answer by kind of defect, and the kind
//! is the same whichever header has it.

/// A packet that cannot be read, or a header that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Fewer bytes than the header has, or than its length field promises.
    #[error("the packet is truncated")]
    Truncated,
    /// The IP version is not the one expected, or neither 4 nor 6.
    #[error("the IP version is not supported")]
    BadVersion,
    /// A header length (TCP data offset, IPv4 IHL) below the fixed header's size.
    #[error("the header length is impossible")]
    BadHeaderLength,
    /// A total length smaller than the header it covers.
    #[error("the length field is impossible")]
    BadLength,
    /// An option whose length is 0 or 1 or runs past the options (RFC 9293 3.1, MUST-7), or an
    /// option that cannot be written.
    #[error("an option has an illegal length")]
    BadOption,
    /// A checksum that does not match.
    #[error("the checksum is wrong")]
    BadChecksum,
    /// More IPv6 extension headers than are followed.
    #[error("too many extension headers")]
    TooManyExtensionHeaders,
    /// Offload metadata that is impossible for the packet it came with, or not supported.
    #[error("the offload request does not fit the packet")]
    BadOffload,
    /// The output buffer is too small.
    #[error("the output buffer is too small")]
    BufferTooSmall,
    /// More option bytes or payload than the header's length field can express.
    #[error("the header or packet would be too long")]
    TooLong,
}

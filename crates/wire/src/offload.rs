//! Work that a packet's sender has left to the device, and work the device has done.
//!
//! A stack that hands 64 KB at a time to a device, with one header in front and the checksum left open, spends
//! its time once per 64 KB instead of once per segment. What is left open must travel beside the packet:
//! [`TxOffload`] on the way out, [`RxOffload`] on the way in. Both are plain data, and both have a meaning in
//! software, so that a device without the offload, or a capture, can do the work itself.

/// The state of the transport checksum in a packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TxChecksum {
    /// The checksum field is final.
    #[default]
    Complete,
    /// The device completes the checksum. The checksum field holds the folded, *not* complemented sum of the
    /// pseudo-header; the device sums from `start` to the end of the packet, field included, and stores the
    /// complement at `start + offset`.
    Partial {
        /// Where the sum begins: the transport header's offset in the packet, in bytes.
        start: u16,
        /// Where the checksum field is, in bytes from `start`.
        offset: u16,
    },
}

/// The protocols a super-segment can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
}

/// A packet that stands for several segments of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segmentation {
    /// What to cut.
    pub kind: SegmentKind,
    /// Payload bytes in each segment but the last, which may have fewer.
    pub segment_size: u16,
    /// Bytes of IP and TCP header in front of the payload.
    pub header_len: u16,
}

/// What the device has to do before a packet is on the wire; the default is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TxOffload {
    /// The transport checksum's state.
    pub checksum: TxChecksum,
    /// How to cut the packet into segments, if it is a super-segment.
    pub segmentation: Option<Segmentation>,
}

/// What is known about the transport checksum of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum RxChecksum {
    /// Nothing: the receiver must verify it.
    #[default]
    Unverified,
    /// The payload is as it was sent, and the checksum field may not be looked at: the device has verified it, or
    /// the packet never left the machine and the field was never completed.
    Valid,
}

/// What the device has done to a received packet; the default is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RxOffload {
    /// What is known about the transport checksum.
    pub checksum: RxChecksum,
    /// How the packet was put together, if it is a super-segment.
    pub segmentation: Option<Segmentation>,
}

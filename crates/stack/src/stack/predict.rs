//! Header prediction: received data goes straight into the memory of the waiting application.
//!
//! A device with scattered reads puts the headers of the next packet here and the rest there. The owner may guess that the next
//! packet is the next data of one connection, whose reader waits with its buffer. Then the data lands in that buffer at once
//! and is never copied again. The guess is checked before anything else. If it was wrong, the owner joins the packet and
//! handles it like any other.

use super::{ConnectionId, Stack, lent};
use core::cell::Cell;
use transom_tcp::Segment;
use transom_tcp::packet::Payload;
use transom_tcp::time::Instant;
use transom_wire::ip::peek_ecn;
use transom_wire::offload::{RxChecksum, RxOffload};
use transom_wire::{Flags, Protocol, TcpPacket};

impl Stack {
    /// The number of header bytes in the next data packet for `id`. `None` if no guess is useful, because there is data to read
    /// already or the peer will send no more.
    pub fn expected_headers(&self, id: ConnectionId) -> Option<usize> {
        let slot = self.slots.get(self.slot_index(id)?)?;
        let connection = &slot.connection;
        if connection.readable() > 0
            || connection.hole().is_some()
            || !connection.state().can_receive()
            || slot.to_self
        {
            return None;
        }
        let ip = if slot.key.local.is_ipv4() { 20 } else { 40 };
        Some(ip + connection.expected_header_len())
    }

    /// A packet arrived in two parts: `head`, of the length from [`Stack::expected_headers`], and `body`, in the memory of the
    /// reader of `id`. Returns how many bytes of `body` the reader may keep. Returns `None` if the packet is another one: then
    /// nothing has been done.
    pub fn on_expected(
        &mut self,
        now: Instant,
        id: ConnectionId,
        head: &[u8],
        body: &[u8],
        offload: RxOffload,
    ) -> Option<usize> {
        let index = self.slot_index(id)?;
        let subject = self.subject(index, now);
        let state = self.memory_state();
        let slot = self.slots.get_mut(index)?;
        // Without somebody's word for the checksum, the ordinary way verifies it. Our packets to
        // ourselves do not come this way: they would be forged.
        if offload.checksum != RxChecksum::Valid || slot.detached || slot.to_self {
            return None;
        }
        let transport = plain_transport(&slot.key, head, body.len())?;
        let tcp = TcpPacket::parse(transport).ok()?;
        let header = &tcp.header;
        let expected = tcp.payload.is_empty()
            && header.src_port == slot.key.remote_port
            && header.dst_port == slot.key.local_port
            && (header.flags - Flags::PSH) == Flags::ACK;
        if !expected {
            return None;
        }
        self.counters.packets_received += 1;
        let claimed = Cell::new(0);
        let segment = Segment {
            header,
            payload: Payload::in_place(body, &claimed),
            segment_size: offload.segmentation.map(|seg| seg.segment_size),
            ecn: peek_ecn(head),
        };
        lent(&mut slot.connection, state, &mut self.blocks, |connection| {
            connection.on_segment(now, &segment);
        });
        slot.connection.publish(&mut self.log.recorder(subject));
        let claimed = claimed.get();
        if claimed > 0 {
            slot.connection.consumed_in_place(now, claimed);
        }
        self.touched(index, now);
        Some(claimed)
    }
}

/// The transport header in `head`, if the IP header is plain and is that of a whole packet from the peer to us with `body_len`
/// bytes behind `head`.
fn plain_transport<'a>(
    key: &crate::flow::FlowKey,
    head: &'a [u8],
    body_len: usize,
) -> Option<&'a [u8]> {
    use core::net::IpAddr;
    match (key.local, key.remote) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            let (ip, transport) = head.split_first_chunk::<20>()?;
            let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            // No options, no fragment (the don't-fragment bit may be set), TCP.
            let plain = ip[0] == 0x45
                && total == head.len() + body_len
                && u16::from_be_bytes([ip[6], ip[7]]) & 0xbfff == 0
                && ip[9] == Protocol::TCP.0
                && ip[12..16] == remote.octets()
                && ip[16..20] == local.octets()
                && transom_wire::checksum::Sum::of(ip).is_valid();
            plain.then_some(transport)
        }
        (IpAddr::V6(local), IpAddr::V6(remote)) => {
            let (ip, transport) = head.split_first_chunk::<40>()?;
            let total = usize::from(u16::from_be_bytes([ip[4], ip[5]])) + 40;
            let plain = ip[0] >> 4 == 6
                && total == head.len() + body_len
                && ip[6] == Protocol::TCP.0
                && ip[8..24] == remote.octets()
                && ip[24..40] == local.octets();
            plain.then_some(transport)
        }
        _ => None,
    }
}

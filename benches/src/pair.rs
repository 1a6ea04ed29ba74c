//! Two Transom hosts in one thread, joined by nothing but a copy.
//!
//! Each packet of one host is copied into a pooled buffer, as a device would read it from a wire, and given to the other.
//! So there is the whole of TCP on both ends, every checksum computed and verified in software, and no system call: the
//! cost of the protocol code alone.

use anyhow::{Context, ensure};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use transom_device::memory::{MemoryConfig, MemoryLink};
use transom_device::{Device, RxPacket, TxPacket};
use transom_stack::{ConnectionId, ListenConfig, ListenerId, Offload, Stack, StackConfig};
use transom_tcp::time::Instant;
use transom_tcp::{FlowChoice, Profile, ReceiveWindowConfig};

/// The MTU between the two: Ethernet's.
pub const MTU: usize = 1500;
/// Buffers kept for reuse: more than a window of either direction.
const KEEP: usize = 8192;
/// The server's address and port.
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(198, 51, 100, 2), 7);
/// The client's address.
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// A profile whose socket buffers have a fixed size in bytes.
pub fn fixed_buffers(bytes: usize) -> Profile {
    Profile::classic()
        .with_send_buffer(bytes)
        .with_max_send_buffer(bytes)
        .with_flow(FlowChoice::ReceiveWindow(ReceiveWindowConfig::new(bytes, bytes)))
}

/// A client and a server with a connection between them.
#[derive(Debug)]
pub struct Pair {
    /// The host that connected.
    pub client: Stack,
    /// The host that accepted.
    pub server: Stack,
    /// The connection as the client knows it.
    pub at_client: ConnectionId,
    /// The connection as the server knows it.
    pub at_server: ConnectionId,
    wire: MemoryLink,
}

impl Pair {
    /// Connects two new hosts.
    ///
    /// # Errors
    /// When the profile does not work or the handshake does not complete.
    pub fn connect(profile: Profile, now: Instant) -> anyhow::Result<Self> {
        Pair::connect_with(profile, Some(65_535), now)
    }

    /// The same with super-segments of at most so many bytes, or none.
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(
        profile: Profile,
        segmentation: Option<usize>,
        now: Instant,
    ) -> anyhow::Result<Self> {
        Pair::connect_logging(profile, segmentation, None, now)
    }

    /// The same with event logs of so many records, or of the usual number.
    ///
    /// # Errors
    /// As there.
    pub fn connect_logging(
        profile: Profile,
        segmentation: Option<usize>,
        log_records: Option<usize>,
        now: Instant,
    ) -> anyhow::Result<Self> {
        let profile = Arc::new(profile);
        let host = |address: Ipv4Addr, secret: u8| {
            let usual = StackConfig::new(vec![(IpAddr::V4(address), 24)]);
            let records = log_records.unwrap_or(usual.log_records);
            let config = usual
                .with_mtu(MTU as u32)
                .with_offload(
                    Offload::default().with_tx_checksum(true).with_segmentation(segmentation),
                )
                .with_profile(profile.clone())
                .with_secret([secret; 16])
                .with_log_records(records);
            Stack::new(config, now)
        };
        let (mut client, mut server) = (host(CLIENT, 1)?, host(SERVER.0, 2)?);
        let address = SocketAddr::from(SERVER);
        let listener = server.listen(address, ListenConfig::default())?;
        let at_client = client.connect(now, None, address, None)?;
        let mut wire = wire();
        let at_server = establish(&mut client, &mut server, listener, &mut wire, now)?;
        let established = |stack: &Stack, id| {
            stack.connection(id).is_some_and(|connection| connection.state().is_synchronized())
        };
        ensure!(
            established(&client, at_client) && established(&server, at_server),
            "the handshake did not complete"
        );
        Ok(Pair { client, server, at_client, at_server, wire })
    }

    /// Carries packets both ways until neither host has any; returns how many there were.
    pub fn exchange(&mut self, now: Instant) -> u64 {
        let mut carried = 0;
        loop {
            let there = carry(&mut self.client, &mut self.server, &mut self.wire, now);
            let back = carry(&mut self.server, &mut self.client, &mut self.wire, now);
            carried += there + back;
            if there + back == 0 {
                return carried;
            }
        }
    }

    /// Lets both hosts act on the time, without carrying anything.
    pub fn tick(&mut self, now: Instant) {
        for host in [&mut self.client, &mut self.server] {
            host.on_timeout(now);
            // Nobody waits for events here, but they must not pile up.
            while host.poll_signal().is_some() {}
        }
    }
}

fn establish(
    client: &mut Stack,
    server: &mut Stack,
    listener: ListenerId,
    wire: &mut MemoryLink,
    now: Instant,
) -> anyhow::Result<ConnectionId> {
    while carry(client, server, wire, now) + carry(server, client, wire, now) > 0 {}
    let (id, _) = server.accept(listener).context("nothing to accept")?;
    Ok(id)
}

/// The wire between two hosts in one thread: network cards at both ends cut super-segments into packets of [`MTU`] bytes and
/// complete checksums. The receiving host verifies them.
pub fn wire() -> MemoryLink {
    MemoryLink::new(&MemoryConfig::with_cards().with_mtu(MTU).with_queue_packets(KEEP))
}

/// Carries what `from` has to send to `to`; returns how many packets there were.
pub fn carry(from: &mut Stack, to: &mut Stack, wire: &mut MemoryLink, now: Instant) -> u64 {
    let mut carried = 0;
    while send_next(from, wire, now) {
        carried += receive_all(to, wire, now);
    }
    carried
}

/// The same, but all packets are on the wire before the first is received.
pub fn carry_together(
    from: &mut Stack,
    to: &mut Stack,
    wire: &mut MemoryLink,
    now: Instant,
) -> u64 {
    while send_next(from, wire, now) {}
    receive_all(to, wire, now)
}

/// Puts the next packet on the wire; returns whether there was one.
#[inline]
fn send_next(from: &mut Stack, wire: &mut MemoryLink, now: Instant) -> bool {
    let Some(packet) = from.poll_transmit(now) else { return false };
    let packet =
        TxPacket { headers: packet.headers, payload: packet.payload, offload: packet.offload };
    // There is room; what the wire cannot take is lost, and the transfer would show it.
    let _ = wire.send(&packet);
    true
}

#[inline]
fn receive_all(to: &mut Stack, wire: &mut MemoryLink, now: Instant) -> u64 {
    let mut received = 0;
    while let Ok(RxPacket { buffer, range, offload }) = wire.recv() {
        if let Some(buffer) = to.on_owned_packet(now, buffer, range, offload) {
            wire.recycle(buffer);
        }
        received += 1;
    }
    while let Some(buffer) = to.reclaim() {
        wire.recycle(buffer);
    }
    received
}

//! The three ways a packet comes in give the same result.
//!
//! [`Stack::on_packet`] lends the packet, [`Stack::on_owned_packet`] gives its buffer away, and [`Stack::on_expected`] has it in two
//! parts, the second in the memory of a reader who waits. For any input and any behaviour of the application, all entrances send,
//! deliver and count the same, byte for byte. No buffer gets lost.

mod traffic;

use crate::harness::*;
use proptest::prelude::*;
use traffic::{Arrival, Step, Twist, packets, step};
use transom_stack::{ConnectionId, StackSignal};
use transom_tcp::packet::PacketBuf;
use transom_tcp::time::Duration;
use transom_wire::offload::{RxChecksum, RxOffload, SegmentKind, Segmentation};
use transom_wire::{Flags, Protocol};

/// How packets come in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entrance {
    Lent,
    Owned,
    Expected,
}

/// A host that gets all packets by one entrance.
struct Scene {
    host: Host,
    entrance: Entrance,
    id: ConnectionId,
    peer: Peer,
    read: Vec<u8>,
    /// Buffers given away and not come back.
    away: usize,
    /// Packets that went straight to the reader, or whose buffer was kept.
    direct: usize,
    buffer: Vec<u8>,
}

impl Scene {
    fn new(entrance: Entrance, v6: bool, timestamps: bool) -> Self {
        let mut host = Host::new();
        let (from, to) = if v6 {
            (at(crate::harness::PEER6, 4000), at(crate::harness::HOST6, 80))
        } else {
            (at(crate::harness::PEER, 4000), service())
        };
        let listener = host.listen(to);
        let mut peer = Peer::new(from, to);
        peer.shake(&mut host, if timestamps { usual_options() } else { bare_options() });
        let id = host.accept(listener);
        let read = Vec::new();
        Scene { host, entrance, id, peer, read, away: 0, direct: 0, buffer: vec![0; 65_536] }
    }

    /// What leaves, as packets.
    fn step(&mut self, step: &Step) -> Vec<Vec<u8>> {
        self.host.sent();
        match step {
            Step::Arrive(arrival) => {
                for packet in packets(&self.peer, arrival) {
                    self.arrive(&packet, arrival);
                }
                if arrival.from == 0 && arrival.len > 0 && matches!(arrival.twist, Twist::None) {
                    self.peer.seq += arrival.len as u32;
                }
            }
            Step::Read(most) => self.read(*most),
            Step::Write(len) => {
                let id = self.id;
                let _ = self.host.call(|stack, now| stack.write(id, now, &stream(*len)));
            }
            Step::Wait(millis) => {
                // Not Host::advance: it would hide what leaves.
                let end = self.host.now + Duration::from_millis(*millis);
                while let Some(due) = self.host.stack.next_timeout().filter(|&due| due <= end) {
                    self.host.now = self.host.now.max(due);
                    self.host.call(|stack, now| stack.on_timeout(now));
                }
                self.host.now = end;
            }
            Step::Shutdown => {
                let id = self.id;
                let _ = self.host.call(|stack, now| stack.shutdown_write(id, now));
            }
        }
        while self.host.stack.reclaim().is_some() {
            self.away -= 1;
        }
        let sent = self.host.sent();
        // The other end takes everything as received, so that acknowledgements make sense.
        for packet in &sent {
            let is_tcp = packet.ip().protocol() == Protocol::TCP;
            if is_tcp && packet.flags().contains(Flags::ACK) && packet.ends().1 == self.peer.from {
                self.peer.receive(std::slice::from_ref(packet));
            }
        }
        let closed = self.peer_has_closed();
        sent.into_iter()
            .map(|sent| if closed { without_window(sent) } else { sent.bytes })
            .collect()
    }

    /// A window offered to a peer who has sent its last byte means nothing, and is not compared.
    fn peer_has_closed(&self) -> bool {
        self.host.stack.connection(self.id).is_some_and(|connection| connection.peer_has_closed())
    }

    fn arrive(&mut self, packet: &[u8], arrival: &Arrival) {
        let Scene { host, entrance, id, .. } = self;
        let (now, id) = (host.now, *id);
        let checksum = if arrival.vouched { RxChecksum::Valid } else { RxChecksum::Unverified };
        let kind = if packet.first().is_some_and(|first| first >> 4 == 6) {
            SegmentKind::Tcp6
        } else {
            SegmentKind::Tcp4
        };
        let merged = Segmentation { kind, segment_size: 1_448, header_len: 52 };
        let segmentation = (arrival.merged && arrival.len > 1_448).then_some(merged);
        let offload = RxOffload { checksum, segmentation };
        match entrance {
            Entrance::Lent => {
                host.stack.on_packet(now, packet, offload);
            }
            Entrance::Owned => {
                // Not at the buffer's beginning, as behind a device's own header.
                let buffer = PacketBuf::from([&[0xaa; 10], packet, &[0xbb; 3]].concat());
                let range = 10..10 + packet.len();
                if host.stack.on_owned_packet(now, buffer, range, offload).is_none() {
                    self.away += 1;
                    self.direct += 1;
                }
            }
            Entrance::Expected => {
                let head = host.stack.expected_headers(id).filter(|_| arrival.awaited);
                let taken =
                    head.and_then(|head| packet.split_at_checked(head)).and_then(|(head, body)| {
                        let kept = host.stack.on_expected(now, id, head, body, offload)?;
                        self.read.extend_from_slice(&body[..kept]);
                        self.direct += usize::from(kept > 0);
                        Some(())
                    });
                if taken.is_none() {
                    host.stack.on_packet(now, packet, offload);
                }
            }
        }
        // The reader who waits takes at once what is there, in all three.
        if arrival.awaited {
            let mut buffer = std::mem::take(&mut self.buffer);
            while let Ok(n @ 1..) = self.host.stack.read(id, now, &mut buffer) {
                self.read.extend_from_slice(&buffer[..n]);
            }
            self.buffer = buffer;
        }
        self.host.call(|_, _| ());
    }

    fn read(&mut self, most: usize) {
        let (id, mut buffer) = (self.id, std::mem::take(&mut self.buffer));
        let part = &mut buffer[..most];
        if let Ok(n) = self.host.call(|stack, now| stack.read(id, now, part)) {
            self.read.extend_from_slice(&part[..n]);
        }
        self.buffer = buffer;
    }

    /// Everything about the connection that can be seen.
    fn view(&self) -> String {
        let info = self.host.stack.connection(self.id).map(|connection| {
            let mut info = connection.info(self.host.now);
            if self.peer_has_closed() {
                info.rcv_wnd = 0;
            }
            (info, connection.error(), connection.end_of_stream())
        });
        format!("{info:?} {:?} {}", self.host.counters(), self.host.stack.memory().spare)
    }

    /// The notices, without how often there was something to read: a reader that got the data gets no notice.
    fn told(&self) -> Vec<StackSignal> {
        use transom_tcp::Signal;
        let readable = StackSignal::Connection(self.id, Signal::Readable);
        self.host.signals.iter().copied().filter(|&event| event != readable).collect()
    }
}

/// A packet without the window field of its TCP header, and the checksum that covers it.
fn without_window(sent: Sent) -> Vec<u8> {
    let ip = sent.ip();
    let (protocol, at) = (ip.protocol(), ip.header_len() + 14);
    let mut bytes = sent.bytes;
    if protocol == Protocol::TCP {
        bytes[at..at + 4].fill(0);
    }
    bytes
}

/// What can be said after [`run`].
struct Outcome {
    /// How often the second and the third entrance were of use.
    direct: [usize; 2],
    receive_buffer: usize,
}

/// Runs the same steps by all three entrances.
fn run(steps: &[Step], v6: bool, timestamps: bool) -> Result<Outcome, TestCaseError> {
    let [mut lent, mut owned, mut expected] = [Entrance::Lent, Entrance::Owned, Entrance::Expected]
        .map(|entrance| Scene::new(entrance, v6, timestamps));
    for step in steps {
        let reference = lent.step(step);
        for other in [&mut owned, &mut expected] {
            let sent = other.step(step);
            prop_assert!(
                sent == reference,
                "{:?} after {step:?}: {sent:?}, not {reference:?}",
                other.entrance
            );
            prop_assert_eq!(other.view(), lent.view(), "{:?} after {:?}", other.entrance, step);
        }
    }
    for other in [&mut owned, &mut expected] {
        while other.host.stack.connection(other.id).unwrap().readable() > 0 {
            other.read(65_536);
        }
    }
    while lent.host.stack.connection(lent.id).unwrap().readable() > 0 {
        lent.read(65_536);
    }
    for other in [&mut owned, &mut expected] {
        prop_assert!(other.read == lent.read, "{:?}: other bytes were read", other.entrance);
        prop_assert_eq!(other.told(), lent.told());
        while other.host.stack.reclaim().is_some() {
            other.away -= 1;
        }
    }
    // Data that was read needs no buffer any more. Data behind a gap may hold some. Data of a failed connection is freed.
    let connection = owned.host.stack.connection(owned.id).unwrap();
    let gaps = connection.counters().out_of_order_segments > 0;
    if !gaps && connection.error().is_none() {
        prop_assert_eq!(owned.away, 0, "buffers did not come back");
    }
    let receive_buffer = connection.info(owned.host.now).rcv_buffer;
    Ok(Outcome { direct: [owned.direct, expected.direct], receive_buffer })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn all_three_give_the_same_result(
        steps in prop::collection::vec(step(), 1..40), v6: bool, timestamps: bool,
    ) {
        run(&steps, v6, timestamps)?;
    }
}

/// The property would hold of entrances that always take the ordinary way. They do not.
#[test]
fn the_short_ways_are_taken() {
    let bulk = Arrival {
        from: 0,
        len: 30_000,
        flags: Flags::ACK,
        acknowledges: true,
        window: 65_535,
        vouched: true,
        merged: true,
        twist: Twist::None,
        awaited: true,
    };
    // Rounds of ten milliseconds, so that the receive buffer is tuned to a reader who keeps up.
    let mut round = vec![Step::Write(100), Step::Wait(10)];
    round.extend(vec![Step::Arrive(bulk); 4]);
    let steps: Vec<Step> = round.iter().cycle().take(50 * round.len()).cloned().collect();
    for v6 in [false, true] {
        let Outcome { direct, receive_buffer } = run(&steps, v6, true).unwrap();
        assert_eq!(direct, [200, 200]);
        assert!(receive_buffer > 128 * 1024, "it has stayed at {receive_buffer} bytes");
    }
}

/// A connection of the host with itself is not to be spoken for by the network, by any entrance.
#[test]
fn no_entrance_lets_the_network_speak_for_the_host() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let client = host.connect(service());
    let server = host.accept(listener);
    let from = host.stack.local_address(client).unwrap();
    // What the client would send next, known exactly.
    let [client_next, server_next] = [client, server].map(|id| {
        let connection = host.stack.connection(id).unwrap();
        connection.iss() + 1
    });
    let mut forged = Peer { seq: client_next, ack: server_next, ..Peer::new(from, service()) };
    let offset = 1_000_000;
    forged.timestamps = Some(transom_wire::Timestamps { value: offset, echo: 0 });
    let packet = forged.segment(Flags::ACK | Flags::PSH, b"forged");
    let offload = RxOffload { checksum: RxChecksum::Valid, segmentation: None };
    let now = host.now;
    host.stack.on_packet(now, &packet, offload);
    let len = packet.len();
    assert!(
        host.stack.on_owned_packet(now, PacketBuf::from(&packet[..]), 0..len, offload).is_some()
    );
    // Nobody is asked to guess for such a connection, and a guess made all the same is refused.
    assert_eq!(host.stack.expected_headers(server), None);
    let (head, body) = packet.split_at(packet.len() - b"forged".len());
    assert_eq!(host.stack.on_expected(now, server, head, body, offload), None);
    host.call(|_, _| ());
    assert!(host.sent().is_empty());
    assert_eq!(host.counters().misaddressed, 2);
}

/// If any bit of an IP header is damaged, no entrance takes the segment, even if the device vouches for the payload.
#[test]
fn no_entrance_overlooks_a_damaged_header() {
    let offload = RxOffload { checksum: RxChecksum::Valid, segmentation: None };
    for entrance in [Entrance::Lent, Entrance::Owned, Entrance::Expected] {
        let scene = Scene::new(entrance, false, true);
        let Scene { mut host, id, peer, .. } = scene;
        let good = peer.segment(Flags::ACK | Flags::PSH, &stream(1_000));
        let now = host.now;
        for bit in 0..160 {
            let mut packet = good.clone();
            packet[bit / 8] ^= 0x80 >> (bit % 8);
            match entrance {
                Entrance::Lent => {
                    host.stack.on_packet(now, &packet, offload);
                }
                Entrance::Owned => {
                    let (len, buffer) = (packet.len(), PacketBuf::from(&packet[..]));
                    assert!(host.stack.on_owned_packet(now, buffer, 0..len, offload).is_some());
                }
                Entrance::Expected => {
                    let head = host.stack.expected_headers(id).unwrap();
                    let (head, body) = packet.split_at(head);
                    assert_eq!(host.stack.on_expected(now, id, head, body, offload), None);
                }
            }
            assert_eq!(host.connection(id).readable(), 0, "bit {bit}, {entrance:?}");
        }
    }
}

/// A guess makes sense only for a reader who would get the next byte, from a peer who may still send one.
#[test]
fn headers_are_expected_only_when_the_next_data_is_the_readers() {
    for (v6, timestamps, expected) in
        [(false, true, 52), (false, false, 40), (true, true, 72), (true, false, 60)]
    {
        let Scene { mut host, id, mut peer, .. } = Scene::new(Entrance::Expected, v6, timestamps);
        assert_eq!(host.stack.expected_headers(id), Some(expected));
        peer.send(&mut host, b"data");
        assert_eq!(host.stack.expected_headers(id), None);
        assert_eq!(host.read(id), b"data");
        assert_eq!(host.stack.expected_headers(id), Some(expected));
        peer.close_by_peer(&mut host);
        assert_eq!(host.stack.expected_headers(id), None);
        host.call(|stack, now| stack.abort(id, now));
        assert_eq!(host.stack.expected_headers(id), None);
    }
}

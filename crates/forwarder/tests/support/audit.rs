//! Looks at every packet that comes back from behind the bottleneck, before the router and after it, and says what is not as it should be.
//!
//! For this nothing may merge or cut packets on the way: offloads are off, so that checksums are complete as well.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use transom_device::FrameSocket;
use transom_device::namespace::Namespace;
use transom_router::window::Segment;
use transom_wire::ip::IpPacket;
use transom_wire::offload::VirtioNetHdr;
use transom_wire::tcp::Flags;

use super::{BOTTLENECK, Net};

/// Bytes before the IP packet.
const START: usize = VirtioNetHdr::LEN + 14;

struct Tap {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

impl Tap {
    fn new(namespace: &Namespace, name: &str) -> Self {
        let index = namespace.interfaces().state(name).unwrap().index;
        let socket = namespace.run(|| FrameSocket::open(index)).unwrap().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut buffer, mut packets) = (vec![0; FrameSocket::MAX_LEN], Vec::new());
            loop {
                // Asked before looking, so that what was there then is taken.
                let last = stopped.load(Ordering::Relaxed);
                while let Some(length) = socket.receive(&mut buffer).unwrap() {
                    packets.extend(buffer.get(START..length).map(<[u8]>::to_vec));
                }
                if last {
                    return packets;
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        Tap { stop, thread }
    }

    fn packets(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// What comes back, before and after the router.
pub(crate) struct Audit {
    before: Tap,
    after: Tap,
    receivers: [IpAddr; 2],
}

/// What was found in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Audited {
    pub(crate) segments: usize,
    pub(crate) syns: usize,
    pub(crate) rewritten: usize,
    /// SYNs whose window was changed.
    pub(crate) lowered: usize,
}

impl Audit {
    pub(crate) fn begin(net: &Net) -> Self {
        let [_, (four, six)] = net.addresses;
        let before = Tap::new(&net.router, BOTTLENECK);
        let after = Tap::new(&net.sender, "near");
        Audit { before, after, receivers: [four, six] }
    }

    /// Compares. It panics with the reason if a packet is wrong.
    pub(crate) fn end(self) -> Audited {
        let (before, after) = (self.before.packets(), self.after.packets());
        let (before, after) = (flows(&before, self.receivers), flows(&after, self.receivers));
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        let mut audited = Audited::default();
        for (name, sent) in &before {
            let arrived = &after[name];
            assert_eq!(sent.len(), arrived.len(), "{name}: packets lost or more of them");
            let mut flow = Flow::default();
            // In the order in which the sender gets them: two processors may let packets overtake each other on the way.
            let mut originals: HashMap<Vec<u8>, VecDeque<&[u8]>> = HashMap::new();
            for old in sent {
                originals.entry(blanked(old)).or_default().push_back(old);
            }
            for new in arrived {
                let old = originals.get_mut(&blanked(new)).and_then(VecDeque::pop_front);
                let old = old.unwrap_or_else(|| panic!("{name}: changed into {new:02x?}"));
                flow.compare(name, old, new, &mut audited);
            }
        }
        audited
    }
}

/// The packets of each flow that its receiver has sent, in their order.
fn flows(packets: &[Vec<u8>], receivers: [IpAddr; 2]) -> BTreeMap<String, Vec<&[u8]>> {
    let mut flows: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for packet in packets {
        let (Ok(ip), Some(segment)) =
            (IpPacket::parse(packet), Segment::peek(packet, packet.len()))
        else {
            continue;
        };
        if receivers.contains(&ip.src()) {
            let name =
                format!("{}:{} -> {}:{}", ip.src(), segment.src_port, ip.dst(), segment.dst_port);
            flows.entry(name).or_default().push(packet);
        }
    }
    flows
}

#[derive(Default)]
struct Flow {
    scale: u8,
    mss: u32,
    /// The right edge furthest right, as the sender knows it.
    edge: Option<u32>,
    /// And the one that the receiver gave.
    given: Option<u32>,
}

fn furthest(known: Option<u32>, edge: u32) -> Option<u32> {
    match known {
        Some(known) if edge.wrapping_sub(known) as i32 <= 0 => Some(known),
        _ => Some(edge),
    }
}

impl Flow {
    fn compare(&mut self, name: &str, old: &[u8], new: &[u8], audited: &mut Audited) {
        let (a, b) =
            (Segment::peek(old, old.len()).unwrap(), Segment::peek(new, new.len()).unwrap());
        assert!(
            IpPacket::parse(new).unwrap().transport_checksum_ok(),
            "{name}: a wrong checksum in {new:02x?}"
        );
        audited.segments += 1;
        if a.is_syn() {
            audited.syns += 1;
            let options = a.options(old).unwrap();
            // Both hosts scale: they are kernels like this one.
            self.scale = options.window_scale.unwrap();
            self.mss = options.mss.unwrap().into();
            // Its window is never scaled, and without ACK nobody can say where the edge is.
            let told = a.flags.contains(Flags::ACK);
            self.bounds(name, [a.window, b.window].map(u32::from), told.then_some(b.ack.get()));
            audited.lowered += usize::from(a.window != b.window);
            return;
        }
        if a.flags.contains(Flags::RST) {
            assert_eq!(a.window, b.window, "{name}: a RST was changed");
            return;
        }
        let windows = [a.window, b.window].map(|window| u32::from(window) << self.scale);
        self.bounds(name, windows, Some(b.ack.get()));
        audited.rewritten += usize::from(a.window != b.window);
    }

    /// What is written in place of what is advertised, in bytes, beside the edge that the sender has been told.
    fn bounds(&mut self, name: &str, [advertised, written]: [u32; 2], ack: Option<u32>) {
        assert!(
            written <= advertised,
            "{name}: {written} is more than the {advertised} that the receiver takes"
        );
        assert!(
            written >= self.mss.min(advertised),
            "{name}: {written} is less than a segment of {}",
            self.mss
        );
        let Some(ack) = ack else { return };
        // It moves left only as far as the receiver's own does.
        let (edge, given) = (ack.wrapping_add(written), ack.wrapping_add(advertised));
        let (known, was_given) = (self.edge.unwrap_or(edge), self.given.unwrap_or(given));
        let left = known.wrapping_sub(edge) as i32;
        let old_ack = was_given.wrapping_sub(given) as i32 > 0;
        assert!(
            left <= 0 || old_ack || written == advertised,
            "{name}: the right edge moved left by {left}"
        );
        self.edge = furthest(self.edge, edge);
        self.given = furthest(self.given, given);
    }
}

/// A packet without what may be different: hop limit and checksum of the way, window and checksum of the marker.
fn blanked(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let tcp = match packet[0] >> 4 {
        4 => {
            packet[8] = 0;
            packet[10..12].fill(0);
            usize::from(packet[0] & 15) * 4
        }
        _ => {
            packet[7] = 0;
            40
        }
    };
    packet[tcp + 14..tcp + 18].fill(0);
    packet
}

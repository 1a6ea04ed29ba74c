//! The way from the beginning of a frame to its IP header, for each kind of link.
//!
//! The kinds are those of the registry of link types of the pcap format, as far as IP goes over them. Not read are ARCNET, LocalTalk,
//! Bluetooth, USB, InfiniBand, telephone signalling, frames of switches with a vendor's tags, and tunnels inside of IP.

mod ppp;
mod wifi;

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const TOKEN_RING: u16 = 6;
const SLIP: u16 = 8;
const PPP: u16 = 9;
const FDDI: u16 = 10;
const PPP_HDLC: u16 = 50;
const PPP_ETHER: u16 = 51;
const ATM_RFC1483: u16 = 100;
/// The registry's value, and those of two families of systems.
const RAW: u16 = 101;
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
const C_HDLC: u16 = 104;
const WIFI: u16 = 105;
const FRAME_RELAY: u16 = 107;
const LOOP: u16 = 108;
const ENC: u16 = 109;
const LINUX_SLL: u16 = 113;
const PFLOG: u16 = 117;
const PRISM: u16 = 119;
const FIBRE_CHANNEL: u16 = 122;
const SUN_ATM: u16 = 123;
const RADIOTAP: u16 = 127;
const FIREWIRE: u16 = 138;
const AVS: u16 = 163;
const PPP_PPPD: u16 = 166;
const PPI: u16 = 192;
const PPP_WITH_DIRECTION: u16 = 204;
const C_HDLC_WITH_DIRECTION: u16 = 205;
const FRAME_RELAY_WITH_DIRECTION: u16 = 206;
const IPNET: u16 = 226;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const NFLOG: u16 = 239;
const MPACKET: u16 = 274;
const LINUX_SLL2: u16 = 276;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_PPPOE: u16 = 0x8864;
/// Labels of a switched path, to one or several receivers (RFC 5332).
const TYPE_MPLS: [u16; 2] = [0x8847, 0x8848];
/// Tags of VLANs: of one, of a provider (IEEE 802.1ad), and the older form of that.
const TYPE_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Below this a type is the length of a frame with LLC (IEEE 802.3 3.2.6).
const FIRST_TYPE: u16 = 0x0600;

/// Why there is no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoIp {
    /// The frame carries something else.
    Other,
    /// The capture kept too little.
    Short,
    /// The kind of link is not known here.
    Link,
}

/// Where the IP packet begins.
pub(crate) fn ip(link: u16, frame: &[u8]) -> Result<usize, NoIp> {
    match link {
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => Ok(0),
        // The family's number is in the byte order of the capturing host and differs by system: the packet itself has its version.
        NULL | LOOP => Ok(4),
        ETHERNET => by_type(frame, 12, 14),
        LINUX_SLL => by_type(frame, 14, 16),
        LINUX_SLL2 => by_type(frame, 0, 20),
        // A preamble of eight bytes.
        MPACKET => by_type(frame, 20, 22),
        // Two addresses of eight bytes (RFC 2734 section 4).
        FIREWIRE => by_type(frame, 16, 18),
        PPP => ppp::frame(frame, 0),
        PPP_HDLC => ppp::hdlc(frame, 0),
        PPP_ETHER => ppp::protocol(frame, 6),
        // The direction takes the place of the address.
        PPP_PPPD => ppp::protocol(frame, 2),
        PPP_WITH_DIRECTION => ppp::frame(frame, 1),
        C_HDLC => by_type(frame, 2, 4),
        C_HDLC_WITH_DIRECTION => by_type(frame, 3, 5),
        FRAME_RELAY => frame_relay(frame, 0),
        FRAME_RELAY_WITH_DIRECTION => frame_relay(frame, 1),
        SLIP => Ok(16),
        ENC => Ok(12),
        IPNET => Ok(24),
        // The length of its header, without what pads it.
        PFLOG => Ok(usize::from(byte(frame, 0)?).next_multiple_of(4)),
        NFLOG => nflog(frame),
        TOKEN_RING => token_ring(frame),
        // Frames of LLC have this control field, and a priority in it.
        FDDI if byte(frame, 0)? & 0xf0 == 0x50 => llc(frame, 13),
        FDDI => Err(NoIp::Other),
        ATM_RFC1483 => llc(frame, 0),
        SUN_ATM => llc(frame, 4),
        FIBRE_CHANNEL => llc(frame, 16),
        WIFI => wifi::data(frame, 0, false),
        RADIOTAP => wifi::radiotap(frame),
        PRISM => wifi::data(frame, 144, false),
        AVS => wifi::data(frame, long(frame, 4)?, false),
        PPI => wifi::ppi(frame),
        _ => Err(NoIp::Link),
    }
}

fn byte(frame: &[u8], at: usize) -> Result<u8, NoIp> {
    frame.get(at).copied().ok_or(NoIp::Short)
}

fn chunk<const N: usize>(frame: &[u8], at: usize) -> Result<[u8; N], NoIp> {
    frame.get(at..).and_then(|rest| rest.first_chunk().copied()).ok_or(NoIp::Short)
}

fn number(frame: &[u8], at: usize) -> Result<u16, NoIp> {
    chunk(frame, at).map(u16::from_be_bytes)
}

fn long(frame: &[u8], at: usize) -> Result<usize, NoIp> {
    chunk(frame, at).map(|bytes| u32::from_be_bytes(bytes) as usize)
}

/// `at` is the place of the type, `next` that of the payload.
fn by_type(frame: &[u8], at: usize, mut next: usize) -> Result<usize, NoIp> {
    let mut kind = number(frame, at)?;
    while TYPE_VLAN.contains(&kind) {
        kind = number(frame, next + 2)?;
        next += 4;
    }
    match kind {
        TYPE_IPV4 | TYPE_IPV6 => Ok(next),
        // Six bytes of PPPoE, and the protocol of PPP (RFC 2516 section 4).
        TYPE_PPPOE => ppp::protocol(frame, next + 6),
        kind if TYPE_MPLS.contains(&kind) => labels(frame, next),
        kind if kind < FIRST_TYPE => llc(frame, next),
        _ => Err(NoIp::Other),
    }
}

/// A stack of labels (RFC 3032 section 2.1). Its payload has no type, so the version of IP has to say what it is.
fn labels(frame: &[u8], mut at: usize) -> Result<usize, NoIp> {
    loop {
        let is_last = byte(frame, at + 2)? & 1 != 0;
        at += 4;
        if is_last {
            break;
        }
    }
    match byte(frame, at)? >> 4 {
        4 | 6 => Ok(at),
        _ => Err(NoIp::Other),
    }
}

/// A header of LLC, and of SNAP behind it (IEEE 802.2; RFC 1042).
fn llc(frame: &[u8], at: usize) -> Result<usize, NoIp> {
    match chunk(frame, at)? {
        [0xaa, 0xaa, 0x03] => snap(frame, at + 3),
        // The access point that IP had before SNAP.
        [0x06, 0x06, 0x03] => Ok(at + 3),
        // Protocols by the numbers of ISO (RFC 2684 section 5.1).
        [0xfe, 0xfe, 0x03] => nlpid(frame, at + 3),
        _ => Err(NoIp::Other),
    }
}

fn snap(frame: &[u8], at: usize) -> Result<usize, NoIp> {
    match chunk(frame, at)? {
        // Types of Ethernet, also behind the encapsulation of bridges that do not translate them (IEEE 802.1H).
        [0, 0, 0] | [0, 0, 0xf8] => by_type(frame, at + 3, at + 5),
        // A bridged frame of Ethernet, with and without its check sequence (RFC 2684 section 5.2).
        [0, 0x80, 0xc2] if matches!(number(frame, at + 3)?, 1 | 7) => {
            // Frame relay has no padding there (RFC 2427), ATM two bytes of zeros.
            let start = if chunk(frame, at + 5)? == [0, 0] { at + 7 } else { at + 5 };
            by_type(frame, start + 12, start + 14)
        }
        _ => Err(NoIp::Other),
    }
}

/// A protocol by its number of ISO (ISO/IEC TR 9577).
fn nlpid(frame: &[u8], at: usize) -> Result<usize, NoIp> {
    match byte(frame, at)? {
        0xcc | 0x8e => Ok(at + 1),
        0x80 => snap(frame, at + 1),
        _ => Err(NoIp::Other),
    }
}

/// RFC 2427: an address of two to four bytes, a control field, perhaps a byte of padding, a protocol.
fn frame_relay(frame: &[u8], mut at: usize) -> Result<usize, NoIp> {
    // The lowest bit says that the address ends.
    let first = at;
    while byte(frame, at)? & 1 == 0 {
        at += 1;
        if at > first + 3 {
            return Err(NoIp::Other);
        }
    }
    at += 1;
    match chunk(frame, at)? {
        [0x03, 0] => nlpid(frame, at + 2),
        [0x03, _] => nlpid(frame, at + 1),
        // One vendor puts a type of Ethernet there.
        _ => by_type(frame, at, at + 2),
    }
}

/// Access and frame control, two addresses, perhaps the route (IEEE 802.5).
fn token_ring(frame: &[u8]) -> Result<usize, NoIp> {
    if byte(frame, 1)? & 0xc0 != 0x40 {
        return Err(NoIp::Other);
    }
    let is_routed = byte(frame, 8)? & 0x80 != 0;
    let route = if is_routed { usize::from(byte(frame, 14)? & 0x1f) } else { 0 };
    llc(frame, 14 + route)
}

/// Records of the netfilter log: the packet is one of them. Their numbers are in the byte order of the capturing host.
fn nflog(frame: &[u8]) -> Result<usize, NoIp> {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        let [a, b, c, d] = chunk(frame, at)?;
        let little = [[a, b], [c, d]].map(u16::from_le_bytes);
        // No record has more than 255 as its type.
        let [length, kind] =
            if little[1] > 255 { [[a, b], [c, d]].map(u16::from_be_bytes) } else { little };
        if kind == PAYLOAD {
            return Ok(at + 4);
        }
        if length < 4 {
            return Err(NoIp::Other);
        }
        at += usize::from(length).next_multiple_of(4);
    }
}

//! The way from the beginning of a frame to its IP header, for each kind of link.

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
/// The registry's value, and those of two families of systems.
const RAW: u16 = 101;
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_PPPOE: u16 = 0x8864;
/// Tags of VLANs: of one, of a provider (IEEE 802.1ad), and the older form of that.
const TYPE_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

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
        _ => Err(NoIp::Link),
    }
}

/// `at` is the place of the type, `next` that of the payload.
fn by_type(frame: &[u8], at: usize, mut next: usize) -> Result<usize, NoIp> {
    let number = |at: usize| {
        let bytes = frame.get(at..).and_then(|bytes| bytes.first_chunk().copied());
        bytes.map(u16::from_be_bytes).ok_or(NoIp::Short)
    };
    let mut kind = number(at)?;
    while TYPE_VLAN.contains(&kind) {
        kind = number(next + 2)?;
        next += 4;
    }
    match kind {
        TYPE_IPV4 | TYPE_IPV6 => Ok(next),
        // Six bytes of PPPoE, and the protocol of PPP (RFC 2516 section 4, RFC 1332, RFC 5072).
        TYPE_PPPOE => match number(next + 6)? {
            0x0021 | 0x0057 => Ok(next + 8),
            _ => Err(NoIp::Other),
        },
        _ => Err(NoIp::Other),
    }
}

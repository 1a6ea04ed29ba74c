//! A packet that is longer than what may leave, cut into fragments (RFC 791 section 3.2, RFC 8200 section 4.5).

use alloc::vec::Vec;
use transom_wire::ip::Fragment;
use transom_wire::{FragmentHeader, IpPacket, Ipv4Header, Ipv6Header};

/// Cuts `packet`, which has no options and no extension headers, into fragments of at most `mtu` bytes. They share the identification `id`, of
/// which IPv4 has 16 bits. `None` if it is no such packet, or `mtu` has no room for eight bytes of it.
/// [RFC1122-3.3.3-2]
pub(crate) fn cut(packet: &[u8], mtu: usize, id: u32) -> Option<Vec<Vec<u8>>> {
    let ip = IpPacket::parse(packet).ok()?;
    let head = match ip {
        IpPacket::V4(_) => ip.header_len(),
        IpPacket::V6(_) => ip.header_len() + FragmentHeader::LEN,
    };
    // [RFC8200-4.5-2] [RFC8200-4.5-3] [RFC8200-4.5-4] Each fragment but the last carries a multiple of eight bytes.
    let room = mtu.checked_sub(head)? & !7;
    if room == 0 {
        return None;
    }
    let last = ip.payload().len().div_ceil(room).checked_sub(1)?;
    let pieces = ip.payload().chunks(room).enumerate().map(|(n, piece)| {
        let offset = u16::try_from(n * room).ok()?;
        let fragment = Fragment { id, offset, more: n < last };
        let mut out = alloc::vec![0; head + piece.len()];
        match ip {
            IpPacket::V4(v4) => {
                let header = Ipv4Header {
                    id: id as u16,
                    dont_fragment: false,
                    more_fragments: fragment.more,
                    fragment_offset: offset,
                    ..v4.header()
                };
                header.emit(piece.len(), &mut out).ok()?;
            }
            IpPacket::V6(v6) => {
                let next_header = transom_wire::Protocol::FRAGMENT;
                let header = Ipv6Header { next_header, ..v6.header() };
                let len = header.emit(FragmentHeader::LEN + piece.len(), &mut out).ok()?;
                FragmentHeader::emit(ip.protocol(), fragment, out.get_mut(len..)?).ok()?;
            }
        }
        out.get_mut(head..)?.copy_from_slice(piece);
        Some(out)
    });
    pieces.collect()
}

//! The UDP header (RFC 768): ports, length, checksum.
//!
//! A checksum of zero means that there is none. IPv4 allows that; IPv6, which has no header
//! checksum of its own, does not (RFC 8200 8.1; the exception of RFC 6935 for tunnels is not made
//! here).

#[cfg(test)]
mod tests;

use crate::Error;
use crate::checksum;
use crate::ip::Protocol;
use core::net::IpAddr;

/// A received UDP datagram whose length has been checked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UdpPacket<'a> {
    /// The ports.
    pub header: UdpHeader,
    /// The bytes behind the header.
    pub payload: &'a [u8],
    checksum: u16,
    /// Header and payload.
    datagram: &'a [u8],
}

impl<'a> UdpPacket<'a> {
    /// Reads the datagram at the start of `bytes`, an IP packet's payload; bytes behind the stated
    /// length are ignored.
    ///
    /// The checksum is not verified.
    ///
    /// # Errors
    /// [`Error::Truncated`] if header or stated length exceed `bytes`, [`Error::BadLength`] for a
    /// length below the header's.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let &[s0, s1, d0, d1, l0, l1, c0, c1] =
            bytes.first_chunk::<{ UdpHeader::LEN }>().ok_or(Error::Truncated)?;
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        if len < UdpHeader::LEN {
            return Err(Error::BadLength);
        }
        let datagram = bytes.get(..len).ok_or(Error::Truncated)?;
        Ok(UdpPacket {
            header: UdpHeader {
                src_port: u16::from_be_bytes([s0, s1]),
                dst_port: u16::from_be_bytes([d0, d1]),
            },
            checksum: u16::from_be_bytes([c0, c1]),
            payload: datagram.get(UdpHeader::LEN..).unwrap_or_default(),
            datagram,
        })
    }

    /// Whether the checksum is right, or absent where that is allowed.
    pub fn checksum_ok(&self, src: IpAddr, dst: IpAddr) -> bool {
        match (self.checksum, src) {
            (0, IpAddr::V4(_)) => true,
            (0, IpAddr::V6(_)) => false,
            _ => checksum::verify(src, dst, Protocol::UDP, self.datagram),
        }
    }
}

/// A UDP header as a value; length and checksum follow from the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UdpHeader {
    /// Source port, or zero for none.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl UdpHeader {
    /// The header's length in bytes.
    pub const LEN: usize = 8;
    /// The offset of the checksum field, in bytes from the start of the header.
    pub const CHECKSUM_OFFSET: usize = 6;

    /// Writes the header of a datagram with `payload_len` bytes of payload, with a checksum field
    /// of zero, and returns its length. [`checksum::fill`] completes it.
    ///
    /// # Errors
    /// [`Error::TooLong`] if the datagram exceeds 65,535 bytes, [`Error::BufferTooSmall`].
    pub fn emit(&self, payload_len: usize, out: &mut [u8]) -> Result<usize, Error> {
        let len = payload_len.checked_add(UdpHeader::LEN).and_then(|len| u16::try_from(len).ok());
        let [l0, l1] = len.ok_or(Error::TooLong)?.to_be_bytes();
        let [s0, s1] = self.src_port.to_be_bytes();
        let [d0, d1] = self.dst_port.to_be_bytes();
        *out.first_chunk_mut::<{ UdpHeader::LEN }>().ok_or(Error::BufferTooSmall)? =
            [s0, s1, d0, d1, l0, l1, 0, 0];
        Ok(UdpHeader::LEN)
    }
}

//! Packet captures in the pcapng format.
//!
//! A file is a sequence of blocks (draft-ietf-opsawg-pcapng): a section header, an interface
//! description for each interface before its first packet, and an enhanced packet block for each
//! packet, all little-endian here. Timestamps have nanosecond resolution and packets begin with
//! their IP header (`LINKTYPE_RAW`). Whether a packet came in or went out is told by its flags, and
//! a packet may carry a comment that Wireshark shows with it.
//!
//! [`Capture`] writes the blocks; [`Tapped`] is a device that writes down all that passes through
//! another one.

use std::io::{self, Write};

use transom_base::time::Instant;

mod tap;

pub use tap::{TapStatus, Tapped};

/// `LINKTYPE_RAW`: packets begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

const SECTION_HEADER_BLOCK: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION_BLOCK: u32 = 1;
const ENHANCED_PACKET_BLOCK: u32 = 6;

const OPT_ENDOFOPT: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Which way a packet went, seen from the host whose interface it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Received by the host.
    Inbound,
    /// Sent by the host.
    Outbound,
}

/// One of a capture's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceId(u32);

/// A pcapng file being written.
///
/// Each block goes out in one `write_all`, so a writer wants a buffer around it
/// ([`BufWriter`](std::io::BufWriter)).
#[derive(Debug)]
pub struct Capture<W: Write> {
    writer: W,
    snap_len: u32,
    interfaces: u32,
    block: Block,
}

impl<W: Write> Capture<W> {
    /// Begins a file that keeps every packet whole.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn new(writer: W) -> io::Result<Self> {
        Capture::with_snap_len(writer, u32::MAX)
    }

    /// Begins a file that keeps the first `snap_len` bytes of each packet.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn with_snap_len(writer: W, snap_len: u32) -> io::Result<Self> {
        let mut capture = Capture { writer, snap_len, interfaces: 0, block: Block::default() };
        capture.block.begin(SECTION_HEADER_BLOCK);
        capture.block.u32(0x1A2B_3C4D); // byte-order magic
        capture.block.u16(1); // version 1.0
        capture.block.u16(0);
        capture.block.u64(u64::MAX); // section length: not known
        capture
            .block
            .option(SHB_USERAPPL, concat!("Transom ", env!("CARGO_PKG_VERSION")).as_bytes());
        capture.block.option(OPT_ENDOFOPT, &[]);
        capture.end_block()?;
        Ok(capture)
    }

    /// Describes one more interface. Allowed at any time before its first packet.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn add_interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        let id = InterfaceId(self.interfaces);
        self.interfaces = self.interfaces.checked_add(1).ok_or(io::ErrorKind::InvalidInput)?;
        self.block.begin(INTERFACE_DESCRIPTION_BLOCK);
        self.block.u16(LINKTYPE_RAW);
        self.block.u16(0);
        // In the file, no limit is written as zero.
        self.block.u32(if self.snap_len == u32::MAX { 0 } else { self.snap_len });
        self.block.option(IF_NAME, name.as_bytes());
        self.block.option(IF_TSRESOL, &[9]); // units of 10^-9 s
        self.block.option(OPT_ENDOFOPT, &[]);
        self.end_block()?;
        Ok(id)
    }

    /// Writes one packet, given in parts that follow each other.
    ///
    /// `at` counts from 1970-01-01 00:00 UTC; with a virtual clock's origin instead, times are
    /// right relative to each other.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn write(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        direction: Direction,
        packet: &[&[u8]],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let length: usize = packet.iter().map(|part| part.len()).sum();
        let length = u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
        let kept = length.min(self.snap_len);
        self.block.begin(ENHANCED_PACKET_BLOCK);
        self.block.u32(interface.0);
        self.block.u32((at.as_nanos() >> 32) as u32);
        self.block.u32(at.as_nanos() as u32);
        self.block.u32(kept);
        self.block.u32(length);
        self.block.first(kept as usize, packet);
        if let Some(comment) = comment {
            self.block.option(OPT_COMMENT, comment.as_bytes());
        }
        let flags: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        self.block.option(EPB_FLAGS, &flags.to_le_bytes());
        self.block.option(OPT_ENDOFOPT, &[]);
        self.end_block()?;
        Ok(())
    }

    /// Ends the capture and gives the writer back, flushed.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn end_block(&mut self) -> io::Result<()> {
        let bytes = self.block.end();
        self.writer.write_all(bytes)
    }
}

/// A block under construction; its memory is used for the next one again.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
}

impl Block {
    fn begin(&mut self, kind: u32) {
        self.bytes.clear();
        self.u32(kind);
        self.u32(0); // the total length, filled in at the end
    }

    fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// An option's value is cut off where its length field ends, at 65,535 bytes.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(code);
        self.u16(value.len() as u16);
        self.bytes.extend_from_slice(value);
        self.pad();
    }

    /// The first `length` bytes of the parts' concatenation.
    fn first(&mut self, length: usize, parts: &[&[u8]]) {
        let mut left = length;
        for part in parts {
            let taken = &part[..part.len().min(left)];
            self.bytes.extend_from_slice(taken);
            left -= taken.len();
        }
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> &[u8] {
        let length = (self.bytes.len() + 4) as u32;
        self.u32(length);
        self.bytes[4..8].copy_from_slice(&length.to_le_bytes());
        &self.bytes
    }
}

#[cfg(test)]
mod tests;

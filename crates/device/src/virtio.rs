//! Interim virtio-net header codec (virtio 1.2, section 5.1.6), until transom-wire has it.

use transom_wire::Error;
use transom_wire::offload::{
    RxChecksum, RxOffload, SegmentKind, Segmentation, TxChecksum, TxOffload,
};

/// The ten-byte header, little-endian.
pub(crate) struct VirtioNetHdr([u8; 10]);

impl VirtioNetHdr {
    pub(crate) const LEN: usize = 10;

    pub(crate) fn from_tx(offload: &TxOffload, _length: usize) -> Result<Self, Error> {
        let mut bytes = [0; 10];
        if let TxChecksum::Partial { start, offset } = offload.checksum {
            bytes[0] = 1;
            bytes[6..8].copy_from_slice(&start.to_le_bytes());
            bytes[8..10].copy_from_slice(&offset.to_le_bytes());
        }
        if let Some(segmentation) = offload.segmentation {
            bytes[1] = match segmentation.kind {
                SegmentKind::Tcp4 => 1,
                SegmentKind::Tcp6 => 4,
            };
            bytes[2..4].copy_from_slice(&segmentation.header_len.to_le_bytes());
            bytes[4..6].copy_from_slice(&segmentation.segment_size.to_le_bytes());
        }
        Ok(VirtioNetHdr(bytes))
    }

    pub(crate) fn encode(&self) -> [u8; 10] {
        self.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<RxOffload> {
        let header = bytes.first_chunk::<10>()?;
        let checksum = if header[0] & 3 != 0 { RxChecksum::Valid } else { RxChecksum::Unverified };
        let kind = match header[1] & 0x7f {
            0 => None,
            1 => Some(SegmentKind::Tcp4),
            4 => Some(SegmentKind::Tcp6),
            _ => return None,
        };
        let segmentation = kind.map(|kind| Segmentation {
            kind,
            segment_size: u16::from_le_bytes([header[4], header[5]]),
            header_len: u16::from_le_bytes([header[2], header[3]]),
        });
        Some(RxOffload { checksum, segmentation })
    }
}

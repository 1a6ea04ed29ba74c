//! Captures made by hand.

use std::net::SocketAddr;

use transom_wire::tcp::Timestamps;
use transom_wire::{Flags, IpHeader, Protocol, SackBlock, Seq, TcpHeader};

pub(crate) const CLIENT: &str = "192.0.2.1:40000";
pub(crate) const SERVER: &str = "198.51.100.2:80";

/// A segment of a capture to be.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) micros: u64,
    pub(crate) ends: [SocketAddr; 2],
    pub(crate) header: TcpHeader,
    pub(crate) length: usize,
}

/// From the client, or from the server.
pub(crate) fn from(
    client: bool,
    micros: u64,
    flags: Flags,
    seq: u32,
    ack: u32,
    len: usize,
) -> Made {
    let mut ends: [SocketAddr; 2] = [CLIENT.parse().unwrap(), SERVER.parse().unwrap()];
    if !client {
        ends.reverse();
    }
    let header = TcpHeader {
        src_port: ends[0].port(),
        dst_port: ends[1].port(),
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window: 1000,
        ..TcpHeader::default()
    };
    Made { micros, ends, header, length: len }
}

impl Made {
    pub(crate) fn window(mut self, window: u16) -> Made {
        self.header.window = window;
        self
    }

    pub(crate) fn scale(mut self, shift: u8) -> Made {
        self.header.options.window_scale = Some(shift);
        self
    }

    pub(crate) fn stamps(mut self, value: u32, echo: u32) -> Made {
        self.header.options.timestamps = Some(Timestamps { value, echo });
        self
    }

    pub(crate) fn sack(mut self, blocks: &[(u32, u32)]) -> Made {
        for &(left, right) in blocks {
            let block = SackBlock { left: Seq::new(left), right: Seq::new(right) };
            assert!(self.header.options.sack.push(block));
        }
        self
    }

    pub(crate) fn between(mut self, ends: [SocketAddr; 2]) -> Made {
        (self.header.src_port, self.header.dst_port) = (ends[0].port(), ends[1].port());
        self.ends = ends;
        self
    }

    /// The IP packet.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let mut tcp = vec![0; 60];
        let len = self.header.emit(&mut tcp).unwrap();
        tcp.truncate(len);
        tcp.resize(len + self.length, b'x');
        let mut packet = vec![0; 40];
        let [src, dst] = self.ends.map(|end| end.ip());
        let len = IpHeader::new(src, dst, Protocol::TCP).emit(tcp.len(), &mut packet).unwrap();
        packet.truncate(len);
        packet.extend(tcp);
        packet
    }
}

/// A frame of a link: its bytes, cut at the snap length, and its own length.
pub(crate) struct Cut {
    pub(crate) micros: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) original: usize,
}

/// Frames with these bytes before the packet.
pub(crate) fn frames(made: &[Made], before: &[u8], snap: usize) -> Vec<Cut> {
    let frame = |made: &Made| {
        let mut bytes = before.to_vec();
        bytes.extend(made.packet());
        let original = bytes.len();
        bytes.truncate(snap);
        Cut { micros: made.micros, bytes, original }
    };
    made.iter().map(frame).collect()
}

/// A pcap file in either byte order, with times in microseconds.
pub(crate) fn pcap(link: u32, frames: &[Cut], big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = word(0xa1b2_c3d4).to_vec();
    file.extend([half(2), half(4)].concat());
    for value in [0, 0, 262_144, link] {
        file.extend(word(value));
    }
    for frame in frames {
        let (seconds, micros) = (frame.micros / 1_000_000, frame.micros % 1_000_000);
        for value in
            [seconds as u32, micros as u32, frame.bytes.len() as u32, frame.original as u32]
        {
            file.extend(word(value));
        }
        file.extend(&frame.bytes);
    }
    file
}

/// A block of pcapng.
pub(crate) fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let length = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = [word(kind), word(length)].concat();
    block.extend(body);
    block.resize(length as usize - 4, 0);
    block.extend(word(length));
    block
}

/// A pcapng file with one interface, whose times have a resolution of 2^-20 seconds and an offset of 7 seconds.
pub(crate) fn pcapng(link: u16, frames: &[Cut], big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut body = word(0x1A2B_3C4D).to_vec();
    body.extend([half(1), half(0)].concat());
    body.extend([0xff; 8]);
    let mut file = block(0x0A0D_0D0A, &body, big);
    // Secrets of TLS, which a reader of TCP does not need.
    let mut body = [word(0x544c_534b), word(5)].concat();
    body.extend(b"hello");
    file.extend(block(10, &body, big));
    let mut body = [half(link), half(0)].concat();
    body.extend(word(0));
    body.extend([half(9), half(1)].concat());
    body.extend([0x80 | 20, 0, 0, 0]);
    body.extend([half(14), half(8)].concat());
    body.extend(if big { 7i64.to_be_bytes() } else { 7i64.to_le_bytes() });
    body.extend([half(0), half(0)].concat());
    file.extend(block(1, &body, big));
    for frame in frames {
        let ticks = (u128::from(frame.micros) << 20) / 1_000_000;
        let ticks = ticks as u64 - (7 << 20);
        let mut body = word(0).to_vec();
        body.extend([word((ticks >> 32) as u32), word(ticks as u32)].concat());
        body.extend([word(frame.bytes.len() as u32), word(frame.original as u32)].concat());
        body.extend(&frame.bytes);
        file.extend(block(6, &body, big));
    }
    file
}

/// Ethernet without a tag, for IPv4.
pub(crate) const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

/// A transfer of five segments of 100 bytes, of which the second is lost behind the capture. The client has ISN 2³² − 50, so the numbers wrap
/// within the first segment. Times are in milliseconds from 10 s on.
///
/// | ms | |
/// |---|---|
/// | 0, 20, 21 | SYN, SYN-ACK, ACK |
/// | 30 | data 1–101, 101–201 (lost), 201–301 |
/// | 50 | ACK 101 |
/// | 51 | ACK 101, SACK 201–301 |
/// | 60 | data 101–201 again |
/// | 85 | ACK 301 |
/// | 90 | data 301–401 |
/// | 112 | ACK 401, with window 0 |
pub(crate) fn transfer() -> Vec<Made> {
    let isn = 0u32.wrapping_sub(50);
    let at = |position: u32| isn.wrapping_add(position);
    let ms = |ms: u64| 10_000_000 + ms * 1000;
    let (syn, ack) = (Flags::SYN, Flags::ACK);
    vec![
        from(true, ms(0), syn, isn, 0, 0).scale(7),
        from(false, ms(20), syn | ack, 5000, at(1), 0).scale(2).window(60_000),
        from(true, ms(21), ack, at(1), 5001, 0),
        from(true, ms(30), ack, at(1), 5001, 100),
        from(true, ms(30), ack, at(101), 5001, 100),
        from(true, ms(30), ack, at(201), 5001, 100),
        from(false, ms(50), ack, 5001, at(101), 0),
        from(false, ms(51), ack, 5001, at(101), 0).sack(&[(at(201), at(301))]),
        from(true, ms(60), ack, at(101), 5001, 100),
        from(false, ms(85), ack, 5001, at(301), 0),
        from(true, ms(90), ack, at(301), 5001, 100),
        from(false, ms(112), ack, 5001, at(401), 0).window(0),
    ]
}

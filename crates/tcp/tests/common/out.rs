//! A segment that left, and the line by which scripts compare it.

use transom_tcp::time::Instant;
use transom_wire::{Ecn, Flags, PartialReliability, Seq, TcpHeader};

/// A segment that left.
#[derive(Clone, Debug)]
pub struct Out {
    /// When.
    pub at: Instant,
    /// Its header.
    pub header: TcpHeader,
    /// Its data, copied.
    pub payload: Vec<u8>,
    /// For a super-segment, the size of each.
    pub segment_size: Option<u16>,
    /// The ECN codepoint of its packet.
    pub ecn: Ecn,
    /// The initial sequence numbers, the connection's and the peer's.
    pub initial: (Seq, Seq),
}

impl Out {
    /// SEG.SEQ, relative.
    pub fn seq(&self) -> i64 {
        i64::from(self.header.seq.distance_from(self.initial.0))
    }

    /// SEG.ACK, relative.
    pub fn ack(&self) -> i64 {
        i64::from(self.header.ack.distance_from(self.initial.1))
    }

    /// One past the sequence space it takes, relative.
    pub fn end(&self) -> i64 {
        let flags = self.header.flags;
        let controls =
            i64::from(flags.contains(Flags::SYN)) + i64::from(flags.contains(Flags::FIN));
        self.seq() + self.payload.len() as i64 + controls
    }

    /// The segments of which a super-segment is made, each with its offset within the data; otherwise this one.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Out)> + '_ {
        let size = self.segment_size.map_or(self.payload.len().max(1), usize::from);
        let count = self.payload.len().div_ceil(size).max(1);
        (0..count).map(move |index| {
            let from = index * size;
            let payload = self.payload[from..(from + size).min(self.payload.len())].to_vec();
            let mut header = self.header;
            header.seq += from as u32;
            if index + 1 < count {
                header.flags -= Flags::FIN | Flags::PSH;
            }
            (from as u64, Out { header, payload, segment_size: None, ..self.clone() })
        })
    }

    fn flags(&self) -> String {
        let letters = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::URG, 'U'),
            (Flags::ACK, 'A'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            // As tcpdump has it.
            (Flags::AE, 'e'),
        ];
        let set = letters.iter().filter(|(flag, _)| self.header.flags.contains(*flag));
        set.map(|&(_, letter)| letter).collect()
    }

    /// The line [`Peer::expect`] compares.
    pub fn line(&self) -> String {
        let mut line = format!("{} {}:{}", self.flags(), self.seq(), self.end());
        if self.header.flags.contains(Flags::ACK) {
            line += &format!(" ack {}", self.ack());
        }
        if !self.header.options.sack.is_empty() {
            line += " sack";
            for block in &self.header.options.sack {
                let relative = |seq: Seq| seq.distance_from(self.initial.1);
                line += &format!(" {}-{}", relative(block.left), relative(block.right));
            }
        }
        if let Some(option) = self.header.options.acc_ecn {
            line += " acc";
            for (name, field) in [("e0", option.ect0()), ("ce", option.ce()), ("e1", option.ect1())]
            {
                if let Some(bytes) = field {
                    line += &format!(" {name} {bytes}");
                }
            }
        }
        if self.header.flags.contains(Flags::URG) {
            line += &format!(" urg {}", self.header.urgent);
        }
        if let Some(timeout) = self.header.options.user_timeout {
            line += &format!(" uto {}", timeout.as_secs());
        }
        if let Some(cookie) = self.header.options.fast_open {
            line += &match cookie.as_slice().len() {
                0 => " cookie?".into(),
                len => format!(" cookie {len}"),
            };
        }
        match self.header.options.partial {
            Some(PartialReliability::Permitted) => line += " partial",
            Some(PartialReliability::ForwardPoint(point)) => {
                line += &format!(" forward {}", point.distance_from(self.initial.0));
            }
            None => {}
        }
        if self.ecn != Ecn::NotEct {
            line += &format!(" {:?}", self.ecn).to_lowercase();
        }
        line
    }
}

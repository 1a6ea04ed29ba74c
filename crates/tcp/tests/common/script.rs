//! Segments a script sends, written in one line: `seg().ack(1).data(1000)`.

use transom_wire::{AccEcn, Ecn, Flags, Options, PartialReliability, Timestamps, UserTimeout};

/// A segment that is to arrive. Without a sequence number it follows what the script sent before.
#[derive(Clone, Debug)]
pub struct Seg {
    pub seq: Option<i64>,
    pub ack: i64,
    pub flags: Flags,
    pub window: Option<u16>,
    pub urgent: u16,
    pub len: usize,
    pub bytes: Option<Vec<u8>>,
    pub options: Options,
    pub sack: Vec<(i64, i64)>,
    pub timestamps: Option<Option<Timestamps>>,
    pub ecn: Ecn,
}

/// An acknowledgement of the SYN, without anything else.
pub fn seg() -> Seg {
    Seg {
        seq: None,
        ack: 1,
        flags: Flags::ACK,
        window: None,
        urgent: 0,
        len: 0,
        bytes: None,
        options: Options::default(),
        sack: vec![],
        timestamps: None,
        ecn: Ecn::NotEct,
    }
}

impl Seg {
    /// SEG.SEQ, relative.
    pub fn seq(self, seq: i64) -> Self {
        Seg { seq: Some(seq), ..self }
    }

    /// SEG.ACK, relative.
    pub fn ack(self, ack: i64) -> Self {
        Seg { ack, flags: self.flags | Flags::ACK, ..self }
    }

    /// With further flags.
    pub fn flags(self, flags: Flags) -> Self {
        Seg { flags: self.flags | flags, ..self }
    }

    /// In a packet that a router has marked.
    pub fn ce(self) -> Self {
        Seg { ecn: Ecn::Ce, ..self }
    }

    /// In a packet with this codepoint.
    pub fn codepoint(self, ecn: Ecn) -> Self {
        Seg { ecn, ..self }
    }

    /// With this field ACE, and the option if there is one (RFC 9768).
    pub fn accurate(self, ace: u64, acc_ecn: Option<AccEcn>) -> Self {
        // ECE, CWR and AE, from the lowest bit on.
        let flags = self.flags | Flags::from_bits_truncate((ace as u16 & 7) << 6);
        Seg { flags, options: Options { acc_ecn, ..self.options }, ..self }
    }

    /// Without ACK.
    pub fn no_ack(self) -> Self {
        Seg { flags: self.flags - Flags::ACK, ..self }
    }

    /// The window field as it travels.
    pub fn win(self, window: u16) -> Self {
        Seg { window: Some(window), ..self }
    }

    /// `len` bytes of the stream.
    pub fn data(self, len: usize) -> Self {
        Seg { len, ..self }
    }

    /// These bytes.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        Seg { bytes: Some(bytes.to_vec()), ..self }
    }

    pub fn syn(self) -> Self {
        Seg { flags: self.flags | Flags::SYN, ..self }
    }

    pub fn fin(self) -> Self {
        Seg { flags: self.flags | Flags::FIN, ..self }
    }

    /// A reset without ACK.
    pub fn rst(self) -> Self {
        Seg { flags: (self.flags | Flags::RST) - Flags::ACK, ..self }
    }

    /// A reset with ACK.
    pub fn rst_ack(self, ack: i64) -> Self {
        Seg { ack, flags: Flags::RST | Flags::ACK, ..self }
    }

    pub fn urg(self, urgent: u16) -> Self {
        Seg { urgent, flags: self.flags | Flags::URG, ..self }
    }

    /// SACK blocks, relative.
    pub fn sack(self, blocks: &[(i64, i64)]) -> Self {
        Seg { sack: blocks.to_vec(), ..self }
    }

    /// These timestamps instead of those of the script's clock.
    pub fn ts(self, value: u32, echo: u32) -> Self {
        Seg { timestamps: Some(Some(Timestamps { value, echo })), ..self }
    }

    pub fn no_ts(self) -> Self {
        Seg { timestamps: Some(None), ..self }
    }

    pub fn options(self, options: Options) -> Self {
        Seg { timestamps: Some(options.timestamps), options, ..self }
    }

    /// A forward point, relative to the sender's own numbers.
    pub fn forward(self, point: i64) -> Self {
        let seq = super::theirs(point);
        let partial = Some(PartialReliability::ForwardPoint(seq));
        Seg { options: Options { partial, ..self.options }, ..self }
    }

    pub fn user_timeout(self, secs: u32) -> Self {
        let options = Options { user_timeout: Some(UserTimeout::from_secs(secs)), ..self.options };
        Seg { options, ..self }
    }
}

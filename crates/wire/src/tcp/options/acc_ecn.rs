//! The AccECN options (RFC 9768 section 3.2.3): bytes that arrived with each ECN codepoint.

/// Which counter comes first, and with it the option's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccEcnOrder {
    /// AccECN0, kind 172: ECT(0), CE, ECT(1).
    Ect0First,
    /// AccECN1, kind 174: ECT(1), CE, ECT(0).
    Ect1First,
}

/// The three counters, in bytes; only the lowest 24 bits of each travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AccEcnCounters {
    /// Payload bytes that arrived as ECT(0): EE0B.
    pub ect0: u32,
    /// Payload bytes that arrived with congestion experienced: ECEB.
    pub ce: u32,
    /// Payload bytes that arrived as ECT(1): EE1B.
    pub ect1: u32,
}

/// An AccECN option with its first none, one, two or all three fields (RFC 9768 table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccEcn {
    order: AccEcnOrder,
    fields: u8,
    /// The bytes beyond the fields are zero.
    bytes: [u8; 9],
}

impl AccEcn {
    /// The kind of AccECN0.
    pub(super) const KIND_0: u8 = 172;
    /// The kind of AccECN1.
    pub(super) const KIND_1: u8 = 174;
    /// The most fields.
    pub const MAX_FIELDS: usize = 3;

    /// The first `fields` of the counters in this order; at most three.
    pub fn new(order: AccEcnOrder, counters: AccEcnCounters, fields: usize) -> Self {
        let AccEcnCounters { ect0, ce, ect1 } = counters;
        let in_order = match order {
            AccEcnOrder::Ect0First => [ect0, ce, ect1],
            AccEcnOrder::Ect1First => [ect1, ce, ect0],
        };
        let fields = fields.min(Self::MAX_FIELDS);
        let mut bytes = [0; 9];
        for (field, value) in bytes.chunks_exact_mut(3).zip(in_order).take(fields) {
            let [_, value @ ..] = value.to_be_bytes();
            field.copy_from_slice(&value);
        }
        AccEcn { order, fields: fields as u8, bytes }
    }

    /// Reads what follows kind and length. Of a length that is not one of the four, the whole fields
    /// count and the rest is padding (RFC 9768 section 3.2.3).
    pub(super) fn decode(kind: u8, data: &[u8]) -> Self {
        let order = match kind {
            Self::KIND_1 => AccEcnOrder::Ect1First,
            _ => AccEcnOrder::Ect0First,
        };
        let fields = (data.len() / 3).min(Self::MAX_FIELDS);
        let mut bytes = [0; 9];
        for (to, from) in bytes.iter_mut().zip(data).take(fields * 3) {
            *to = *from;
        }
        AccEcn { order, fields: fields as u8, bytes }
    }

    /// The order of the fields.
    pub const fn order(&self) -> AccEcnOrder {
        self.order
    }

    /// How many fields there are.
    pub const fn fields(&self) -> usize {
        self.fields as usize
    }

    /// EE0B, 24 bits, if it is there.
    pub fn ect0(&self) -> Option<u32> {
        self.field(match self.order {
            AccEcnOrder::Ect0First => 0,
            AccEcnOrder::Ect1First => 2,
        })
    }

    /// ECEB, 24 bits, if it is there.
    pub fn ce(&self) -> Option<u32> {
        self.field(1)
    }

    /// EE1B, 24 bits, if it is there.
    pub fn ect1(&self) -> Option<u32> {
        self.field(match self.order {
            AccEcnOrder::Ect0First => 2,
            AccEcnOrder::Ect1First => 0,
        })
    }

    fn field(&self, index: usize) -> Option<u32> {
        let &[a, b, c] = self.as_slice().chunks_exact(3).nth(index)? else { return None };
        Some(u32::from_be_bytes([0, a, b, c]))
    }

    /// The option's kind.
    pub(super) const fn kind(&self) -> u8 {
        match self.order {
            AccEcnOrder::Ect0First => Self::KIND_0,
            AccEcnOrder::Ect1First => Self::KIND_1,
        }
    }

    /// The fields as sent.
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.fields() * 3).unwrap_or_default()
    }

    /// The bytes that an option of `fields` fields takes in a header, its alignment included.
    pub const fn padded_len(fields: usize) -> usize {
        (2 + 3 * fields).next_multiple_of(4)
    }
}

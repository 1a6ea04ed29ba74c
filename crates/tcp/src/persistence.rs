//! Persistence: how often, and for how long, lost data is sent again.
//!
//! An ordinary TCP retransmits it until it has arrived. With less persistence the stream is *partially reliable*: data that is lost too
//! often, or found lost too late, is given up and leaves a hole. Other units detect losses as before, so that congestion control sees
//! each of them; only the repair is omitted.
//!
//! Giving up needs a peer that can move over a hole; an option in the handshake agrees on it
//! ([`PartialReliability`](transom_wire::PartialReliability)). With any other peer everything is repaired, because a plain receiver
//! would wait for ever. A sender that has given up data announces its *forward point*: nothing before it will be sent (again). It is
//! SCTP's Advanced.Peer.Ack.Point (RFC 3758 section 3.5), without the requirement that everything before it was abandoned or
//! acknowledged cumulatively. The receiver keeps its data beyond a hole.
//!
//! The forward point travels in its own segment without data, like SACK blocks. Until an acknowledgement shows that it has arrived, it
//! is repeated, a round trip later or by the retransmission timer. Two things are always retransmitted: SYN and FIN, because without
//! them the stream has no beginning or no end and both sides would wait; and a window probe, which is not lost data but a question.

use crate::sent::Sent;
use crate::time::{Duration, Instant};

/// The attempts before lost data is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Persistence {
    /// How often data is sent again at most; `None`: as often as its lifetime allows.
    pub retransmissions: Option<u16>,
    /// How long after its first transmission lost data is still retransmitted; `None`: for ever.
    pub lifetime: Option<Duration>,
}

impl Persistence {
    /// Lost data is sent again so often at most, and for so long at most after its first transmission; `None`: without that limit.
    pub const fn new(retransmissions: Option<u16>, lifetime: Option<Duration>) -> Self {
        Persistence { retransmissions, lifetime }
    }

    /// Nothing is sent again.
    pub const NONE: Persistence = Persistence { retransmissions: Some(0), lifetime: None };

    /// The name by which reports call it.
    pub(crate) fn name(self) -> &'static str {
        if self == Persistence::NONE { "no-retransmission" } else { "limited-retransmission" }
    }

    /// Whether another transmission of `record` at `now` would be one too many, or come too late.
    pub(crate) fn is_exhausted(self, record: &Sent, now: Instant) -> bool {
        let Persistence { retransmissions, lifetime } = self;
        retransmissions.is_some_and(|most| record.transmissions > most)
            || lifetime.is_some_and(|lifetime| now >= record.first_sent + lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pos::Pos;
    use crate::sent::SentList;

    #[test]
    fn by_number_and_by_time() {
        let mut sent = SentList::new(Pos::FIRST_DATA, Instant::ZERO);
        let first = Instant::from_millis(10);
        sent.push(Pos::FIRST_DATA + 1, first);
        let exhausted = |sent: &SentList, persistence: Persistence, millis| {
            persistence.is_exhausted(sent.first().unwrap(), Instant::from_millis(millis))
        };
        let once = Persistence { retransmissions: Some(1), lifetime: None };
        let lifetime = Some(Duration::from_millis(50));
        let brief = Persistence { retransmissions: None, lifetime };
        assert!(exhausted(&sent, Persistence::NONE, 10));
        assert!(!exhausted(&sent, once, 10_000));
        assert!(!exhausted(&sent, brief, 59) && exhausted(&sent, brief, 60));
        sent.mark_all_lost();
        sent.retransmit(Pos::FIRST_DATA, 1, 1, Instant::from_millis(20));
        assert!(exhausted(&sent, once, 20));
        assert!(!exhausted(&sent, brief, 59), "counted from the first transmission");
        let both = Persistence { lifetime, ..once };
        assert!(exhausted(&sent, both, 20) && exhausted(&sent, both, 60));
    }
}

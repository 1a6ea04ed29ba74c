//! The statistics of the queue in front of an interface.
//!
//! Every interface has a *root queueing discipline* (tc(8)): packets that are not sent at once wait there. The kernel counts waiting and
//! dropped packets, and reports them in answer to `RTM_GETQDISC`. Asking takes a few microseconds and the lock that guards all network
//! settings, so do not ask for each packet.
//!
//! Some have no length of their own: `noqueue` keeps nothing, `mq` is one queue for each of the card's and adds them up when it is
//! asked.

use std::io;

use netlink_packet_core::{NLM_F_ECHO, ParseableParametrized};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};

use super::Interfaces;
use crate::netlink::attributes;

/// The state of an interface's root queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootQueue {
    /// Its kind, as tc(8) names it: `tbf`, `fq_codel`, `noqueue`.
    pub kind: String,
    /// Packets that wait. A super-segment counts as one.
    pub packets: u32,
    /// Bytes that wait, link headers included.
    pub bytes: u32,
    /// Packets dropped so far, here or in a discipline below.
    pub drops: u32,
    /// Packets that have left so far.
    pub sent_packets: u64,
    /// Bytes that have left so far, link headers included.
    pub sent_bytes: u64,
}

/// Bytes of `struct tcmsg`.
pub(super) const BODY_LEN: usize = 20;

impl Interfaces {
    /// The root queueing discipline of the interface with this number.
    ///
    /// # Errors
    /// The kernel's refusal: there is no such interface, or it has no discipline that can be shown.
    pub fn root_queue(&mut self, index: u32) -> io::Result<RootQueue> {
        let mut request = TcMessage::with_index(index.cast_signed());
        request.header.parent = TcHandle::ROOT;
        // Unlike for other requests, the kernel tells everybody who listens, and us only with this flag.
        let request = RouteNetlinkMessage::GetQueueDiscipline(request);
        let answer = self.netlink.execute(NLM_F_ECHO, request)?;
        parse(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

fn parse(answer: &[u8]) -> Option<RootQueue> {
    let (mut kind, mut basic, mut queue) = (None, None, None);
    for attribute in attributes(answer, BODY_LEN) {
        // Without the kind, so that what only some kinds have is left alone.
        match TcAttribute::parse_with_param(&attribute, "") {
            Ok(TcAttribute::Kind(name)) => kind = Some(name),
            Ok(TcAttribute::Stats2(stats)) => {
                for one in stats {
                    match one {
                        TcStats2::Basic(stats) => basic = Some(stats),
                        TcStats2::Queue(stats) => queue = Some(stats),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let (basic, queue) = (basic?, queue?);
    Some(RootQueue {
        kind: kind?,
        packets: queue.qlen,
        bytes: queue.backlog,
        drops: queue.drops,
        sent_packets: basic.packets.into(),
        sent_bytes: basic.bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn an_answer_is_read() {
        let basic = [1_000_000u64.to_ne_bytes().to_vec(), words(&[700, 0])].concat();
        // struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits.
        let stats = [attribute(1, &basic), attribute(3, &words(&[12, 18_000, 3, 0, 9]))].concat();
        let answer = [vec![0; 20], attribute(1, b"tbf\0"), attribute(7, &stats)].concat();
        let expected = RootQueue {
            kind: "tbf".into(),
            packets: 12,
            bytes: 18_000,
            drops: 3,
            sent_packets: 700,
            sent_bytes: 1_000_000,
        };
        assert_eq!(parse(&answer), Some(expected));
        for length in 0..answer.len() {
            assert_eq!(parse(&answer[..length]), None, "{length} bytes of an answer");
        }
    }

    #[test]
    fn the_loopback_interface_keeps_nothing() {
        let queue = Interfaces::open().unwrap().root_queue(1).unwrap();
        assert_eq!((queue.kind.as_str(), queue.packets, queue.bytes), ("noqueue", 0, 0));
    }

    #[test]
    fn an_interface_that_is_not_there_is_refused() {
        assert!(Interfaces::open().unwrap().root_queue(u32::MAX >> 1).is_err());
    }
}

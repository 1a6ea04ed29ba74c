//! What the queue in front of a network interface tells of itself.
//!
//! Every interface has a *root queueing discipline* (tc(8)): what it does not send at once waits there. The kernel counts what waits, and
//! what was dropped, and tells it in answer to `RTM_GETQDISC`. Asking takes a few microseconds and the lock that guards all network
//! settings, so who asks for every packet asks too often.
//!
//! Some have no length of their own: `noqueue` keeps nothing, `mq` is one queue for each of the card's and adds them up when it is
//! asked.

use std::io;

use crate::netlink::{Netlink, Request, find_attribute};

/// The state of an interface's root queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// Asks for root queueing disciplines, in the network namespace it was opened in.
#[derive(Debug)]
pub struct RootQueues {
    netlink: Netlink,
}

/// `TC_H_ROOT` of `linux/pkt_sched.h`.
const ROOT: u32 = u32::MAX;
/// Bytes of `struct tcmsg`.
const BODY_LEN: usize = 20;
/// `TCA_KIND` and `TCA_STATS2` of `linux/rtnetlink.h`, and what is nested in the second (`linux/gen_stats.h`).
const KIND: u16 = 1;
const STATS2: u16 = 7;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;

impl RootQueues {
    /// For the network namespace the calling thread is in.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn open() -> io::Result<Self> {
        Ok(RootQueues { netlink: Netlink::open()? })
    }

    /// The root queueing discipline of the interface with this number.
    ///
    /// # Errors
    /// The kernel's refusal: there is no such interface, or it has no discipline that can be shown.
    pub fn state(&mut self, index: u32) -> io::Result<RootQueue> {
        let mut body = [0; BODY_LEN];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        // Unlike for other requests, the kernel tells everybody who listens, and us only with this flag.
        let request = Request::new(libc::RTM_GETQDISC, libc::NLM_F_ECHO, &body);
        let answer = self.netlink.execute(request)?;
        parse(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

fn parse(answer: &[u8]) -> Option<RootQueue> {
    let attributes = answer.get(BODY_LEN..)?;
    let kind = find_attribute(attributes, KIND)?;
    let stats = find_attribute(attributes, STATS2)?;
    let basic = find_attribute(stats, STATS_BASIC)?;
    let queue = find_attribute(stats, STATS_QUEUE)?;
    let word = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    Some(RootQueue {
        kind: String::from_utf8_lossy(kind.strip_suffix(&[0]).unwrap_or(kind)).into_owned(),
        packets: word(queue, 0)?,
        bytes: word(queue, 4)?,
        drops: word(queue, 8)?,
        sent_packets: word(basic, 8)?.into(),
        sent_bytes: u64::from_ne_bytes(*basic.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

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
        let queue = RootQueues::open().unwrap().state(1).unwrap();
        assert_eq!((queue.kind.as_str(), queue.packets, queue.bytes), ("noqueue", 0, 0));
    }

    #[test]
    fn an_interface_that_is_not_there_is_refused() {
        assert!(RootQueues::open().unwrap().state(u32::MAX >> 1).is_err());
    }
}

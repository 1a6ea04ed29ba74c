//! Both ends of a tunnel before strangers, with what must never happen.

use std::net::SocketAddr;
use std::time::Duration;

use super::coalesce::take_first;
use super::datagram::{Addresses, HEADER_LEN, Hello, Verdict, Welcome};
use super::joined::Joined;
use super::peers::Peers;
use super::pool::Networks;

/// One who listens and has let nobody in, and one who has been let in by somebody else.
pub(crate) struct Ends {
    listening: Peers,
    joined: Joined,
    given: Addresses,
}

const NOW: Duration = Duration::from_secs(900);

impl Ends {
    pub(crate) fn new() -> Self {
        let own = Addresses { v4: Some([10, 9, 0, 1].into()), v6: None };
        let given = Addresses { v4: Some([10, 9, 0, 2].into()), v6: None };
        let prefix = "10.9.0.1/24".parse().ok();
        let networks = prefix.and_then(|prefix| Networks::of(&[prefix])).unwrap_or_default();
        let remote = SocketAddr::from(([192, 0, 2, 1], 9));
        let mut joined = Joined::new(remote, 0x5555_aaaa, [1; 16], Addresses::default());
        joined.make_hello(NOW);
        let welcome = Welcome { session: 0x7777_8888, given, lengths: [24, 0], own };
        joined.judge(NOW, &welcome.bytes(0x5555_aaaa));
        Ends { listening: Peers::new(networks, [7; 16]), joined, given }
    }

    /// A stranger's datagram for the one who listens. The cookie is not known to it.
    pub(crate) fn for_listener(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) {
        match self.listening.judge(now, from, datagram, || 1) {
            Verdict::Deliver => panic!("a stranger's packet was delivered"),
            Verdict::Answer(answer) => assert!(answer.len() <= datagram.len(), "it amplifies"),
            Verdict::Drop => {}
        }
        assert_eq!(self.listening.len(), 0, "a stranger was let in");
    }

    /// A datagram from the right address, which does not know the session: a script that guesses 32 bits would be a find of its own.
    pub(crate) fn for_joined(&mut self, now: Duration, datagram: &[u8]) {
        match self.joined.judge(now, datagram) {
            Verdict::Answer(answer) => assert!(answer.len() <= Hello::LEN),
            Verdict::Deliver | Verdict::Drop => {}
        }
        let given = self.joined.welcome.as_ref().map(|welcome| welcome.given);
        assert_eq!(given, Some(self.given), "the addresses have changed");
    }
}

/// Puts datagrams together, whatever they are.
pub(crate) fn put_together(bytes: &[u8], stride: usize) {
    let mut buffer = bytes.to_vec();
    let length = buffer.len();
    let (end, _, count) = take_first(&mut buffer, HEADER_LEN, stride, length, |_| true);
    assert!(count >= 1 && end <= length.max(stride));
}

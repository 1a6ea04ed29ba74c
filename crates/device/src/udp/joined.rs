//! The side that knows where the other is: it asks to be let in, stays, and comes back when it has been forgotten.

use std::net::SocketAddr;
use std::time::Duration;

use super::datagram::{
    Addresses, HEADER_LEN, Header, Hello, Refusal, VERSION, Verdict, Welcome, kind,
};
use super::peers::is_between;

/// Nothing was sent for so long: something is, so that a NAT keeps its mapping. RFC 8085 section 3.5 wants no less than 15 s.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(20);
/// How often it is looked at.
pub(super) const TICK: Duration = Duration::from_secs(5);
/// Nothing was heard for so long, in spite of keepalives: the other end may have forgotten us.
const FORGOTTEN: Duration = Duration::from_secs(65);
/// Hellos are so far apart, but for the one that a challenge asks for.
const HELLO_PAUSE: Duration = Duration::from_secs(1);
/// After a hello, an answer is awaited for so long.
const AWAITED: Duration = Duration::from_secs(10);

/// One who has been let in, or asks to be.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) remote: SocketAddr,
    hello: Hello,
    /// The other end's welcome.
    pub(super) welcome: Option<Welcome>,
    /// When datagrams were heard, sent, and a hello was sent last.
    heard: Duration,
    pub(super) sent: Duration,
    hello_sent: Option<Duration>,
    /// Why the other end does not let us in, if it does not.
    pub(super) refused: Option<Refusal>,
}

impl Joined {
    /// `session` and `identity` are random.
    pub(super) fn new(
        remote: SocketAddr,
        session: u32,
        identity: [u8; 16],
        wanted: Addresses,
    ) -> Self {
        Joined {
            remote,
            hello: Hello { session: session.max(1), identity, cookie: [0; 16], wanted },
            welcome: None,
            heard: Duration::ZERO,
            sent: Duration::ZERO,
            hello_sent: None,
            refused: None,
        }
    }

    /// The session in the header of packets; `None` before we are let in.
    pub(super) fn packet_session(&self) -> Option<u32> {
        self.welcome.map(|welcome| welcome.session)
    }

    /// Asks to be let in, or again.
    pub(super) fn make_hello(&mut self, now: Duration) -> Vec<u8> {
        self.hello_sent = Some(now);
        self.sent = now;
        self.hello.bytes()
    }

    fn is_awaiting(&self, now: Duration) -> bool {
        self.hello_sent.is_some_and(|hello_sent| now.saturating_sub(hello_sent) <= AWAITED)
    }

    /// Judges a datagram of the other end's.
    pub(super) fn judge(&mut self, now: Duration, datagram: &[u8]) -> Verdict {
        let Some((header, body)) = Header::read(datagram) else { return Verdict::Drop };
        let for_us = header.session == self.hello.session;
        if header.kind == kind::REFUSAL && for_us && self.is_awaiting(now) {
            self.refused = Some(Refusal::read(header, body));
            return Verdict::Drop;
        }
        if header.version != VERSION {
            return Verdict::Drop;
        }
        match header.kind {
            kind::PACKET if for_us => {
                self.heard = now;
                let between = self
                    .welcome
                    .as_ref()
                    .is_some_and(|welcome| is_between(body, &welcome.own, &welcome.given));
                if between { Verdict::Deliver } else { Verdict::Drop }
            }
            kind::PONG if for_us => {
                self.heard = now;
                Verdict::Drop
            }
            kind::CHALLENGE if for_us && self.is_awaiting(now) => {
                let Ok(cookie) = body.try_into() else { return Verdict::Drop };
                // The same again was lost, or is an echo: the next hello is soon enough.
                if self.hello.cookie == cookie {
                    return Verdict::Drop;
                }
                self.hello.cookie = cookie;
                Verdict::Answer(self.make_hello(now))
            }
            kind::WELCOME if for_us && self.is_awaiting(now) => {
                self.on_welcome(now, body);
                Verdict::Drop
            }
            kind::STRANGER if self.packet_session() == Some(header.session) => {
                let soon =
                    self.hello_sent.is_some_and(|last| now.saturating_sub(last) < HELLO_PAUSE);
                if soon { Verdict::Drop } else { Verdict::Answer(self.make_hello(now)) }
            }
            _ => Verdict::Drop,
        }
    }

    fn on_welcome(&mut self, now: Duration, body: &[u8]) {
        let Some(welcome) = Welcome::read(body) else { return };
        let [v4, v6] = welcome.lengths;
        let sensible = welcome.session != 0 && v4 <= 32 && v6 <= 128;
        let given = welcome.given;
        let some = given.v4.is_some() || given.v6.is_some();
        // Connections keep their addresses.
        let same = self.welcome.is_none_or(|before| before.given == given);
        if sensible && some && same {
            self.heard = now;
            self.hello.wanted = given;
            self.welcome = Some(welcome);
        }
    }

    /// Looks at the clock: what to send, if anything.
    pub(super) fn tick(&mut self, now: Duration) -> Option<Vec<u8>> {
        if now.saturating_sub(self.heard) > FORGOTTEN {
            return Some(self.make_hello(now));
        }
        if now.saturating_sub(self.sent) >= KEEPALIVE {
            self.sent = now;
            let mut ping = Header::new(kind::PING, self.packet_session()?).bytes().to_vec();
            ping.extend((now.as_micros() as u64).to_be_bytes());
            return Some(ping);
        }
        None
    }

    /// The last word.
    pub(super) fn bye(&self) -> Option<[u8; HEADER_LEN]> {
        Some(Header::new(kind::BYE, self.packet_session()?).bytes())
    }
}

#[cfg(test)]
mod tests;

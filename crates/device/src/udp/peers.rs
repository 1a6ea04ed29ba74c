//! The admitted peers, on the side that listens.
//!
//! A peer first shows with a cookie that it receives datagrams at its address; until then, nothing is stored for it. So a flood of
//! datagrams with forged sources takes neither memory nor places. Datagrams from another address are dropped, even with the
//! right session. A peer whose address changes, as a NAT may have it, says hello again with the same identity.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use transom_wire::IpPacket;

use super::Path;
use super::cookie::Cookies;
use super::datagram::{
    Addresses, HEADER_LEN, Header, Hello, Refusal, VERSION, Verdict, Welcome, challenge, kind,
};
use super::pool::Networks;

/// So many peers at most.
pub(super) const MOST: usize = 1024;
/// So many of them from one IP address.
const MOST_OF_ONE_HOST: usize = 64;
/// A peer that is silent for so long may lose its place and addresses to another. It is longer than any NAT keeps a mapping.
const SILENCE: Duration = Duration::from_secs(180);
/// Answers to strangers in a second.
const ANSWERS_PER_SECOND: u32 = 200;

/// One who has been let in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) endpoint: SocketAddr,
    /// The session that it wants to be named.
    pub(super) session: u32,
    identity: [u8; 16],
    addresses: Addresses,
    heard: Duration,
    /// The path to it, as far as it is known.
    pub(super) path: Path,
}

/// Everybody who has been let in.
#[derive(Debug)]
pub(super) struct Peers {
    networks: Networks,
    cookies: Cookies,
    by_session: HashMap<u32, Peer>,
    by_address: HashMap<IpAddr, u32>,
    /// The second in which strangers were answered last, and how many.
    answered: (u64, u32),
}

/// Whether this is a packet from one of `from` to one of `to`.
pub(super) fn is_between(packet: &[u8], from: &Addresses, to: &Addresses) -> bool {
    let among = |addresses: &Addresses, address| addresses.each().any(|one| one == address);
    IpPacket::parse(packet).is_ok_and(|ip| among(from, ip.src()) && among(to, ip.dst()))
}

impl Peers {
    pub(super) fn new(networks: Networks, key: [u8; 16]) -> Self {
        Peers {
            networks,
            cookies: Cookies::new(key),
            by_session: HashMap::new(),
            by_address: HashMap::new(),
            answered: (0, 0),
        }
    }

    /// The peer with this address inside the tunnel.
    pub(super) fn at(&mut self, address: IpAddr) -> Option<&mut Peer> {
        self.by_session.get_mut(self.by_address.get(&address)?)
    }

    /// How many there are.
    #[cfg(any(test, fuzzing))]
    pub(super) fn len(&self) -> usize {
        self.by_session.len()
    }

    /// Judges a datagram. `fresh` gives a random number for a new session.
    pub(super) fn judge(
        &mut self,
        now: Duration,
        from: SocketAddr,
        datagram: &[u8],
        fresh: impl FnMut() -> u32,
    ) -> Verdict {
        let Some((header, body)) = Header::read(datagram) else { return Verdict::Drop };
        if header.version != VERSION {
            let may_answer = header.kind == kind::HELLO && datagram.len() >= HEADER_LEN + 4;
            let refusal = Refusal::Version(VERSION).bytes(header.session);
            return if may_answer { self.answer_stranger(now, refusal) } else { Verdict::Drop };
        }
        if header.kind == kind::HELLO {
            let hello = Hello::read(header, body);
            return hello.map_or(Verdict::Drop, |hello| self.on_hello(now, from, &hello, fresh));
        }
        let Some(peer) = self.by_session.get_mut(&header.session) else {
            return self.on_stranger(now, header);
        };
        if peer.endpoint != from {
            return self.on_stranger(now, header);
        }
        peer.heard = now;
        match header.kind {
            kind::PACKET if is_between(body, &peer.addresses, &self.networks.own) => {
                Verdict::Deliver
            }
            kind::PING => {
                let mut pong = Header::new(kind::PONG, peer.session).bytes().to_vec();
                pong.extend(body.iter().take(8));
                Verdict::Answer(pong)
            }
            kind::BYE => {
                self.forget(header.session);
                Verdict::Drop
            }
            _ => Verdict::Drop,
        }
    }

    /// One who is not known, or not from there. It may be a peer of before a crash, or behind a NAT that has forgotten: it is told to say hello.
    fn on_stranger(&mut self, now: Duration, header: Header) -> Verdict {
        if !matches!(header.kind, kind::PACKET | kind::PING) {
            return Verdict::Drop;
        }
        let answer = Header::new(kind::STRANGER, header.session).bytes().to_vec();
        self.answer_stranger(now, answer)
    }

    fn answer_stranger(&mut self, now: Duration, answer: Vec<u8>) -> Verdict {
        let (second, count) = &mut self.answered;
        if *second != now.as_secs() {
            (*second, *count) = (now.as_secs(), 0);
        }
        *count += 1;
        if *count > ANSWERS_PER_SECOND { Verdict::Drop } else { Verdict::Answer(answer) }
    }

    fn on_hello(
        &mut self,
        now: Duration,
        from: SocketAddr,
        hello: &Hello,
        fresh: impl FnMut() -> u32,
    ) -> Verdict {
        if hello.session == 0 {
            return Verdict::Drop;
        }
        if !self.cookies.is_valid(now, from, &hello.identity, &hello.cookie) {
            let cookie = self.cookies.make(now, from, &hello.identity);
            // Shorter than what it answers, and made from nothing that is kept: it may always be sent.
            return Verdict::Answer(challenge(cookie, hello.session));
        }
        // A walk is cheap enough: there are `MOST` peers at most, and only who has answered a challenge comes here.
        let mut peers = self.by_session.iter();
        let known = peers.find(|(_, peer)| peer.identity == hello.identity);
        let outcome = match known.map(|(session, _)| *session) {
            Some(session) => self.move_peer(session, now, from, hello),
            None => self.admit(now, from, hello, fresh),
        };
        Verdict::Answer(match outcome {
            Ok(welcome) => welcome.bytes(hello.session),
            Err(refusal) => refusal.bytes(hello.session),
        })
    }

    /// One of ours says hello again: its welcome was lost, or its address has changed.
    fn move_peer(
        &mut self,
        session: u32,
        now: Duration,
        from: SocketAddr,
        hello: &Hello,
    ) -> Result<Welcome, Refusal> {
        let before = self.by_session.get(&session).map(|peer| peer.endpoint.ip());
        if before != Some(from.ip()) && self.is_full(from.ip()) {
            return Err(Refusal::Full);
        }
        let peer = self.by_session.get_mut(&session).ok_or(Refusal::Full)?;
        if peer.endpoint != from {
            peer.path = Path::default();
        }
        (peer.endpoint, peer.session, peer.heard) = (from, hello.session, now);
        let given = peer.addresses;
        Ok(self.welcome(session, given))
    }

    fn admit(
        &mut self,
        now: Duration,
        from: SocketAddr,
        hello: &Hello,
        mut fresh: impl FnMut() -> u32,
    ) -> Result<Welcome, Refusal> {
        if self.by_session.len() >= MOST {
            self.forget_silent(now);
            if self.by_session.len() >= MOST {
                return Err(Refusal::Full);
            }
        }
        let given = match self.give(hello.wanted) {
            Err(_) => {
                // Perhaps who has it is gone.
                self.forget_silent(now);
                self.give(hello.wanted)?
            }
            Ok(given) => given,
        };
        let unused = |session: &u32| *session != 0 && !self.by_session.contains_key(session);
        let session = std::iter::repeat_with(&mut fresh).take(64).find(unused);
        let session = session.ok_or(Refusal::Full)?;
        if self.is_full(from.ip()) {
            return Err(Refusal::Full);
        }
        let peer = Peer {
            endpoint: from,
            session: hello.session,
            identity: hello.identity,
            addresses: given,
            heard: now,
            path: Path::default(),
        };
        self.by_session.insert(session, peer);
        self.by_address.extend(given.each().map(|address| (address, session)));
        Ok(self.welcome(session, given))
    }

    fn give(&self, wanted: Addresses) -> Result<Addresses, Refusal> {
        self.networks.give(wanted, |address| self.by_address.contains_key(&address))
    }

    fn welcome(&self, session: u32, given: Addresses) -> Welcome {
        let Networks { own, lengths } = self.networks;
        Welcome { session, given, lengths, own }
    }

    /// Whether as many are at this address as may be.
    fn is_full(&self, host: IpAddr) -> bool {
        let there = self.by_session.values().filter(|peer| peer.endpoint.ip() == host);
        there.count() >= MOST_OF_ONE_HOST
    }

    fn forget_silent(&mut self, now: Duration) {
        let is_silent = |peer: &Peer| now.saturating_sub(peer.heard) > SILENCE;
        let silent = self.by_session.iter().filter(|(_, peer)| is_silent(peer));
        let silent: Vec<u32> = silent.map(|(session, _)| *session).collect();
        silent.into_iter().for_each(|session| self.forget(session));
    }

    fn forget(&mut self, session: u32) {
        let Some(peer) = self.by_session.remove(&session) else { return };
        peer.addresses.each().for_each(|address| {
            self.by_address.remove(&address);
        });
    }
}

#[cfg(test)]
mod tests;

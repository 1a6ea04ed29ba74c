//! The calls of a transparent proxy: SYNs that are held until they are admitted or refused, opens that hold their last acknowledgement, and a host that
//! has every address.

use super::Run;
use super::packets::{address, ours, remote};
use crate::bytes::Script;
use std::net::{IpAddr, SocketAddr};
use transom_stack::{Incoming, IncomingId, ListenConfig, Refusal, Unreachable};
use transom_tcp::time::Duration;
use transom_tcp::{Connection, Setting};

/// The names of held SYNs that are remembered, also of those that are gone.
const MOST_NAMES: usize = 64;
/// How long a SYN, or a last acknowledgement, is held.
const LIMITS: [Duration; 3] =
    [Duration::from_secs(10), Duration::from_millis(5), Duration::from_secs(100)];

/// What the owner knows of held SYNs.
#[derive(Default)]
pub(super) struct HeldNames(Vec<(IncomingId, Incoming)>);

impl Run {
    /// A listener that holds what comes to it: at one port, or for all that no other listener has.
    pub(super) fn listen_and_hold(&mut self) {
        let [limit, ..] = LIMITS;
        let hold = ListenConfig::default().with_hold_syns(Some(limit)).with_syn_backlog(8);
        let listener = match self.every_address {
            true => self.stack.listen_to_everything(hold).unwrap(),
            false => self.stack.listen("[::]:81".parse().unwrap(), hold).unwrap(),
        };
        assert!(self.stack.holds_syns(listener));
        self.listeners.push(listener);
    }

    /// The address that a stranger wants to reach.
    pub(super) fn wanted_by(&self, peer: IpAddr, script: &mut Script<'_>) -> IpAddr {
        if !self.every_address {
            return ours(peer);
        }
        address(match peer {
            IpAddr::V4(_) => script.pick(&["10.0.0.2", "198.51.100.7", "127.0.0.1", "224.0.0.1"]),
            IpAddr::V6(_) => script.pick(&["fd00::2", "2001:db8::7", "::1", "ff02::1"]),
        })
    }

    /// One of the names; most of the newest are still held.
    fn some_name(&self, script: &mut Script<'_>) -> Option<(IncomingId, Incoming)> {
        let back = 1 + script.below(4);
        let names = &self.held.0;
        names.get(names.len().checked_sub(back)?).copied()
    }

    /// One of the calls, by its number below 16.
    pub(super) fn call_of_a_proxy(&mut self, call: usize, script: &mut Script<'_>) {
        let now = self.now;
        match call {
            0..3 => self.take_incoming(),
            3..6 => {
                let Some((id, _)) = self.some_name(script) else { return };
                let before = self.stack.held_count();
                let admitted = self.stack.admit(now, id);
                assert_eq!(self.stack.held_count(), before - usize::from(admitted.is_ok()));
                assert!(admitted.is_err() || self.stack.incoming(id).is_none());
            }
            6 => {
                let Some((id, _)) = self.some_name(script) else { return };
                let lived = self.stack.incoming(id).is_some();
                let refusal = script.pick(&[
                    Refusal::Reset,
                    Refusal::Silence,
                    Refusal::Unreachable(Unreachable::Network),
                    Refusal::Unreachable(Unreachable::Host),
                    Refusal::Unreachable(Unreachable::Port),
                    Refusal::Unreachable(Unreachable::Prohibited),
                ]);
                assert_eq!(self.stack.refuse(now, id, refusal), lived);
                assert!(self.stack.incoming(id).is_none());
            }
            7..10 => {
                let Some((id, incoming)) = self.some_name(script) else { return };
                if let Ok(Some(connection)) = self.stack.accept_admitted(id, &incoming) {
                    assert_eq!(self.stack.incoming_of(connection), Some(id));
                    self.connections.push(connection);
                }
            }
            10 => {
                let Some((id, incoming)) = self.some_name(script) else { return };
                self.stack.give_up_admitted(now, id, &incoming);
                assert!(self.stack.accept_admitted(id, &incoming).is_err(), "it is given up");
            }
            11 | 12 => {
                let (remote, limit) = (remote(script), script.pick(&LIMITS));
                let ip = self.wanted_by(remote.ip(), script);
                let local =
                    script.flag().then(|| SocketAddr::new(ip, script.pick(&[0, 5_000, 80])));
                if let Ok(id) = self.stack.connect(now, local, remote, None) {
                    let hold =
                        |connection: &mut Connection| connection.set(Setting::HoldAnswer(limit));
                    self.stack.with_connection(id, now, hold).unwrap();
                    self.connections.push(id);
                }
            }
            13 | 14 => self.with_some(script, |stack, id, now, _| {
                _ = stack.with_connection(id, now, |connection| connection.release(now));
            }),
            _ => {}
        }
    }

    fn take_incoming(&mut self) {
        for &listener in &self.listeners {
            let waiting = self.stack.incoming_count(listener);
            let Some(id) = self.stack.next_incoming(listener) else {
                assert_eq!(waiting, 0, "one was counted, and none is there");
                continue;
            };
            assert_eq!(self.stack.incoming_count(listener), waiting - 1);
            let incoming = self.stack.incoming(id).expect("what is given is held");
            assert_eq!(incoming.listener, listener);
            self.held.0.push((id, incoming));
        }
        let surplus = self.held.0.len().saturating_sub(MOST_NAMES);
        self.held.0.drain(..surplus);
    }
}

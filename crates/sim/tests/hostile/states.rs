//! A victim in each state of RFC 9293 section 3.3.2, and nonsense flags in all of them.

use crate::harness::*;
use transom_stack::ConnectionId;
use transom_tcp::State;
use transom_tcp::time::Duration;
use transom_wire::{Flags, Options, Seq, TcpHeader};

/// Where the victim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nobody listens.
    ClosedPort,
    /// A listener, and no connection.
    Listen,
    /// A SYN was answered: a half-open connection.
    HalfOpen,
    /// A connection in a state.
    In(State),
}

/// All of them.
pub const STAGES: [Stage; 12] = [
    Stage::ClosedPort,
    Stage::Listen,
    Stage::HalfOpen,
    Stage::In(State::SynSent),
    Stage::In(State::SynReceived),
    Stage::In(State::Established),
    Stage::In(State::FinWait1),
    Stage::In(State::FinWait2),
    Stage::In(State::CloseWait),
    Stage::In(State::Closing),
    Stage::In(State::LastAck),
    Stage::In(State::TimeWait),
];

/// A victim that has reached a stage.
pub struct Scene {
    pub victim: Victim,
    /// Who is on the other side, and knows the sequence numbers.
    pub peer: Peer,
    /// The victim's connection, if it has one.
    pub id: Option<ConnectionId>,
}

impl Scene {
    /// Brings a victim there.
    pub fn at(stage: Stage) -> Scene {
        let victim = Victim::new();
        match stage {
            Stage::ClosedPort => {
                let closed = std::net::SocketAddr::new(VICTIM.into(), 81);
                Scene { victim, peer: Peer::new(ATTACKER, closed), id: None }
            }
            Stage::Listen => Scene { victim, peer: Peer::new(ATTACKER, SERVICE), id: None },
            Stage::HalfOpen => Scene::half_open(victim),
            Stage::In(State::SynSent) => Scene::syn_sent(victim),
            Stage::In(State::SynReceived) => Scene::simultaneous(victim),
            Stage::In(state) => Scene::opened(victim, state),
        }
    }

    fn half_open(mut victim: Victim) -> Scene {
        let mut peer = Peer::new(ATTACKER, SERVICE);
        victim.inject(&peer.syn(bare_options()));
        peer.answer(&victim.last(), bare_options());
        Scene { victim, peer, id: None }
    }

    fn syn_sent(mut victim: Victim) -> Scene {
        let id = victim.call(|stack, now| stack.connect(now, None, ATTACKER, None)).unwrap();
        let syn = victim.last();
        assert_eq!(syn.flags, Flags::SYN);
        let to = std::net::SocketAddr::new(VICTIM.into(), syn.src_port);
        let peer = Peer { ack: syn.seq + 1, ..Peer::new(ATTACKER, to) };
        Scene { victim, peer, id: Some(id) }
    }

    fn simultaneous(victim: Victim) -> Scene {
        let mut scene = Scene::syn_sent(victim);
        scene.victim.inject(&scene.peer.syn(bare_options()));
        assert_eq!(scene.victim.last().flags, Flags::SYN | Flags::ACK);
        scene.peer.seq += 1;
        scene
    }

    fn opened(mut victim: Victim, state: State) -> Scene {
        let (peer, id) = Peer::connect(&mut victim, ATTACKER, bare_options());
        let mut scene = Scene { victim, peer, id: Some(id) };
        let (we_close, peer_closes, peer_acks) = match state {
            State::Established => (false, false, false),
            State::FinWait1 => (true, false, false),
            State::FinWait2 => (true, false, true),
            State::CloseWait => (false, true, false),
            State::LastAck => (true, true, false),
            State::Closing => (true, true, false),
            State::TimeWait => (true, true, true),
            _ => panic!("{state:?} is reached in another way"),
        };
        if peer_closes && state == State::LastAck {
            scene.peer_closes();
        }
        if we_close {
            scene.victim.call(|stack, now| stack.shutdown_write(id, now)).unwrap();
            let fin = scene.victim.last();
            assert!(fin.flags.contains(Flags::FIN));
            if peer_acks {
                scene.peer.ack = fin.seq + 1;
                scene.victim.inject(&scene.peer.segment(Flags::ACK, &[]));
            }
        }
        if peer_closes && state != State::LastAck {
            scene.peer_closes();
        }
        if !peer_acks && we_close {
            // It knows of the FIN, but has not said so.
            scene.peer.ack += 1;
        }
        scene.victim.sent();
        scene
    }

    fn peer_closes(&mut self) {
        self.victim.inject(&self.peer.at(Flags::ACK | Flags::FIN, 0, 0, &[]));
        self.peer.seq += 1;
    }

    /// What can be told apart from outside: the state, what can be read, and how many there are of everything.
    pub fn fingerprint(&self) -> (State, usize, usize, usize, usize) {
        let stack = &self.victim.stack;
        let (state, readable) = self
            .id
            .and_then(|id| stack.connection(id))
            .map_or((State::Closed, 0), |connection| (connection.state(), connection.readable()));
        let counts = (stack.connection_count(), stack.half_open_count(), stack.time_wait_count());
        (state, readable, counts.0, counts.1, counts.2)
    }
}

#[test]
fn every_stage_is_what_it_says() {
    for stage in STAGES {
        let scene = Scene::at(stage);
        let (state, _, connections, half_open, time_wait) = scene.fingerprint();
        let expected = match stage {
            Stage::ClosedPort | Stage::Listen => (State::Closed, 0, 0, 0),
            Stage::HalfOpen => (State::Closed, 0, 1, 0),
            // The rest of it is not the connection any more.
            Stage::In(State::TimeWait) => (State::Closed, 1, 0, 1),
            Stage::In(state) => (state, 1, 0, 0),
        };
        assert_eq!((state, connections, half_open, time_wait), expected, "{stage:?}");
    }
}

/// All 64 combinations of the six flags of RFC 793, at exact and inexact positions, with and without data, in every state:
/// at most one packet answers each, and nothing happens that the flags do not license.
#[test]
fn any_flags_in_any_state_do_only_what_they_license() {
    for stage in STAGES {
        for bits in 0..64u16 {
            let flags = Flags::from_bits_truncate(bits);
            for seq in [0, 1, -1, 30_000, 1 << 30] {
                for ack in [0, 1, -1, 1 << 30] {
                    for payload in [&b""[..], b"data"] {
                        one_segment(stage, flags, seq, ack, payload);
                    }
                }
            }
        }
    }
}

fn one_segment(stage: Stage, flags: Flags, seq: i64, ack: i64, payload: &[u8]) {
    let mut scene = Scene::at(stage);
    let before = scene.fingerprint();
    let held = scene.victim.held();
    let header = scene.peer.header(flags);
    let header = TcpHeader {
        seq: header.seq + seq as u32,
        // Whether or not it counts.
        ack: scene.peer.ack + ack as u32,
        urgent: 5,
        ..header
    };
    let packet = scene.peer.packet(&header, payload);
    // An answer to an older connection is reset, and the SYN leaves once more behind the reset.
    let answers = flags.contains(Flags::ACK) && !flags.contains(Flags::RST) && ack != 0;
    let repeats = stage == Stage::In(State::SynSent) && answers;
    scene.victim.limits.packets = 1 + u64::from(repeats);
    let replies = scene.victim.inject(&packet);
    let after = scene.fingerprint();
    let what = format!("{stage:?} {flags:?} seq {seq:+} ack {ack:+} {} bytes", payload.len());

    let [syn, rst, has_ack] = [Flags::SYN, Flags::RST, Flags::ACK].map(|flag| flags.contains(flag));
    // A connection costs memory, an answer to a segment does not.
    let grown = scene.victim.held() - held;
    assert!(grown <= 32 << 10, "{what}: {grown} bytes more");
    if rst {
        assert!(
            replies == 0 || scene.victim.last().flags == Flags::ACK,
            "{what}: a challenge at most"
        );
        let exact = seq == 0 && stage != Stage::In(State::SynSent);
        let refused = stage == Stage::In(State::SynSent) && has_ack && ack == 0;
        if !exact && !refused {
            assert_eq!(after, before, "{what}: RFC 5961 section 3.2");
        }
        // RFC 1337.
        if stage == Stage::In(State::TimeWait) {
            assert_eq!((after, replies), (before, 0), "{what}");
        }
        return;
    }
    let synchronized = !matches!(
        stage,
        Stage::ClosedPort | Stage::Listen | Stage::In(State::SynSent) | Stage::In(State::TimeWait)
    );
    // In a simultaneous open, the peer's SYN-ACK has the number of its SYN and acknowledges ours (RFC 9293 figure 7).
    let crossing =
        stage == Stage::In(State::SynReceived) && syn && has_ack && (seq, ack) == (-1, 0);
    if crossing {
        let changed = after != before;
        assert!(
            !changed || matches!(after.0, State::Established | State::CloseWait),
            "{what}: {after:?}"
        );
        return;
    }
    if synchronized && (syn || !has_ack) {
        // RFC 9293 section 3.10.7.4: an ACK, or nothing happens; a SYN is challenged (RFC 5961 section 4).
        assert_eq!(after, before, "{what}");
    }
    if !syn && !has_ack {
        // Null, Xmas (FIN, PSH, URG) and the like.
        assert_eq!(after, before, "{what}");
    }
    if synchronized && (ack == 1 << 30 || seq == 1 << 30) && stage != Stage::HalfOpen {
        // It acknowledges data that was never sent, or its position is far off.
        assert_eq!(after, before, "{what}");
    }
}

/// The same in a row instead of one by one: whatever a connection has been through, it ends, and its memory comes back.
#[test]
fn a_host_pelted_with_all_flags_in_a_row_comes_to_rest() {
    let mut victim = Victim::new();
    victim.limits.packets = 4;
    let (peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    let idle = victim.held();
    for round in 0..20i64 {
        for bits in 0..512u16 {
            let mut header = peer.header(Flags::from_bits_truncate(bits));
            header.seq += (round * 7) as u32;
            header.ack = Seq::new(header.ack.get().wrapping_add((round * 13) as u32));
            header.options = Options { timestamps: peer.timestamps, ..Options::default() };
            victim.inject(&peer.packet(&header, &[7; 3]));
        }
        victim.advance(Duration::from_millis(10));
    }
    victim.close(id);
    victim.advance(Duration::from_secs(3_600));
    let stack = &victim.stack;
    let left = (stack.connection_count(), stack.half_open_count(), stack.time_wait_count());
    assert_eq!(left, (0, 0, 0));
    assert!(victim.held() <= idle, "{} bytes are held, {idle} with one connection", victim.held());
}

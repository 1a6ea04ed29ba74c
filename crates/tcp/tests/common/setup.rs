//! Opening a connection for a script: profile, path, and what the other end offers.

use super::{IRS, ISS, Out, Peer, seg};
use std::sync::Arc;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    AckChoice, Connection, Endpoint, FlowChoice, HalfOpen, HalfOpenAction, OfferedOptions,
    PathInfo, Profile, ReceiveWindowConfig, RecoveryChoice, Rfc6298Config, Setting, State,
    TimerChoice,
};
use transom_wire::{Ecn, Options, PartialReliability, Seq, Timestamps};

pub const PORTS: Endpoint = Endpoint { local_port: 40_000, remote_port: 80 };

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// What a connection is opened with. The default makes round numbers: segments of 1000 bytes, no timestamps, no
/// window scale, SACK, a handshake of 100 ms (so SRTT 100 ms and RTO 300 ms), acknowledgements delayed by 40 ms.
#[derive(Clone)]
pub struct Setup {
    pub profile: Profile,
    pub path: PathInfo,
    pub mss: Option<u16>,
    pub peer_scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub window: u16,
    pub rtt: u64,
    pub quick: bool,
    /// Whether the peer takes forward points.
    pub partial: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let window = ReceiveWindowConfig::new(65_535, 65_535);
        let profile = Profile::classic()
            .with_options(OfferedOptions::default().with_window_scale(false).with_timestamps(false))
            .with_flow(FlowChoice::ReceiveWindow(window))
            // RFC 6298's formula as it stands, for numbers that can be worked out by hand.
            .with_timer(TimerChoice::Rfc6298(Rfc6298Config::default().with_min_variation(ms(0))));
        Setup {
            profile,
            path: PathInfo {
                mtu: 1500,
                interface_mtu: 1500,
                ip_header: 20,
                max_super_segment: None,
                simulated: false,
            },
            mss: Some(1000),
            peer_scale: None,
            sack: true,
            timestamps: false,
            window: 65_535,
            rtt: 100,
            quick: false,
            partial: false,
        }
    }
}

impl Setup {
    /// Without SACK: NewReno.
    pub fn newreno() -> Self {
        Setup::default().profile(|profile| profile.recovery = RecoveryChoice::NewReno).no_sack()
    }

    pub fn profile(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.profile);
        self
    }

    /// Data may be given up: both ends say so.
    pub fn partial(self, choose: impl FnOnce(&mut Profile)) -> Self {
        Setup { partial: true, ..self }.profile(choose)
    }

    pub fn no_sack(self) -> Self {
        Setup { sack: false, ..self }
    }

    pub fn timestamps(self) -> Self {
        let timestamps = true;
        Setup { timestamps, ..self }.profile(|profile| profile.options.timestamps = true)
    }

    /// The shift the peer announces; ours follows from the receive buffer.
    pub fn scale(self, shift: u8) -> Self {
        Setup { peer_scale: Some(shift), ..self }
            .profile(|profile| profile.options.window_scale = true)
    }

    /// The peer's window, also in its SYN.
    pub fn window(self, window: u16) -> Self {
        Setup { window, ..self }
    }

    pub fn mss(self, mss: Option<u16>) -> Self {
        Setup { mss, ..self }
    }

    /// A receive buffer of this size that stays as it is.
    pub fn receive_buffer(self, bytes: usize) -> Self {
        self.receive_buffers(bytes, bytes)
    }

    pub fn receive_buffers(self, initial: usize, max: usize) -> Self {
        self.profile(|profile| {
            profile.flow = FlowChoice::ReceiveWindow(ReceiveWindowConfig::new(initial, max));
        })
    }

    pub fn ack_delay(self, millis: u64) -> Self {
        self.profile(|profile| profile.ack = AckChoice::Delayed(ms(millis)))
    }

    /// The lower bound of the retransmission timeout.
    pub fn min_rto(self, millis: u64) -> Self {
        self.profile(|profile| {
            let TimerChoice::Rfc6298(timer) = &mut profile.timer else { panic!("another timer") };
            timer.min = ms(millis);
        })
    }

    /// Acknowledge the first arrivals at once, as connections do unless told otherwise.
    pub fn quick(self) -> Self {
        Setup { quick: true, ..self }
    }

    /// The options of the other end's SYN or SYN-ACK.
    pub fn syn_options(&self, peer: &Peer) -> Options {
        Options {
            mss: self.mss,
            window_scale: self.peer_scale,
            sack_permitted: self.sack,
            timestamps: self.timestamps.then(|| Timestamps {
                value: peer.clock.wrapping_add(peer.now.as_millis() as u32),
                echo: peer.last_tsval,
            }),
            partial: self.partial.then_some(PartialReliability::Permitted),
            ..Options::default()
        }
    }

    /// A connection whose SYN has left (and is still to be looked at).
    #[track_caller]
    pub fn connecting(&self) -> Peer {
        assert_eq!(self.profile.validate(), Ok(()));
        let now = Instant::ZERO;
        let profile = Arc::new(self.profile.clone());
        let connection = Connection::connect(profile, PORTS, self.path, Seq::new(ISS), 7_000, now);
        let mut peer = Peer::wrap(connection, now);
        peer.window = self.window;
        peer.pump();
        peer
    }

    /// The other end answers with its SYN-ACK, after the round-trip time.
    #[track_caller]
    pub fn accept(&self, peer: &mut Peer) {
        peer.wait(self.rtt);
        let options = self.syn_options(peer);
        peer.recv(seg().syn().options(options));
        self.opened(peer);
    }

    /// An established connection, opened actively; the handshake is not to be looked at any more.
    #[track_caller]
    pub fn active(&self) -> Peer {
        let mut peer = self.connecting();
        self.accept(&mut peer);
        peer.expect_state(State::Established);
        peer.drain();
        peer.take_signals();
        peer
    }

    /// An established connection, opened passively.
    #[track_caller]
    pub fn passive(&self) -> Peer {
        let (mut half, mut peer) = self.half_open();
        let profile = Arc::new(self.profile.clone());
        half.syn_ack(&profile, peer.now);
        peer.now += ms(self.rtt);
        let ack = seg().seq(1);
        let (header, payload) = peer.build(&ack);
        assert_eq!(half_open(&half, &peer, &header), HalfOpenAction::Complete);
        peer.connection = Connection::from_half_open(profile, &half, peer.now);
        peer.deliver(&header, &payload);
        self.opened(&mut peer);
        peer.pump();
        peer.expect_state(State::Established);
        peer.drain();
        peer.take_signals();
        peer
    }

    /// A listener's entry for a SYN that just arrived, and a script that is ready to go on with it. The script's
    /// connection is a dummy until one is made of the entry.
    pub fn half_open(&self) -> (HalfOpen, Peer) {
        let now = Instant::ZERO;
        let profile = Arc::new(self.profile.clone());
        let dummy = Connection::connect(profile, PORTS, self.path, Seq::new(ISS), 7_000, now);
        let mut peer = Peer::wrap(dummy, now);
        peer.window = self.window;
        let options = self.syn_options(&peer);
        let (syn, _) = peer.build(&seg().seq(0).syn().no_ack().options(options));
        let half = HalfOpen::new(&self.profile, PORTS, self.path, Seq::new(ISS), 7_000, &syn, now);
        peer.next = 1;
        peer.timestamps = self.timestamps && self.profile.options.timestamps;
        peer.last_tsval = 7_000;
        (half, peer)
    }

    fn opened(&self, peer: &mut Peer) {
        peer.timestamps = self.timestamps && self.profile.options.timestamps;
        let info = peer.info();
        peer.scale = info.window_scale.map_or(0, |(_, ours)| ours);
        if !self.quick {
            peer.connection.set(Setting::QuickAck(false));
        }
    }
}

/// What a listener's entry makes of a segment without data.
pub fn half_open(half: &HalfOpen, peer: &Peer, header: &transom_wire::TcpHeader) -> HalfOpenAction {
    let payload = transom_tcp::packet::Payload::EMPTY;
    let segment = transom_tcp::Segment { header, payload, segment_size: None, ecn: Ecn::NotEct };
    half.clone().on_segment(peer.now, &segment)
}

/// The relative line of a header that did not come from a connection.
pub fn line(header: &transom_wire::TcpHeader) -> String {
    let initial = (Seq::new(ISS), Seq::new(IRS));
    Out {
        at: Instant::ZERO,
        header: *header,
        payload: vec![],
        segment_size: None,
        ecn: Ecn::NotEct,
        initial,
    }
    .line()
}

/// The other end's initial sequence number plus `relative`.
pub fn theirs(relative: i64) -> Seq {
    Seq::new(IRS.wrapping_add(relative as u32))
}

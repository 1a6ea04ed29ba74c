//! The path MTU of a connection: reports of routers (RFC 1191, RFC 8201), and the connection's own search (RFC 4821).
//!
//! A router's report is easily forged, and one with a small MTU would cut a flow into tiny segments. So a report counts at once only before any
//! segment of the present size has arrived. Later it waits. If the segment that it names is acknowledged, it was false; if that segment times out, it
//! is accepted (RFC 5927 section 7.2). No report takes the path MTU below [`Profile::min_path_mtu`](crate::profile::Profile::min_path_mtu). If an
//! IPv4 path reports less, packets of that size are sent without DF, and routers may fragment them (RFC 1191 section 3). Probes keep DF.
//!
//! With [`PathMtuChoice::Probing`], a segment that times out three times in a row counts as too large (a black hole), and probes search for larger
//! sizes. The loss of a probe alone is repaired without a reduction of the window (RFC 4821 section 7.6.2): it does not indicate congestion.

use super::{Connection, PathInfo, State};
use crate::path_mtu::{BASE, BASE_V6, PathMtuChoice, PathMtuDiscovery, Search};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use core::ops::Range;

/// The MTU steps of RFC 1191 section 7.1, for routers that do not name one.
const PLATEAUS: [u32; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];

/// How long a lowered path MTU is believed: the ten minutes of RFC 1191 section 6.3 and RFC 8201 section 4.
const PATH_MTU_EXPIRES: Duration = Duration::from_secs(600);

/// A segment that is larger than the base and timed out so often in a row does not fit the path (RFC 4821 section 7.7).
const BLACK_HOLE: u32 = 3;

/// The segments that are needed behind a probe for acknowledgements to reveal its loss.
const BEHIND_A_PROBE: u64 = 4;

/// The state of the path MTU, once it was in doubt.
#[derive(Debug)]
pub(super) struct PathMtu {
    /// When it was lowered.
    since: Instant,
    /// Data from here on has the present size: an acknowledgement beyond shows that the size passes.
    since_pos: Pos,
    /// A report that waits for the segment it names to time out.
    pending: Option<(ReportedMtu, Pos)>,
    /// Packets of the present size do not pass whole.
    fragments: bool,
    search: Search,
    probe: Option<Probe>,
    /// Probes sent.
    pub(super) probes: u64,
    /// Times that segments were found not to pass without any report.
    pub(super) black_holes: u64,
}

/// A router's report on a path, as far as it is accepted.
#[derive(Clone, Copy, Debug)]
struct ReportedMtu {
    mtu: u32,
    /// It says that not even that passes whole.
    fragments: bool,
}

#[derive(Clone, Debug)]
struct Probe {
    range: Range<Pos>,
    /// The size of its packet.
    mtu: u32,
}

/// The decision of the path MTU search on the next new data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathProbe {
    /// Nothing.
    No,
    /// Send a probe, once the congestion window has room.
    Wait,
    /// Send these bytes as a probe of this size.
    Send(Range<Pos>, u32),
}

/// The state of a path, as a connection knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathState {
    /// The path MTU in use, in bytes.
    pub mtu: u32,
    /// The same, if data of that size was acknowledged.
    pub proven: Option<u32>,
    /// The path carries less than the interface takes, as far as is known.
    pub is_narrow: bool,
    /// Packets of the path MTU do not pass whole, as far as is known: an IPv4 path carries less than the floor.
    pub fragments: bool,
    /// When anything acceptable last arrived of the peer.
    pub heard: Instant,
}

impl PathMtu {
    /// A path that is known to be narrower than the interface.
    pub(super) fn narrow(mtu: u32, now: Instant) -> Box<Self> {
        Box::new(PathMtu {
            since: now,
            since_pos: Pos::FIRST_DATA,
            pending: None,
            fragments: false,
            search: Search::between(mtu, mtu, now),
            probe: None,
            probes: 0,
            black_holes: 0,
        })
    }
}

/// The data of the probe that is in flight.
pub(super) fn probe_in_flight(path: &Option<Box<PathMtu>>) -> Option<&Range<Pos>> {
    path.as_ref().and_then(|path| path.probe.as_ref()).map(|probe| &probe.range)
}

impl Connection {
    /// A router says that the segment at `pos` was too big, and how much passes (zero: it does not say).
    pub(super) fn on_packet_too_big(&mut self, now: Instant, mtu: u32, pos: Pos) {
        if !self.profile.path_mtu_discovery.takes_reports(self.path.ip_header >= 40) {
            self.counters.icmp_rejected += 1;
            return;
        }
        let current = self.path.mtu;
        let mtu = if mtu == 0 {
            PLATEAUS.into_iter().find(|&plateau| plateau < current).unwrap_or(0)
        } else {
            mtu
        };
        if self.is_probe_too_big(now, mtu, pos) {
            return;
        }
        // RFC 8201 section 4 and RFC 1191 section 3: never below the minimum, never upwards.
        let least = self.least_path_mtu();
        let fragments = mtu < least && self.path.ip_header < 40;
        let report = ReportedMtu { mtu: mtu.max(least), fragments };
        if !self.is_new_report(report) {
            return;
        }
        // RFC 5927 section 7.2: a segment that needed no more than the claimed MTU cannot have been too big.
        let longest = self.longest_at(pos) + self.path.ip_header + 20;
        if longest <= if fragments { mtu } else { report.mtu } {
            self.counters.icmp_rejected += 1;
            return;
        }
        if self.present_size_passes() {
            self.path_mtu_mut(now).pending = Some((report, pos));
        } else {
            self.accept_report(now, report);
        }
    }

    /// Whether a report says more than is known.
    fn is_new_report(&self, ReportedMtu { mtu, fragments }: ReportedMtu) -> bool {
        mtu < self.path.mtu || (fragments && mtu == self.path.mtu && !self.path_fragments())
    }

    fn accept_report(&mut self, now: Instant, ReportedMtu { mtu, fragments }: ReportedMtu) {
        let before = self.path.mtu;
        let base = self.base_mtu();
        let path = self.path_mtu_mut(now);
        path.search = Search::reported(mtu, before, base, now);
        path.fragments |= fragments;
        self.change_path_mtu(now, mtu, true);
    }

    /// The path MTU is never taken to be less.
    fn least_path_mtu(&self) -> u32 {
        let least = if self.path.ip_header >= 40 { BASE_V6 } else { self.profile.min_path_mtu };
        least.min(self.path.interface_mtu)
    }

    /// The MTU that a path is expected to have.
    fn base_mtu(&self) -> u32 {
        let base = if self.path.ip_header >= 40 { BASE_V6 } else { BASE };
        base.clamp(self.least_path_mtu(), self.path.interface_mtu)
    }

    fn path_mtu_mut(&mut self, now: Instant) -> &mut PathMtu {
        let mtu = self.path.mtu;
        self.path_mtu.get_or_insert_with(|| PathMtu::narrow(mtu, now))
    }

    /// Whether at least a segment of the present size has been acknowledged.
    fn present_size_passes(&self) -> bool {
        let since = self.path_mtu.as_ref().map_or(Pos::FIRST_DATA, |path| path.since_pos);
        self.una().since(since) >= u64::from(self.mss())
    }

    /// Payload and options of the segments sent at `pos`, at most.
    fn longest_at(&self, pos: Pos) -> u32 {
        if pos < Pos::FIRST_DATA {
            let data = self.syn_data_end().since(Pos::FIRST_DATA);
            return u32::try_from(data).unwrap_or(u32::MAX).saturating_add(40);
        }
        let record = self.control.board().at(pos);
        let len = record.map_or(0, |record| record.len().min(u64::from(self.mss())));
        u32::try_from(len).unwrap_or(u32::MAX).saturating_add(self.agreed.data_option_len())
    }

    /// The state of the path, as far as it is known.
    pub fn path_state(&self) -> PathState {
        PathState {
            mtu: self.path.mtu,
            proven: self.present_size_passes().then_some(self.path.mtu),
            is_narrow: self.path.mtu < self.path.interface_mtu || self.path_fragments(),
            fragments: self.path_fragments(),
            heard: self.rcv.heard.last,
        }
    }

    /// See [`PathState::fragments`].
    pub(super) fn path_fragments(&self) -> bool {
        self.path_mtu.as_ref().is_some_and(|path| path.fragments)
    }

    /// Earlier connections have found that packets of the path MTU do not pass whole: from now on packets may be fragmented.
    pub fn expect_fragments(&mut self, now: Instant) {
        if self.path.ip_header < 40 {
            self.path_mtu_mut(now).fragments = true;
        }
    }

    /// Whether IPv4 packets forbid fragmentation. As on Linux, `DO` does whatever the path carries.
    pub fn dont_fragment(&self) -> bool {
        let choice = self.profile.path_mtu_discovery;
        choice.dont_fragment() && !(choice == PathMtuDiscovery::Want && self.path_fragments())
    }

    /// Takes a new path MTU. When it shrinks, everything unacknowledged counts as lost and is cut anew, without a
    /// reduction of the congestion window (RFC 1191 section 6.5: this is not congestion).
    pub(super) fn set_path_mtu(&mut self, now: Instant, mtu: u32) {
        let before = self.path.mtu;
        if mtu > before
            && let Some(path) = &mut self.path_mtu
        {
            path.fragments = false;
        }
        self.change_path_mtu(now, mtu, mtu < before);
    }

    /// Our own interface takes packets of up to `mtu` bytes from now on, of which the connection uses what `max_segment` allows. A path that was found to
    /// be narrower stays so. Returns whether that changes anything.
    pub fn set_interface_mtu(&mut self, now: Instant, mtu: u32, max_segment: Option<u16>) -> bool {
        let before = self.path;
        let wider = PathInfo { mtu, interface_mtu: mtu, ..before }.limited_to(max_segment);
        if wider.interface_mtu == before.interface_mtu {
            return false;
        }
        self.path.interface_mtu = wider.interface_mtu;
        self.fit_buffer_to_interface();
        if before.mtu == before.interface_mtu || before.mtu > wider.mtu {
            self.set_path_mtu(now, wider.mtu);
        }
        true
    }

    /// The same; `shrinks` says that the data in flight is too large for the path.
    fn change_path_mtu(&mut self, now: Instant, mtu: u32, shrinks: bool) {
        let nxt = self.nxt().max(Pos::FIRST_DATA);
        self.path.mtu = mtu;
        if shrinks || mtu < self.path.interface_mtu {
            let since_pos = if shrinks { self.una().max(Pos::FIRST_DATA) } else { nxt };
            let path = self.path_mtu_mut(now);
            (path.since, path.since_pos) = (now, since_pos);
            if shrinks {
                (path.pending, path.probe) = (None, None);
            }
        } else if let Some(path) = &mut self.path_mtu {
            // Whether so much passes is not known yet: what routers say counts at once.
            (path.since, path.since_pos) = (now, nxt);
        }
        self.control.resize_segments(self.mss(), shrinks);
        if shrinks && self.state == State::SynSent && self.syn_data_end() > Pos::FIRST_DATA {
            // It was the data in the SYN that did not fit.
            self.snd.syn.due = true;
        }
        if shrinks && self.control.board().outstanding() > 0 {
            self.give_up_what_is_hopeless(now);
            self.control.rearm(now, &self.extensions.clamp());
        }
    }

    /// Without probes, the interface's whole MTU is tried again periodically, in case the path has changed (RFC 1191 section 6.3, RFC 8201 section
    /// 4). There is no timer for it: the check is made before data leaves. If the MTU is still too large, a report corrects it.
    pub(super) fn retry_path_mtu(&mut self, now: Instant) {
        let Some(path) = &self.path_mtu else { return };
        let most = self.path.interface_mtu;
        let narrow = self.path.mtu < most || path.fragments;
        if !self.probes_path() && narrow && now.since(path.since) >= PATH_MTU_EXPIRES {
            if let Some(path) = &mut self.path_mtu {
                path.fragments = false;
            }
            self.set_path_mtu(now, most);
        }
    }

    /// Whether larger sizes are searched for. The loss of a probe is only found with SACK.
    fn probes_path(&self) -> bool {
        // Packets that may be fragmented pass at any size, so only probes without fragmentation measure the path.
        let whole = self.path.ip_header >= 40 || self.profile.path_mtu_discovery.dont_fragment();
        self.profile.path_mtu == PathMtuChoice::Probing && self.agreed.sack && whole
    }

    /// The retransmission timer has expired. If a router called the segment that timed out too big, the report was right: outstanding data is divided
    /// again, and the timeout does not indicate congestion. Returns whether this is the case.
    pub(super) fn timeout_confirms_report(&mut self, now: Instant) -> bool {
        let una = self.una();
        let Some(path) = &mut self.path_mtu else { return false };
        path.probe = None;
        match path.pending.take() {
            Some((report, pos)) if pos >= una && self.is_new_report(report) => {
                self.accept_report(now, report);
                true
            }
            _ => false,
        }
    }

    /// The retransmission timer has expired once more, which is a sign of congestion as ever. Large segments may not pass at all, though.
    pub(super) fn suspect_black_hole(&mut self, now: Instant) {
        if self.profile.path_mtu != PathMtuChoice::Probing
            || !self.snd.retransmits.is_multiple_of(BLACK_HOLE)
        {
            return;
        }
        let before = self.path.mtu;
        let base = self.base_mtu();
        let next = if before > base { base } else { self.least_path_mtu() };
        if next >= before || self.longest_at(self.una()) + self.path.ip_header + 20 <= next {
            return; // It was not large.
        }
        let path = self.path_mtu_mut(now);
        path.black_holes += 1;
        path.search = Search::between(next, before - 1, now);
        self.set_path_mtu(now, next);
    }

    /// The largest packet that our interface and the peer take.
    fn widest_packet(&self) -> u32 {
        let peer = self.agreed.peer_mss.saturating_add(self.path.ip_header + 20);
        self.path.interface_mtu.min(peer)
    }

    /// Whether the next new data becomes a probe; `room` is the room in the congestion window.
    pub(super) fn path_probe(&self, now: Instant, room: u64) -> PathProbe {
        let Some(path) = self.path_mtu.as_ref().filter(|path| path.probe.is_none()) else {
            return PathProbe::No;
        };
        if !self.probes_path() || !self.present_size_passes() || self.control.phase() != Phase::Open
        {
            return PathProbe::No;
        }
        let interface = self.widest_packet();
        let Some(mtu) = path.search.candidate(interface, now) else { return PathProbe::No };
        let nxt = self.nxt();
        let headers = self.path.ip_header + 20 + self.agreed.data_option_len();
        let len = u64::from(mtu.saturating_sub(headers));
        // Its loss is found by what arrives behind it.
        let needed = len + BEHIND_A_PROBE * u64::from(self.mss());
        let unsent = self.snd.buffer.end().min(self.snd.peer.edge).since(nxt);
        let fits = mtu > self.path.mtu && mtu <= interface && len <= self.record_left(nxt);
        if !fits || unsent.min(room + self.in_flight()) < needed {
            return PathProbe::No;
        }
        if room < len {
            // The next acknowledgement makes room: something is in flight, or there would be.
            return PathProbe::Wait;
        }
        PathProbe::Send(nxt..nxt + len, mtu)
    }

    /// A probe of this size leaves.
    pub(super) fn on_path_probe(&mut self, now: Instant, range: Range<Pos>, mtu: u32) {
        let interface = self.widest_packet();
        if let Some(path) = &mut self.path_mtu {
            path.search.on_probe(interface, now);
            path.probe = Some(Probe { range, mtu });
            path.probes += 1;
        }
    }

    /// Whether this transmission is a probe, which is not cut.
    #[inline]
    pub(super) fn is_path_probe(&self, range: &Range<Pos>) -> bool {
        let probe = self.path_mtu.as_ref().and_then(|path| path.probe.as_ref());
        probe.is_some_and(|probe| probe.range == *range)
    }

    /// Something leaves again: a probe of which a part does will tell nothing any more.
    pub(super) fn repeat_of_probe(&mut self, range: &Range<Pos>) {
        if let Some(path) = &mut self.path_mtu
            && let Some(probe) = &path.probe
            && range.start < probe.range.end
            && probe.range.start < range.end
        {
            path.probe = None;
        }
    }

    /// An acknowledgement was entered into the scoreboard, before losses are looked for. Checks whether a probe has arrived.
    #[inline]
    pub(super) fn look_for_probe(&mut self, now: Instant) {
        if self.path_mtu.is_some() {
            self.on_ack_of_probe(now);
        }
    }

    #[cold]
    fn on_ack_of_probe(&mut self, now: Instant) {
        let una = self.una();
        let Some(path) = &mut self.path_mtu else { return };
        if let Some((_, pos)) = path.pending
            && pos < una
        {
            path.pending = None; // It was false.
            self.counters.icmp_rejected += 1;
        }
        let Some(Probe { range, mtu }) = path.probe.clone() else { return };
        let sacked = |record: &crate::sent::Sent| record.status.sacked && record.end >= range.end;
        if una >= range.end || self.control.board().at(range.start).is_some_and(sacked) {
            path.probe = None;
            path.search.on_arrived(mtu, now);
            if mtu > self.path.mtu {
                self.set_path_mtu(now, mtu);
            }
        }
    }

    /// The probe in flight is lost. Alone that says nothing about congestion: control has seen to it.
    pub(super) fn on_probe_lost(&mut self, now: Instant) {
        if let Some(path) = &mut self.path_mtu
            && let Some(Probe { mtu, .. }) = path.probe.take()
        {
            path.search.on_lost(mtu, now);
        }
    }

    /// A router reports the MTU after it dropped a probe. The search continues below it; the segments keep their size.
    fn is_probe_too_big(&mut self, now: Instant, mtu: u32, pos: Pos) -> bool {
        let current = self.path.mtu;
        let Some(path) = &mut self.path_mtu else { return false };
        let Some(probe) = path.probe.as_ref().filter(|probe| probe.range.contains(&pos)) else {
            return false;
        };
        if mtu < current || mtu >= probe.mtu {
            return false;
        }
        path.search.on_report(mtu, now);
        true
    }
}

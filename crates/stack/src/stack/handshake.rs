//! Passive opening: SYNs, half-open connections and SYN cookies.

use super::fast_open::FastSyn;
use super::transmit::IpFields;
use super::{Owner, Reply, Stack};
use crate::cookie;
use crate::flow::{FlowKey, Handler};
use crate::listener::{HalfEntry, Listener, ListenerId};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Connection, Endpoint, HalfOpen, HalfOpenAction, Segment};
use transom_wire::{Ecn, FastOpen, Flags, Options, Seq, Timestamps};

impl Stack {
    pub(super) fn on_half_open(&mut self, now: Instant, index: u32, segment: &Segment<'_>) {
        let full = self.is_full();
        let Some(entry) = self.halves.get_mut(index) else { return };
        let key = entry.key;
        let over = |last: Instant| now.since(last) >= Duration::from_millis(500);
        let Some(listener) = self.listeners.get(entry.listener.index) else { return };
        let ip_fields = IpFields::of(&listener.profile);
        match entry.half.on_segment(now, segment) {
            HalfOpenAction::Ignore => {}
            HalfOpenAction::RepeatSynAck => {
                if over(entry.last_syn_ack) {
                    entry.last_syn_ack = now;
                    let header = entry.half.syn_ack_header(&listener.profile, now);
                    self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
                }
            }
            HalfOpenAction::Challenge(header) => {
                if entry.last_challenge.is_none_or(over) {
                    entry.last_challenge = Some(now);
                    self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
                }
            }
            HalfOpenAction::Reset(header) => {
                self.counters.resets_sent += 1;
                self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
            }
            HalfOpenAction::Refuse(header) => {
                self.counters.resets_sent += 1;
                self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
                self.lose_half_open(index);
            }
            HalfOpenAction::Drop => self.lose_half_open(index),
            HalfOpenAction::Complete => {
                let listener = entry.listener;
                // A full accept queue is told by silence: the peer's acknowledgement is as good as lost.
                if full || self.listeners.get(listener.index).is_none_or(Listener::is_full) {
                    return;
                }
                let (half, incoming) = (entry.half.clone(), entry.incoming);
                self.drop_half_open(index);
                self.complete(now, key, listener, &half, segment);
                self.note_incoming(&key, incoming);
            }
        }
    }

    pub(super) fn on_syn(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        segment: &Segment<'_>,
        beyond: Option<Seq>,
    ) {
        let syn = segment.header;
        let Some(entry) = self.listeners.get(listener.index) else { return };
        let profile = entry.profile.clone();
        let ip_fields = IpFields::of(&profile);
        let path = self.path_info(&key, &profile, now);
        let full = self.is_full();
        let crowded = self.is_crowded(0);
        let Some(entry) = self.listeners.get_mut(listener.index) else { return };
        if full || entry.is_full() {
            // No hurry to answer: the peer repeats its SYN.
            self.counters.syns_dropped += 1;
            return;
        }
        let offset = self.secrets.timestamp_offset(&key);
        let fast = self.judge_fast_syn(now, &key, listener, syn);
        let cookie = match fast {
            FastSyn::Cookie(cookie) => cookie,
            FastSyn::Plain | FastSyn::Open(_) => None,
        };
        let Some(entry) = self.listeners.get_mut(listener.index) else { return };
        let crowded = crowded || entry.unfinished() >= entry.syn_backlog;
        // A client with a Fast Open cookie is not part of a flood from forged addresses.
        if crowded && !matches!(fast, FastSyn::Open(_)) {
            // Cookies are honoured for as long as they are good.
            entry.cookies_until = now + Duration::from_secs(128);
            self.counters.cookies_sent += 1;
            let iss = cookie::make(&self.secrets, &key, syn, now);
            let mut half =
                HalfOpen::new(&profile, Self::endpoint(&key), path, iss, offset, syn, now);
            half.syn_codepoint = segment.ecn;
            let mut header = half.syn_ack_header(&profile, now);
            // A cookie does not remember that partial reliability was agreed.
            header.options.partial = None;
            header.options = with_cookie(header.options, cookie);
            if let Some(stamps) = &mut header.options.timestamps {
                let offered = cookie::Offered { options: syn.options, ecn: half.agreed.ecn };
                stamps.value = cookie::fold(&offered, stamps.value);
            } else {
                // Without timestamps there is no place to keep these.
                if half.agreed.ecn {
                    header.flags.remove(Flags::ECE);
                }
                header.options.window_scale = None;
                header.options.sack_permitted = false;
            }
            self.reply(Reply::Segment(key, ip_fields, header, Ecn::NotEct));
            return;
        }
        let mut iss = self.secrets.initial_sequence(&key, now);
        if let Some(beyond) = beyond
            && !iss.after(beyond)
        {
            // [MAY-2] beyond everything the old incarnation used
            iss = beyond + (iss.get() & 0x000f_ffff) + 1;
        }
        let mut half = HalfOpen::new(&profile, Self::endpoint(&key), path, iss, offset, syn, now);
        half.syn_codepoint = segment.ecn;
        if let FastSyn::Open(cookie) = fast {
            self.open_fast(now, key, listener, &half, segment, cookie);
            return;
        }
        let mut header = half.syn_ack(&profile, now);
        header.options = with_cookie(header.options, cookie);
        let codepoint = half.codepoint(&profile);
        entry.half_open += 1;
        entry.tell();
        let deadline = half.deadline;
        let timer = self.wheel.insert(deadline, super::Wake::HalfOpen(0));
        let (last_syn_ack, last_challenge) = (now, None);
        let incoming = None;
        let entry =
            HalfEntry { half, key, listener, timer, last_syn_ack, last_challenge, incoming };
        let (index, _) = self.halves.insert(entry);
        self.wheel.remove(timer);
        let timer = self.wheel.insert(deadline, super::Wake::HalfOpen(index));
        if let Some(entry) = self.halves.get_mut(index) {
            entry.timer = timer;
        }
        self.flows.insert(key, Handler::HalfOpen(index));
        self.tell_counts();
        self.reply(Reply::Segment(key, ip_fields, header, codepoint));
    }

    /// An acknowledgement without a connection: does it bring back a cookie?
    pub(super) fn on_cookie(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        segment: &Segment<'_>,
    ) -> bool {
        let Some(entry) = self.listeners.get(listener.index) else { return false };
        if entry.cookies_until <= now {
            return false;
        }
        let ack = segment.header;
        let Some(theirs) = cookie::check(&self.secrets, &key, ack, now) else { return false };
        if entry.is_full() || self.is_full() {
            return true; // as good as lost
        }
        let profile = entry.profile.clone();
        let offset = self.secrets.timestamp_offset(&key);
        let path = self.path_info(&key, &profile, now);
        let cookie::Offered { options: theirs, ecn } = theirs;
        let theirs = Options {
            timestamps: theirs.timestamps.map(|stamps| Timestamps { echo: 0, ..stamps }),
            ..theirs
        };
        let endpoint = Self::endpoint(&key);
        let half = HalfOpen::from_cookie(&profile, endpoint, path, offset, ack, &theirs, now)
            .with_ecn(&profile, ecn);
        self.counters.cookies_accepted += 1;
        self.complete(now, key, listener, &half, segment);
        true
    }

    /// Makes a connection of a half-open one.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        key: FlowKey,
        listener: ListenerId,
        half: &HalfOpen,
        segment: &Segment<'_>,
    ) {
        let Some(entry) = self.listeners.get(listener.index) else { return };
        let profile = entry.profile.clone();
        let connection = Connection::from_half_open(profile, half, now);
        let index = self.install(now, connection, key, Owner::Listener(listener));
        self.on_connection(now, index, segment);
    }

    /// Whether a SYN for `listener` makes a half-open connection.
    pub(super) fn has_room(&self, listener: ListenerId) -> bool {
        self.listeners.get(listener.index).is_some_and(|entry| {
            !self.is_full()
                && !entry.is_full()
                && entry.unfinished() < entry.syn_backlog
                && !self.is_crowded(0)
        })
    }

    pub(super) fn drop_half_open(&mut self, index: u32) {
        let Some(entry) = self.halves.remove(index) else { return };
        self.wheel.remove(entry.timer);
        self.flows.remove(&entry.key);
        let ListenerId { index, generation } = entry.listener;
        if let Some(listener) = self.listeners.named_mut(index, generation) {
            listener.half_open = listener.half_open.saturating_sub(1);
            listener.tell();
        }
        self.tell_counts();
    }

    fn endpoint(key: &FlowKey) -> Endpoint {
        Endpoint { local_port: key.local_port, remote_port: key.remote_port }
    }
}

/// The options of a SYN-ACK, with a cookie of Fast Open if it fits. The option of accurate ECN is dispensable, and is replaced by
/// it.
fn with_cookie(options: Options, cookie: Option<FastOpen>) -> Options {
    let with = Options { fast_open: cookie, ..options };
    let without = Options { acc_ecn: if cookie.is_some() { None } else { with.acc_ecn }, ..with };
    [with, without].into_iter().find(|fit| fit.encoded_len() <= 40).unwrap_or(options)
}

//! The work under the lock: packets in, packets out, and waking the waiting threads.

use crate::acceptor::Acceptor;
use crate::clock::Clock;
use crate::driver::Watched;
use crate::eagerness::Patience;
use crate::lock::Waker;
use crate::observer::Mailbox;
use crate::ports::Ports;
use crate::raw::HostWatcher;
use crate::readiness::Readiness;
use crate::roles::Roles;
use crate::wake_event::DeviceFd;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use transom_device::{Device, Received, RxPacket, TxPacket};
pub(crate) use transom_stack::{ConnectionId, ForwardedPacket};
use transom_stack::{IncomingId, ListenerId};
use transom_stack::{Stack as Host, StackSignal};
use transom_tcp::Signal;
use transom_tcp::packet::PacketBuf;
use transom_tcp::time::Instant;

/// Packets taken from the device before answers are sent, and sent before others get the lock: so many at least, and more while they are short.
const BATCH: usize = 16;
/// The most of them, and the bytes with which a batch of more than [`BATCH`] ends. The bytes are those of one super-segment.
const LONG_BATCH: usize = 64;
const BATCH_BYTES: usize = 65_536;
/// After writing this many bytes a sender looks for acknowledgements.
pub(crate) const BYTES_PER_POLL: usize = 128 * 1024;
/// A reader's buffer below this size is not offered to the device: packets might not fit.
const LEAST_TO_SCATTER: usize = 65_536;

/// What a batch has taken, and so what room it has left.
#[derive(Default)]
struct Room {
    packets: usize,
    bytes: usize,
}

impl Room {
    /// Adds packets of so many bytes to the batch.
    fn take(&mut self, packets: usize, bytes: usize) {
        self.packets += packets;
        self.bytes += bytes;
    }

    /// How many packets there is room for.
    fn packets(&self) -> usize {
        let most = if self.bytes < BATCH_BYTES { LONG_BATCH } else { BATCH };
        most.saturating_sub(self.packets)
    }
}

/// The events that a thread can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Channel {
    Readable(ConnectionId),
    Writable(ConnectionId),
    /// A report about it (RFC 9293 section 3.9.1.8).
    Report(ConnectionId),
    Acceptable(ListenerId),
    /// A listener holds a SYN that nobody has taken.
    Incoming(ListenerId),
    /// The outcome of an admitted SYN.
    Admitted(IncomingId),
}

/// The host, its device, and the waiting threads.
pub(crate) struct Inner {
    pub(crate) host: Host,
    pub(crate) roles: Roles,
    device: Box<dyn Device>,
    mtu: usize,
    clock: Clock,
    /// The sockets that a driver watches.
    pub(crate) watched: Watched,
    pub(crate) readiness: HashMap<ConnectionId, Readiness>,
    pub(crate) listener_readiness: HashMap<ListenerId, Readiness>,
    /// Listeners that are in other shards too, and the number of this shard among them.
    pub(crate) acceptors: HashMap<ListenerId, (usize, Arc<Acceptor>)>,
    /// The reserved ports, if the host does not choose ports itself.
    ports: Option<Arc<Ports>>,
    /// Is told of everything that happens.
    pub(crate) watcher: Option<Arc<dyn HostWatcher>>,
    /// Observers to notify when a connection is closed.
    pub(crate) observers: HashMap<ConnectionId, Vec<Weak<Mailbox>>>,
    /// What the device gave at once, until it is taken in; empty in between.
    batch: Vec<RxPacket>,
    /// The last batch ended because the device had no more.
    pub(crate) drained: bool,
    /// The device does not work, for this reason.
    failure: Option<Failure>,
    dropped: u64,
}

/// A device's error, for all threads that wait for it: an [`io::Error`] cannot be cloned.
#[derive(Debug)]
struct Failure {
    kind: io::ErrorKind,
    why: Arc<str>,
}

impl Failure {
    fn of(error: &io::Error) -> Failure {
        Failure { kind: error.kind(), why: error.to_string().into() }
    }

    fn error(&self) -> io::Error {
        io::Error::new(self.kind, self.why.to_string())
    }
}

impl Inner {
    pub(crate) fn new(
        host: Host,
        device: Box<dyn Device>,
        clock: Clock,
        ports: Option<Arc<Ports>>,
    ) -> Self {
        Inner {
            host,
            roles: Roles::default(),
            mtu: device.capabilities().mtu,
            device,
            clock,
            watched: Watched::default(),
            readiness: HashMap::new(),
            listener_readiness: HashMap::new(),
            acceptors: HashMap::new(),
            ports,
            watcher: None,
            observers: HashMap::new(),
            batch: Vec::new(),
            drained: false,
            failure: None,
            dropped: 0,
        }
    }

    /// Takes what the device has, up to a batch, and acts on it and on the clock. With `patience` it waits for the first
    /// packet without sleeping. Returns whether anything arrived. Answers are left to [`Inner::send`].
    pub(crate) fn work(&mut self, patience: Patience<'_>) -> bool {
        let mut all = usize::MAX;
        self.work_within(patience, &mut all, true) > 0
    }

    /// Like [`Inner::work`], but takes no more packets when `bytes` are used up. Returns how many it took. With `until_result` it takes no more after a
    /// packet that gave the leader something to do and ended a burst.
    pub(crate) fn work_within(
        &mut self,
        mut patience: Patience<'_>,
        bytes: &mut usize,
        until_result: bool,
    ) -> usize {
        let mut arrived = 0;
        self.drained = false;
        let mut batch = std::mem::take(&mut self.batch);
        // The first one comes alone: often it is all that a thread waits for.
        let mut at_once = 1;
        let mut room = Room::default();
        while room.packets() > 0 {
            let taken = self.receive(std::mem::take(&mut patience), |device| match at_once {
                1 => device.recv().map(|packet| batch.push(packet)),
                most => device.recv_batch(most, &mut batch).map(drop),
            });
            // One that made no sense counts too.
            room.take(batch.len().max(1), batch.iter().map(|packet| packet.range.len()).sum());
            at_once = if self.device.receives_many() { room.packets().min(BATCH) } else { 1 };
            match taken {
                Ok(()) => {
                    arrived += batch.len();
                    let mut ends_burst = false;
                    for packet in batch.drain(..) {
                        let len = packet.range.len();
                        ends_burst = len < self.mtu;
                        self.take_in(packet);
                        *bytes = bytes.saturating_sub(len);
                    }
                    if *bytes == 0 {
                        break;
                    }
                    // To look for one more costs a system call; a response seldom has anything behind it.
                    if until_result && ends_burst && self.leader_has_result() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.drained = true;
                    break;
                }
                // There may be more behind it.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.fail(&error);
                    break;
                }
            }
        }
        self.batch = batch;
        self.host.on_timeout(self.clock.now());
        arrived
    }

    /// Does what timers ask for.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        self.host.on_timeout(now);
    }

    /// Whether a driver has something to hear.
    pub(crate) fn has_driver_news(&self) -> bool {
        self.watched.has_changes()
    }

    /// No driver watches any more.
    pub(crate) fn forget_driver(&mut self) {
        self.watched = Watched::default();
    }

    /// Asks the device for a packet until it has one or `patience` ends.
    fn receive<T>(
        &mut self,
        patience: Patience<'_>,
        mut ask: impl FnMut(&mut dyn Device) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match ask(&mut *self.device) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && patience.lasts(self.clock) =>
                {
                    std::hint::spin_loop();
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether what the leading application thread waits for has happened.
    fn leader_has_result(&mut self) -> bool {
        self.handle_signals();
        self.roles.leader_notified
    }

    fn take_in(&mut self, packet: RxPacket) {
        self.failure = None;
        let now = self.clock.now();
        let RxPacket { buffer, range, offload } = packet;
        if let Some(buffer) = self.host.on_owned_packet(now, buffer, range, offload) {
            self.device.recycle(buffer);
        }
    }

    /// Like [`Inner::work`] for a reader of `id` that waits with `out`: data in order is written there directly. Returns
    /// how many bytes, and whether anything arrived.
    pub(crate) fn work_for_reader(
        &mut self,
        id: ConnectionId,
        out: &mut [u8],
        patience: &mut Patience<'_>,
    ) -> (usize, bool) {
        let mut filled = 0;
        let mut arrived = false;
        for _ in 0..BATCH {
            let body = out.get_mut(filled..).unwrap_or_default();
            let expected = self.host.expected_headers(id);
            let Some(head_len) = expected.filter(|_| body.len() >= LEAST_TO_SCATTER) else { break };
            let patience = std::mem::take(patience);
            match self.receive(patience, |device| device.recv_scattered(head_len, body)) {
                Ok(Received::Whole(packet)) => {
                    arrived = true;
                    self.take_in(packet);
                }
                Ok(Received::Split { head, body_len, offload }) => {
                    arrived = true;
                    let now = self.clock.now();
                    let body = body.get(..body_len).unwrap_or_default();
                    match self.host.on_expected(now, id, head.bytes(), body, offload) {
                        Some(kept) => filled += kept,
                        None => {
                            if let Some(packet) = self.device.gather(&head, body) {
                                self.take_in(packet);
                            }
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Trouble with the device is met again by the ordinary way.
                Err(_) => break,
            }
        }
        if arrived {
            self.host.on_timeout(self.clock.now());
        }
        (filled, arrived)
    }

    fn fail(&mut self, error: &io::Error) {
        if self.failure.replace(Failure::of(error)).is_some() {
            return;
        }
        self.roles.wake_all();
        self.watched.note_all();
        if let Some(watcher) = &self.watcher {
            watcher.failed();
        }
        let ids: Vec<_> = self.readiness.keys().copied().collect();
        ids.into_iter().for_each(|id| self.update_readiness(id));
        let (alone, shared) = (self.listener_readiness.keys(), self.acceptors.keys());
        let ids: Vec<_> = alone.chain(shared).copied().collect();
        ids.into_iter().for_each(|id| self.update_listener_readiness(id));
    }

    /// Sends the host's packets, and wakes the waiting threads.
    pub(crate) fn send(&mut self) {
        while self.send_some() {}
    }

    /// The same for a batch of packets, so that others get the lock before the next one. Whether there may be more.
    ///
    /// It reads the clock itself. If others had the lock since the last batch, a caller's time would be older than theirs, and a peer drops segments whose
    /// timestamps run backwards (RFC 7323 section 5).
    pub(crate) fn send_some(&mut self) -> bool {
        let now = self.clock.now();
        let mut is_all = false;
        let mut room = Room::default();
        while room.packets() > 0 {
            let Some(packet) = self.host.poll_transmit(now) else {
                is_all = true;
                break;
            };
            let comment = packet.comment;
            let packet = TxPacket {
                headers: packet.headers,
                payload: packet.payload,
                offload: packet.offload,
            };
            if !comment.is_empty() {
                self.device.annotate(comment);
            }
            room.take(1, packet.len());
            // A device that is full drops, as a network would; the retransmission timer knows.
            if self.device.send_more(&packet).is_err() {
                self.dropped += 1;
            }
        }
        self.dropped += self.device.flush() as u64;
        while let Some(buffer) = self.host.reclaim() {
            self.device.recycle(buffer);
        }
        self.handle_signals();
        !is_all
    }

    fn handle_signals(&mut self) {
        self.roles.forwarded.extend(std::iter::from_fn(|| self.host.poll_forwarded()));
        if let Some(ports) = &self.ports {
            while let Some(change) = self.host.poll_port_change() {
                ports.on_change(change);
            }
        }
        while let Some(signal) = self.host.poll_signal() {
            self.handle(signal);
        }
    }

    fn handle(&mut self, signal: StackSignal) {
        match signal {
            StackSignal::Acceptable(id) => {
                self.roles.leader_notified |= self.watched.note_listener(id);
                self.roles.wake(Channel::Acceptable(id));
                self.update_listener_readiness(id);
                if let Some(watcher) = &self.watcher {
                    watcher.listener(&mut self.host, self.clock.now(), id);
                }
            }
            StackSignal::Incoming(id, _) => {
                self.roles.leader_notified |= self.watched.note_listener(id);
                self.roles.wake(Channel::Incoming(id));
                self.update_listener_readiness(id);
            }
            StackSignal::Admitted(_, incoming) => {
                self.roles.leader_notified |= self.watched.note_incoming(incoming);
                self.roles.wake(Channel::Admitted(incoming));
            }
            StackSignal::IncomingGone(id, incoming) => {
                self.roles.leader_notified |= self.watched.note_incoming(incoming);
                self.roles.wake(Channel::Admitted(incoming));
                self.update_listener_readiness(id);
            }
            StackSignal::Connection(id, signal) => {
                self.roles.leader_notified |= self.watched.note(id, signal);
                match signal {
                    Signal::Readable => self.roles.wake(Channel::Readable(id)),
                    Signal::Answered | Signal::Connected | Signal::Writable => {
                        self.roles.wake(Channel::Writable(id));
                    }
                    Signal::Closed => {
                        self.roles.wake(Channel::Readable(id));
                        self.roles.wake(Channel::Writable(id));
                        self.roles.wake(Channel::Report(id));
                        self.end_observers(id);
                    }
                    Signal::TimeWait => {
                        self.roles.wake(Channel::Report(id));
                        self.end_observers(id);
                    }
                    Signal::Urgent => self.roles.wake(Channel::Report(id)),
                    Signal::Trouble => {
                        self.roles.wake(Channel::Report(id));
                        if self.tells_of_trouble(id) {
                            self.roles.wake(Channel::Readable(id));
                            self.roles.wake(Channel::Writable(id));
                        }
                    }
                }
                self.update_readiness(id);
                if let Some(watcher) = &self.watcher {
                    watcher.connection(&mut self.host, self.clock.now(), id);
                }
            }
        }
    }

    /// Brings a connection's exported descriptor up to date.
    pub(crate) fn update_readiness(&mut self, id: ConnectionId) {
        if !self.readiness.contains_key(&id) {
            return;
        }
        let (readable, writable) = self.readiness_of(id);
        if let Some(readiness) = self.readiness.get_mut(&id) {
            // The descriptor is only a signal; if the kernel refuses it there is nobody to tell.
            let _ = readiness.show(readable, writable);
        }
    }

    /// Whether calls on this connection report soft errors.
    fn tells_of_trouble(&self, id: ConnectionId) -> bool {
        self.host.connection(id).is_some_and(|c| c.pending_soft_error().is_some())
    }

    /// Whether a connection is readable and writable in poll's sense: a call would not have to wait.
    fn readiness_of(&self, id: ConnectionId) -> (bool, bool) {
        let Some(connection) = self.host.connection(id).filter(|_| self.failure.is_none()) else {
            return (true, true);
        };
        (connection.has_enough(usize::MAX), connection.is_writable())
    }

    /// How many connections a listener has for the program. Of one that holds SYNs these count: its connections come by the names of their SYNs.
    pub(crate) fn waiting_at(&self, id: ListenerId) -> usize {
        match self.host.holds_syns(id) {
            true => self.host.incoming_count(id),
            false => self.host.acceptable(id),
        }
    }

    /// The same for a listener's descriptor.
    pub(crate) fn update_listener_readiness(&mut self, id: ListenerId) {
        let waiting = self.waiting_at(id);
        let failed = self.has_failed();
        if let Some((shard, acceptor)) = self.acceptors.get(&id) {
            let tasks = acceptor.update(*shard, waiting, failed);
            self.roles.wakers.extend(tasks.into_iter().map(Waker::Task));
        }
        let readable = waiting > 0 || failed;
        if let Some(readiness) = self.listener_readiness.get_mut(&id) {
            let _ = readiness.show(readable, true);
        }
    }

    /// Why the device does not work, if it does not.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.as_ref().map(Failure::error)
    }

    /// Whether the device does not work.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// A packet of another shard's device.
    pub(crate) fn on_forwarded(&mut self, now: Instant, forwarded: ForwardedPacket) {
        self.host.on_forwarded(now, forwarded);
    }

    /// The same in two parts, if the device has them.
    pub(crate) fn device_parts(&self) -> io::Result<Option<[DeviceFd; 2]>> {
        let Some([most, aside]) = self.device.poll_parts() else { return Ok(None) };
        Ok(Some([most.try_clone_to_owned()?, aside.try_clone_to_owned()?]))
    }

    /// Whether the device is to look at the second part too.
    pub(crate) fn look_aside(&mut self, aside: bool) {
        self.device.look_aside(aside);
    }

    /// The descriptor that shows when the device has packets, if it has one.
    pub(crate) fn device_fd(&self) -> io::Result<Option<DeviceFd>> {
        self.device.poll_fd().map(|fd| fd.try_clone_to_owned()).transpose()
    }

    /// Gives the device memory back.
    pub(crate) fn recycle(&mut self, buffer: PacketBuf) {
        self.device.recycle(buffer);
    }

    /// Packets the device refused.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// When something has to be done at the latest, given that the caller waits until `deadline`.
    pub(crate) fn next_wake(&self, deadline: Option<Instant>) -> Instant {
        let timeout = self.host.next_timeout().unwrap_or(Instant::FAR_FUTURE);
        timeout.min(deadline.unwrap_or(Instant::FAR_FUTURE))
    }

    /// Whether a program may wait on an exported descriptor, as a task, or through a watcher. Only the background thread can serve them.
    pub(crate) fn needs_background(&self) -> bool {
        self.watcher.is_some()
            || !self.roles.tasks.is_empty()
            || !self.readiness.is_empty()
            || !self.listener_readiness.is_empty()
            || self.acceptors.values().any(|(_, acceptor)| acceptor.is_awaited())
    }
}

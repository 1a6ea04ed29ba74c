//! A host in virtual time.
//!
//! A [`Host`] is a real [`Stack`] and a clock that the test moves. Every call on the stack is followed by what the stack
//! has to send and to report, and by a check of its invariants. So no test can forget to look. A [`Watch`] sees the
//! calls themselves, such as what they allocate.

use crate::sent::{Sent, one};
use std::net::SocketAddr;
use std::ops::Deref;
use transom_stack::{
    ConnectionId, ListenConfig, ListenerId, SocketError, Stack, StackConfig, StackSignal,
};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Connection, ConnectionState, ReadError, Signal, State};

/// Sees every call on a host's stack.
pub trait Watch {
    /// Does one piece of the stack's work.
    fn watch<T>(&mut self, work: impl FnOnce() -> T) -> T;
}

/// Nobody watches.
impl Watch for () {
    fn watch<T>(&mut self, work: impl FnOnce() -> T) -> T {
        work()
    }
}

/// A host, its time, and what has left it. It can be asked what its stack can be asked.
#[derive(Debug)]
pub struct Host<W = ()> {
    /// The stack itself. Nobody watches direct calls on it. The packets that they cause leave at the next [`Host::call`].
    pub stack: Stack,
    /// The present.
    pub now: Instant,
    /// The signals given to the application, newest last.
    pub signals: Vec<StackSignal>,
    /// The watcher.
    pub watch: W,
    out: Vec<Sent>,
}

impl<W> Deref for Host<W> {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        &self.stack
    }
}

impl<W: Watch> Host<W> {
    /// A host with this configuration, which has to be a valid one.
    pub fn start(config: StackConfig, mut watch: W) -> Self {
        // Not at zero: nothing may depend on the clock's origin.
        let now = Instant::from_secs(1_000);
        let stack = watch.watch(|| Stack::new(config, now).unwrap());
        Host { stack, now, signals: Vec::new(), watch, out: Vec::new() }
    }

    /// Makes a call on the stack, and lets it send what it has.
    pub fn call<T>(&mut self, work: impl FnOnce(&mut Stack, Instant) -> T) -> T {
        let result = self.watch.watch(|| work(&mut self.stack, self.now));
        self.flush();
        result
    }

    fn flush(&mut self) {
        while let Some(packet) = self.watch.watch(|| self.stack.poll_transmit(self.now)) {
            self.out.push(Sent::new(self.now, packet.to_vec(), packet.offload));
        }
        while let Some(signal) = self.stack.poll_signal() {
            self.signals.push(signal);
        }
        self.stack.check().unwrap();
    }

    /// Takes what has left since the last look.
    pub fn sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.out)
    }

    /// The one packet that has left since the last look.
    #[track_caller]
    pub fn sent_one(&mut self) -> Sent {
        one(self.sent())
    }

    /// How many packets have left since the last look.
    pub fn unseen(&self) -> usize {
        self.out.len()
    }

    /// Lets time pass: timers go off when they are due, and must not spin.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut wakes = 0;
        while let Some(due) = self.stack.next_timeout().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.call(|stack, now| stack.on_timeout(now));
            wakes += 1;
            assert!(wakes < 100_000, "timers spin at {:?}", self.now);
        }
        self.now = end;
    }

    /// How often `signal` of `id` was reported.
    pub fn count(&self, id: ConnectionId, signal: Signal) -> usize {
        let signal = StackSignal::Connection(id, signal);
        self.signals.iter().filter(|&&seen| seen == signal).count()
    }

    /// A connection, to look at. There is one.
    #[track_caller]
    pub fn connection(&self, id: ConnectionId) -> &Connection {
        self.stack.connection(id).expect("the connection exists")
    }

    /// A connection's state; `Closed` also when there is none any more.
    pub fn state(&self, id: ConnectionId) -> State {
        self.stack.connection(id).map_or(State::Closed, Connection::state)
    }

    /// A snapshot of a connection.
    #[track_caller]
    pub fn info(&self, id: ConnectionId) -> ConnectionState {
        self.connection(id).info(self.now)
    }

    /// Listens at an address, with the default queues.
    #[track_caller]
    pub fn listen(&mut self, address: SocketAddr) -> ListenerId {
        self.listen_with(address, ListenConfig::default())
    }

    /// The same with these queues.
    #[track_caller]
    pub fn listen_with(&mut self, address: SocketAddr, config: ListenConfig) -> ListenerId {
        self.call(|stack, _| stack.listen(address, config)).unwrap()
    }

    /// Connects to `remote`; the SYN waits in [`Host::sent`].
    #[track_caller]
    pub fn connect(&mut self, remote: SocketAddr) -> ConnectionId {
        self.call(|stack, now| stack.connect(now, None, remote, None)).unwrap()
    }

    /// The same from a local address.
    #[track_caller]
    pub fn connect_from(&mut self, local: SocketAddr, remote: SocketAddr) -> ConnectionId {
        self.call(|stack, now| stack.connect(now, Some(local), remote, None)).unwrap()
    }

    /// Takes the connection that waits at a listener. There is one.
    #[track_caller]
    pub fn accept(&mut self, listener: ListenerId) -> ConnectionId {
        self.call(|stack, _| stack.accept(listener)).expect("a connection to accept").0
    }

    /// Writes as much of `bytes` as goes; how much that was.
    #[track_caller]
    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) -> usize {
        self.call(|stack, now| stack.write(id, now, bytes)).expect("can write")
    }

    /// Writes `bytes`, for which there is room.
    #[track_caller]
    pub fn write_all(&mut self, id: ConnectionId, bytes: &[u8]) {
        assert_eq!(self.write(id, bytes), bytes.len());
    }

    /// Reads everything there is to read.
    #[track_caller]
    pub fn read(&mut self, id: ConnectionId) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 4_096]);
        loop {
            match self.call(|stack, now| stack.read(id, now, &mut buffer)) {
                Ok(0) | Err(SocketError::Read(ReadError::WouldBlock)) => return all,
                Ok(n) => all.extend_from_slice(&buffer[..n]),
                Err(error) => panic!("cannot read: {error}"),
            }
        }
    }

    /// The application lets go.
    pub fn close(&mut self, id: ConnectionId) {
        self.call(|stack, now| stack.close(id, now));
    }
}

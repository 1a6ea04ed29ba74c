//! A host that counts packets for each socket.

use crate::clock::Clock;
use crate::eagerness::Patience;
use crate::roles::Roles;
use crate::sync::Arc;
use crate::wake_event::{DeviceFd, Packet, Wire};
use std::collections::{HashMap, HashSet};
use std::io;
use transom_tcp::time::Instant;

pub const BYTES_PER_POLL: usize = 2;
const BATCH: usize = 2;

pub type ConnectionId = u32;

/// The socket that has news when a timer runs out.
pub const TIMER: u32 = 99;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    Readable(ConnectionId),
}

/// A packet for another shard.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedPacket {
    pub to: u32,
    pub socket: u32,
}

pub struct Inner {
    pub roles: Roles,
    /// The last look at the device has found it empty.
    pub drained: bool,
    /// The sockets that a driver watches, and those of them that have news.
    watched: HashSet<u32>,
    driver_news: Vec<u32>,
    device: Arc<Wire>,
    /// This shard; sockets of 10 and more are the next one's.
    shard: u32,
    arrived: HashMap<u32, usize>,
    news: Vec<Channel>,
    timer: Option<Instant>,
}

impl Inner {
    pub fn new(device: Arc<Wire>, shard: u32) -> Self {
        let (roles, arrived) = (Roles::default(), HashMap::new());
        Inner {
            roles,
            drained: false,
            watched: HashSet::new(),
            driver_news: Vec::new(),
            device,
            shard,
            arrived,
            news: Vec::new(),
            timer: None,
        }
    }

    pub fn device_fd(&self) -> io::Result<Option<DeviceFd>> {
        Ok(Some(Arc::clone(&self.device)))
    }

    pub fn device_parts(&self) -> io::Result<Option<[DeviceFd; 2]>> {
        Ok(None)
    }

    pub fn look_aside(&mut self, _: bool) {}

    pub fn work(&mut self, patience: Patience<'_>) -> bool {
        let mut all = usize::MAX;
        self.work_within(patience, &mut all, true) > 0
    }

    /// Each packet is so large that the next one is expected at once, but for one of a watched socket.
    pub fn work_within(&mut self, _: Patience<'_>, bytes: &mut usize, until_result: bool) -> usize {
        let mut count = 0;
        self.drained = false;
        for _ in 0..BATCH {
            match self.device.take() {
                None => {
                    self.drained = true;
                    break;
                }
                Some(Packet::Poison) => crate::sync::thread::die(),
                Some(Packet::For(socket)) => {
                    self.take_in(socket);
                    count += 1;
                    if until_result && self.watched.contains(&socket) {
                        break;
                    }
                }
            }
            *bytes = bytes.saturating_sub(1 << 16);
        }
        count
    }

    pub fn run_timers(&mut self, _: Instant) {}

    pub fn has_driver_news(&self) -> bool {
        !self.driver_news.is_empty()
    }

    pub fn forget_driver(&mut self) {
        self.watched.clear();
        self.driver_news.clear();
    }

    pub fn watch(&mut self, socket: u32) {
        self.watched.insert(socket);
    }

    pub fn take_driver_news(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.driver_news)
    }

    fn take_in(&mut self, socket: u32) {
        let to = if socket == TIMER { self.shard } else { socket / 10 };
        if to != self.shard {
            self.roles.forwarded.push(ForwardedPacket { to, socket });
            return;
        }
        *self.arrived.entry(socket).or_default() += 1;
        self.news.push(Channel::Readable(socket));
    }

    pub fn work_for_reader(
        &mut self,
        _: ConnectionId,
        _: &mut [u8],
        _: &mut Patience<'_>,
    ) -> (usize, bool) {
        (0, false)
    }

    pub fn send(&mut self) {
        while self.send_some() {}
    }

    /// Tells of one thing that has happened. Whether there is more.
    pub fn send_some(&mut self) -> bool {
        let now = Clock.now();
        if self.timer.is_some_and(|timer| timer <= now) {
            self.timer = None;
            self.take_in(TIMER);
        }
        if !self.news.is_empty() {
            let channel = self.news.remove(0);
            let Channel::Readable(socket) = channel;
            if self.watched.contains(&socket) {
                self.driver_news.push(socket);
                self.roles.leader_notified = true;
            }
            self.roles.wake(channel);
        }
        !self.news.is_empty()
    }

    pub fn on_forwarded(&mut self, _: Instant, forwarded: ForwardedPacket) {
        self.take_in(forwarded.socket);
    }

    pub fn has_failed(&self) -> bool {
        false
    }

    pub fn next_wake(&self, deadline: Option<Instant>) -> Instant {
        let timer = self.timer.unwrap_or(Instant::FAR_FUTURE);
        timer.min(deadline.unwrap_or(Instant::FAR_FUTURE))
    }

    pub fn needs_background(&self) -> bool {
        !self.roles.tasks.is_empty()
    }

    /// Takes what has arrived for a socket.
    pub fn take(&mut self, socket: u32) -> Option<()> {
        let count = self.arrived.get_mut(&socket).filter(|count| **count > 0)?;
        *count -= 1;
        Some(())
    }

    pub fn set_timer(&mut self, at: Instant) {
        self.timer = Some(at);
    }
}

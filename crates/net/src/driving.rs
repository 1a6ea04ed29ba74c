//! An event loop of the application's leads: what a [`Driver`](crate::Driver) does with the runtimes of a host.
//!
//! The thread leads all the time. While it is awake, it looks by itself before it sleeps; while it sleeps, others wake it by the leader's eventfd.
//!
//! **How many looks.** Each look at a device is a system call, and so is the one that finds nothing more. Descriptors are waited for level-triggered, so a device need
//! not be emptied before the thread sleeps. Where packets come one by one, as with requests and responses in turns, the thread takes one and acts on it. When the same
//! device is readable twice in a row, packets come faster than that. Then it takes all there are, until there was but one again.

use crate::eagerness::Patience;
use crate::engine::Inner;
use crate::roles::Leader;
use crate::runtime::Runtime;
use crate::sync::Arc;
use crate::waiting::{Awake, LOOK_WITHOUT_DESCRIPTOR, RETRY_FAILED};
use std::io;
use transom_tcp::time::{Duration, Instant};

/// The most batches of packets that are taken before the caller has its turn.
const BATCHES: usize = 4;
/// The most bytes that are taken before the caller has its turn. They are still in the processor's cache when the caller passes them on, and their
/// reader works beside this thread.
const BYTES: usize = 256 * 1024;
/// This many bytes at once mean a bulk transfer: more are on their way.
const BULK: usize = 32 * 1024;

/// A descriptor of a runtime's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Other threads have something for this one.
    Threads,
    /// The device, or the first of its parts.
    Device,
    /// The second part of the device.
    Aside,
}

/// A runtime that is led.
#[derive(Debug)]
struct Led {
    runtime: Arc<Runtime>,
    looking: Looking,
}

/// What is known of its device.
#[derive(Debug)]
struct Looking {
    /// Whether to stay awake for the next packet.
    awake: Awake,
    /// Its device has to be looked at.
    due: bool,
    /// And the second part of it.
    aside: bool,
    /// The last look ended with a packet, not with the answer that there is none.
    stopped: bool,
    /// Packets come faster than one for each look.
    many: bool,
    /// Since then only timers and other threads can have changed something: the thread was told how long to sleep.
    rested: bool,
    /// Its device has failed at the last look.
    failed: bool,
    /// And nobody waits for it any more.
    unwatched: bool,
}

impl Looking {
    /// In the beginning nothing is known.
    const NEW: Looking = Looking {
        awake: Awake::No,
        due: true,
        aside: true,
        stopped: false,
        many: false,
        rested: false,
        failed: false,
        unwatched: false,
    };

    /// Looks at the device. Returns how many bytes came, or nothing if no packet did.
    fn look(&mut self, inner: &mut Inner, aside: bool) -> Option<usize> {
        inner.look_aside(aside);
        // What comes twice in a row comes often.
        self.many |= self.stopped;
        let (mut bytes, mut packets) = (BYTES, 0);
        for _ in 0..BATCHES {
            inner.roles.leader_notified = false;
            packets += inner.work_within(Patience::default(), &mut bytes, !self.many);
            inner.send();
            self.stopped = !self.many && inner.roles.leader_notified && !inner.drained;
            if bytes == 0 || inner.drained || self.stopped || inner.has_failed() {
                break;
            }
        }
        self.many &= !inner.drained || packets > 1;
        // Until a packet comes a failure stands; but a device that has nothing works.
        self.failed = inner.has_failed() && !inner.drained;
        self.due = !inner.drained && !self.stopped && !self.failed;
        (packets > 0).then_some(BYTES - bytes)
    }
}

/// The lead of all shards of a host, or of several hosts.
#[derive(Debug)]
pub(crate) struct Driving {
    led: Vec<Led>,
    /// The descriptors: the place of the runtime, and what it is of it.
    sources: Vec<(usize, Source)>,
    /// A lot came lately: the next packet is close, and to sleep until it comes would cost its sender a wake-up.
    bulk: bool,
}

impl Driving {
    /// Takes the lead of the background thread, or of nobody.
    pub(crate) fn take<'a>(runtimes: impl Iterator<Item = &'a Arc<Runtime>>) -> io::Result<Self> {
        // What it has taken is given back when it fails.
        let mut driving = Driving { led: Vec::new(), sources: Vec::new(), bulk: false };
        for runtime in runtimes {
            let mut inner = runtime.lock();
            if inner.roles.leader == Leader::Application {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            if inner.roles.leader == Leader::Background {
                runtime.wake_background().signal(); // it finds itself replaced
            }
            inner.roles.leader = Leader::Application;
            inner.roles.leader_channel = None;
            inner.roles.driver_awake = true;
            runtime.background.next_epoch();
            let place = driving.led.len();
            let sources = [Source::Threads, Source::Device, Source::Aside];
            let sources = sources.into_iter().take(1 + runtime.device_fds().len());
            driving.sources.extend(sources.map(|source| (place, source)));
            driving.led.push(Led { runtime: Arc::clone(runtime), looking: Looking::NEW });
        }
        Ok(driving)
    }

    pub(crate) fn runtimes(&self) -> impl Iterator<Item = &Arc<Runtime>> {
        self.led.iter().map(|led| &led.runtime)
    }

    /// The descriptors to wait for, and whose they are.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&Arc<Runtime>, Source)> {
        let sources = self.sources.iter();
        sources.filter_map(|&(place, source)| Some((&self.led.get(place)?.runtime, source)))
    }

    /// A descriptor is readable. Whether to go on waiting for it.
    pub(crate) fn note(&mut self, descriptor: usize) -> bool {
        let Some(&(place, source)) = self.sources.get(descriptor) else { return true };
        let Some(led) = self.led.get_mut(place) else { return true };
        match source {
            Source::Threads => {
                led.runtime.wake_leader().reset();
                return true;
            }
            Source::Device => led.looking.due = true,
            Source::Aside => (led.looking.due, led.looking.aside) = (true, true),
        }
        led.looking.unwatched |= led.looking.failed;
        !led.looking.unwatched
    }

    /// The thread is awake.
    pub(crate) fn wake(&mut self) {
        for Led { runtime, looking } in &mut self.led {
            runtime.lock().roles.driver_awake = true;
            looking.rested = false;
        }
    }

    /// Does what there is to do, with `look` also at all devices. `each` is called for each host, under its lock.
    pub(crate) fn work(&mut self, look: bool, mut each: impl FnMut(&mut Inner)) {
        for Led { runtime, looking } in &mut self.led {
            let mut inner = runtime.lock();
            inner.roles.driver_awake = true;
            let rested = std::mem::take(&mut looking.rested);
            let aside = std::mem::take(&mut looking.aside) || look;
            if std::mem::take(&mut looking.due) || look {
                let came = looking.look(&mut inner, aside);
                looking.awake.learn(&mut inner, came.is_some(), runtime.now());
                self.bulk = came.map_or(self.bulk, |bytes| bytes >= BULK);
            } else {
                looking.stopped = false;
                let now = runtime.now();
                // Each call of others sends what follows from it.
                if !rested || now >= inner.roles.leader_wakes_at {
                    inner.run_timers(now);
                    inner.send();
                }
            }
            each(&mut inner);
        }
    }

    /// For how long the thread may sleep now: `None` is for ever.
    pub(crate) fn rest(&mut self) -> Option<Duration> {
        // Not a time: each host has a clock of its own.
        let mut least = Duration::MAX;
        let mut stays = false;
        for Led { runtime, looking } in &mut self.led {
            let mut inner = runtime.lock();
            let now = runtime.now();
            if looking.due || inner.has_driver_news() {
                return Some(Duration::ZERO);
            }
            if self.bulk && runtime.telling_fd(&inner).is_some() {
                stays = looking.awake.goes_on(&mut inner, now);
                if stays {
                    break;
                }
                self.bulk = false;
            }
            let wake = inner.next_wake(None);
            inner.roles.driver_awake = false;
            inner.roles.leader_notified = false;
            inner.roles.leader_wakes_at = wake;
            looking.rested = true;
            let look = match runtime.device_fd() {
                None => LOOK_WITHOUT_DESCRIPTOR,
                Some(_) if inner.has_failed() => RETRY_FAILED,
                Some(_) if looking.unwatched => LOOK_WITHOUT_DESCRIPTOR,
                Some(_) => Duration::MAX,
            };
            // It is not told of packets.
            looking.due = look != Duration::MAX;
            if wake != Instant::FAR_FUTURE {
                least = least.min(wake.since(now));
            }
            least = least.min(look);
        }
        if stays {
            self.led.iter_mut().for_each(|led| led.looking.due = true);
            return Some(Duration::ZERO);
        }
        (least != Duration::MAX).then_some(least)
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        for runtime in self.runtimes() {
            let mut inner = runtime.lock();
            inner.forget_driver();
            inner.look_aside(true);
            inner.roles.driver_awake = false;
            inner.roles.leader = Leader::Nobody;
            runtime.background.next_epoch();
            // The lead goes to whoever waits, or else to the background thread.
            inner.roles.background_parked = true;
            runtime.leave(&mut inner);
        }
    }
}

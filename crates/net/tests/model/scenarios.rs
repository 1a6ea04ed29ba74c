//! What may happen at the same time.

use crate::clock::Clock;
use crate::engine::{Channel, ForwardedPacket, Inner, TIMER};
use crate::runtime::Runtime;
use crate::sync::Arc;
use crate::tasks::Slot;
use crate::wake_event::{Packet, Wire};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread::{JoinHandle, spawn};
use shuttle::{Config, MaxSteps, Runner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Wake, Waker};
use transom_tcp::time::Duration;

/// Schedules for each scenario and scheduler.
const SCHEDULES: usize = 300;

/// Runs a scenario under random schedules, and under those with few and telling preemptions.
pub(crate) fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let schedules = std::env::var("TRANSOM_SCHEDULES").ok();
    let schedules = schedules.and_then(|text| text.parse().ok()).unwrap_or(SCHEDULES);
    let scenario = Arc::new(scenario);
    let config = || {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(200_000);
        config
    };
    let again = Arc::clone(&scenario);
    Runner::new(RandomScheduler::new(schedules), config()).run(move || again());
    Runner::new(PctScheduler::new(3, schedules), config()).run(move || scenario());
}

/// A host with its device.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) runtime: Arc<Runtime>,
    wire: Arc<Wire>,
}

impl Host {
    pub(crate) fn start() -> Host {
        Host::shard(0)
    }

    fn shard(number: u32) -> Host {
        let wire = Arc::new(Wire::default());
        let inner = Inner::new(Arc::clone(&wire), number);
        let runtime = Runtime::start(inner, Clock::start(), Duration::ZERO).unwrap();
        Host { runtime, wire }
    }

    /// A thread that waits for a packet.
    pub(crate) fn reader(&self, socket: u32) -> JoinHandle<()> {
        let host = self.clone();
        spawn(move || assert!(host.read(socket)))
    }

    pub(crate) fn read(&self, socket: u32) -> bool {
        let take = |inner: &mut Inner, _| inner.take(socket);
        self.runtime.wait(Channel::Readable(socket), None, take).is_some()
    }

    /// A thread that waits for a packet, but not for long. Gives whether one came.
    fn impatient_reader(&self, socket: u32) -> JoinHandle<bool> {
        let host = self.clone();
        spawn(move || {
            let deadline = host.runtime.now() + Duration::from_millis(5);
            let take = |inner: &mut Inner, _| inner.take(socket);
            host.runtime.wait(Channel::Readable(socket), Some(deadline), take).is_some()
        })
    }

    /// A task that waits for a packet, in a thread that only sleeps. An error: nobody serves it.
    pub(crate) fn task(&self, socket: u32) -> JoinHandle<std::io::Result<()>> {
        let host = self.clone();
        spawn(move || host.read_as_task(socket))
    }

    fn read_as_task(&self, socket: u32) -> std::io::Result<()> {
        let waker = Waker::from(Arc::new(Unpark(shuttle::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            let channel = Channel::Readable(socket);
            let attempt = |inner: &mut Inner, _| inner.take(socket).map(Ok);
            match self.runtime.poll(channel, Slot::new(), &mut context, attempt) {
                Poll::Ready(result) => return result,
                Poll::Pending => shuttle::thread::park(),
            }
        }
    }

    /// A thread that brings packets.
    pub(crate) fn brings(&self, packets: &[Packet]) -> JoinHandle<()> {
        let (wire, packets) = (Arc::clone(&self.wire), packets.to_vec());
        spawn(move || packets.into_iter().for_each(|packet| wire.put(packet)))
    }

    /// A thread that sets the host's timer, so long from now.
    pub(crate) fn sets_timer(&self, span: Duration) -> JoinHandle<()> {
        let host = self.clone();
        spawn(move || host.runtime.with(|inner, now| inner.set_timer(now + span)))
    }

    /// A thread that forwards a packet to a socket of the host.
    pub(crate) fn forwards(&self, socket: u32) -> JoinHandle<()> {
        let host = self.clone();
        let packet = ForwardedPacket { to: 0, socket };
        spawn(move || host.runtime.with(|inner, now| inner.on_forwarded(now, packet)))
    }
}

struct Unpark(shuttle::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn join<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn the_lead_goes_to_who_still_waits() {
    check(|| {
        let host = Host::start();
        let readers = [host.reader(1), host.reader(2)];
        join([host.brings(&[Packet::For(2)]), host.brings(&[Packet::For(1)])]);
        join(readers);
        host.runtime.stop();
    });
}

#[test]
fn a_crowd_is_led_from_the_background() {
    check(|| {
        let host = Host::start();
        let readers = [1, 2, 3, 4].map(|socket| host.reader(socket));
        join([host.brings(&[3, 1].map(Packet::For)), host.brings(&[4, 2].map(Packet::For))]);
        join(readers);
        host.runtime.stop();
    });
}

#[test]
fn tasks_alone_are_served() {
    check(|| {
        let host = Host::start();
        let tasks = [host.task(1), host.task(2)];
        join([host.brings(&[Packet::For(2), Packet::For(1)])]);
        assert!(join(tasks).iter().all(Result::is_ok));
        host.runtime.stop();
    });
}

#[test]
fn tasks_and_threads_wait_beside_each_other() {
    check(|| {
        let host = Host::start();
        let (task, reader) = (host.task(1), host.reader(2));
        // Two for one socket, for a task that comes later.
        join([host.brings(&[Packet::For(2), Packet::For(1)]), host.brings(&[Packet::For(1)])]);
        join([reader]);
        let later = host.task(1);
        assert!(join([task, later]).iter().all(Result::is_ok));
        host.runtime.stop();
    });
}

#[test]
fn many_tasks_wait_for_the_same() {
    check(|| {
        let host = Host::start();
        let tasks = [host.task(1), host.task(1), host.task(1)];
        join([host.brings(&[Packet::For(1); 2]), host.brings(&[Packet::For(1)])]);
        assert!(join(tasks).iter().all(Result::is_ok));
        host.runtime.stop();
    });
}

#[test]
fn a_sleeper_learns_of_a_new_timer() {
    check(|| {
        let host = Host::start();
        let (waits, sets) = (host.task(TIMER), host.sets_timer(Duration::from_millis(1)));
        assert!(join([waits]).iter().all(Result::is_ok));
        join([sets]);
        host.runtime.stop();
    });
}

#[test]
fn a_leader_learns_of_a_timer_and_of_news_from_another_thread() {
    check(|| {
        let host = Host::start();
        let readers = [host.reader(TIMER), host.reader(1)];
        let others = [host.sets_timer(Duration::from_millis(1)), host.forwards(1)];
        join(readers);
        join(others);
        host.runtime.stop();
    });
}

#[test]
fn deadlines_pass_and_leave_the_lead_to_others() {
    check(|| {
        let host = Host::start();
        let impatient = [host.impatient_reader(1), host.impatient_reader(2)];
        let patient = host.reader(3);
        join([host.brings(&[Packet::For(1), Packet::For(3)])]);
        join([patient]);
        join(impatient);
        host.runtime.stop();
    });
}

#[test]
fn a_writer_looks_for_acknowledgements_meanwhile() {
    check(|| {
        let host = Host::start();
        let (reader, writer) = (host.task(1), host.clone());
        let writer = spawn(move || {
            for _ in 0..3 {
                let runtime = &writer.runtime;
                runtime.with(|inner, now| {
                    inner.roles.written_since_poll += 1;
                    runtime.poll_for_acks(inner, now)
                });
            }
        });
        join([host.brings(&[Packet::For(1)])]);
        assert!(join([reader]).iter().all(Result::is_ok));
        join([writer]);
        host.runtime.stop();
    });
}

#[test]
fn a_panic_of_whoever_leads_stops_nobody_else() {
    check(|| {
        let host = Host::start();
        let guarded = |host: Host, work: fn(&Host) -> bool| {
            spawn(move || catch_unwind(AssertUnwindSafe(|| work(&host))).ok())
        };
        let threads = [
            guarded(host.clone(), |host| host.read(1)),
            guarded(host.clone(), |host| host.read(2)),
            guarded(host.clone(), |host| host.read_as_task(3).is_ok()),
        ];
        join([host.brings(&[Packet::Poison])]);
        // Whoever met it is gone: one of these, or the background thread. The others are served; where it was the background thread, a task is told
        // so, unless a thread leads.
        let rest = host.brings(&[1, 2, 3].map(Packet::For));
        let served = join(threads);
        join([rest]);
        let gone = served.iter().filter(|served| served.is_none()).count();
        let told = served.iter().filter(|served| **served == Some(false)).count();
        assert!(gone + told <= 1, "{served:?}");
        host.runtime.stop();
    });
}

/// So many turns that the background thread parks, if somebody else leads.
fn a_while() {
    (0..100).for_each(|_| shuttle::thread::yield_now());
}

#[test]
fn a_panic_of_a_leader_while_the_background_thread_is_parked() {
    check(|| {
        let host = Host::start();
        let threads = [1, 2].map(|socket| {
            let host = host.clone();
            spawn(move || catch_unwind(AssertUnwindSafe(|| host.read(socket))).is_ok())
        });
        a_while();
        join([host.brings(&[Packet::Poison])]);
        a_while();
        let rest = host.brings(&[1, 2].map(Packet::For));
        let gone = join(threads).into_iter().filter(|served| !served).count();
        assert!(gone <= 1);
        join([rest]);
        host.runtime.stop();
    });
}

#[test]
fn tasks_are_served_when_a_leader_has_left_after_a_while() {
    check(|| {
        let host = Host::start();
        let (reader, task) = (host.reader(1), host.task(2));
        a_while();
        join([host.brings(&[Packet::For(1)])]);
        join([reader]);
        join([host.brings(&[Packet::For(2)])]);
        assert!(join([task]).iter().all(Result::is_ok));
        host.runtime.stop();
    });
}

#[test]
fn a_timer_runs_out_while_a_thread_begins_to_wait() {
    check(|| {
        let host = Host::start();
        let leads = host.reader(1);
        let sets = host.sets_timer(Duration::from_micros(50));
        let follows = host.reader(TIMER);
        join([sets, follows]);
        join([host.brings(&[Packet::For(1)]), leads]);
        host.runtime.stop();
    });
}

#[test]
fn a_packet_for_another_shard_arrives_there() {
    check(|| {
        let hosts = [Host::shard(0), Host::shard(1)];
        Runtime::join(&[Arc::clone(&hosts[0].runtime), Arc::clone(&hosts[1].runtime)]);
        let readers = [hosts[0].reader(1), hosts[1].reader(11)];
        let task = hosts[1].task(12);
        join([hosts[1].brings(&[Packet::For(1)]), hosts[0].brings(&[11, 12].map(Packet::For))]);
        join(readers);
        assert!(join([task]).iter().all(Result::is_ok));
        hosts.iter().for_each(|host| host.runtime.stop());
    });
}

#[test]
fn stopping_ends_the_background_thread_whatever_it_does() {
    check(|| {
        let host = Host::start();
        let stops = host.clone();
        let reader = host.reader(1);
        let brings = host.brings(&[Packet::For(1)]);
        let stops = spawn(move || stops.runtime.stop());
        join([reader, brings, stops]);
    });
}

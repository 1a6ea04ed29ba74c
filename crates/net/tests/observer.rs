//! Observers on real sockets over memory: what they are told, what they miss, what they ask for, and that nobody waits for them.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{ObservationEnded, Observer, ObserverOptions, Stack, TcpStream};
use transom_tcp::extension::{
    AttachError, Capabilities, Decider, Fault, Interval, Limits, MAX_LAYERS, Value, Variable, Wake,
};
use transom_tcp::time::Duration as Span;

/// A wake-up that takes longer is lost.
const SOON: Duration = Duration::from_secs(10);

struct Scene {
    // The hosts live as long as their handles.
    _hosts: (Stack, Stack),
    ours: TcpStream,
    theirs: TcpStream,
}

impl Scene {
    fn new() -> Self {
        let (a, b) = pair(&MemoryConfig::default()).unwrap();
        let host = |number: u8, device| {
            Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
        };
        let (a, b) = (host(1, a), host(2, b));
        let listener = b.listen("10.0.0.2:0").unwrap();
        let ours = a.connect(listener.local_addr().unwrap()).unwrap();
        let theirs = listener.accept().unwrap().0;
        // When all is over nobody waits for a FIN.
        theirs.set_linger(Some(Duration::ZERO)).unwrap();
        Scene { _hosts: (a, b), ours, theirs }
    }

    /// So many bytes go over, and are read.
    fn transfer(&mut self, bytes: usize) {
        let mut reader = self.theirs.try_clone().unwrap();
        let read = spawn(move || reader.read_exact(&mut vec![0; bytes]));
        self.ours.write_all(&vec![7; bytes]).unwrap();
        read.join().unwrap().unwrap();
    }

    /// Waits until everything is acknowledged, so that no event is on its way.
    fn settle(&self) {
        while self.ours.info().unwrap().unacknowledged > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = channel();
    spawn(move || {
        let _ = tell.send(work());
    });
    told
}

fn wait_in_thread(observer: Observer, wake: Wake) -> Receiver<Result<u64, ObservationEnded>> {
    aside(move || observer.wait(wake, None).map(|notice| notice.unwrap().counts.of(wake)))
}

#[test]
fn a_waiting_observer_is_woken_and_sees_the_connection() {
    let mut scene = Scene::new();
    let observer = scene.ours.observer(Wake::ACK | Wake::SEND).unwrap();
    let told = aside(move || observer.wait(Wake::ACK, Some(SOON)).unwrap().unwrap());
    scene.transfer(5000);
    let notice = told.recv_timeout(SOON).unwrap();
    assert_eq!(notice.happened, Wake::ACK);
    let ack = notice.occasion.ack.expect("it was an acknowledgement");
    assert!(ack.ack <= notice.snapshot.info.snd_una);
    assert!(notice.snapshot.info.cwnd > 0 && notice.snapshot.info.srtt.is_some());
    assert_eq!(notice.snapshot.ruling(Variable::Cwnd).own, notice.snapshot.info.cwnd);
}

/// Nobody waits while a transfer takes place: it does, one wake-up is told, and all the others are missed.
#[test]
fn a_late_observer_learns_how_much_it_missed() {
    let mut scene = Scene::new();
    let observer = scene.ours.observer(Wake::ACK | Wake::ROUND).unwrap();
    scene.transfer(1_000_000);
    scene.settle();
    let happened = observer.totals().happened;
    assert!(happened.of(Wake::ACK) > 10, "{happened:?}");
    assert_eq!(observer.totals().missed.of(Wake::all()), 0, "as nobody was told anything yet");

    let notice = observer.wait(Wake::ACK, Some(Duration::ZERO)).unwrap().unwrap();
    assert_eq!(notice.counts.of(Wake::ACK), happened.of(Wake::ACK));
    assert_eq!(notice.missed, happened.of(Wake::ACK) - 1);
    // Rounds were not asked for, and are still to be told.
    assert_eq!(notice.counts.of(Wake::ROUND), 0);
    let notice = observer.wait(Wake::all(), Some(Duration::ZERO)).unwrap().unwrap();
    assert_eq!(notice.happened, Wake::ROUND);
    assert_eq!(notice.missed, happened.of(Wake::ROUND) - 1);
    // Everything is told once.
    assert!(observer.wait(Wake::all(), Some(Duration::ZERO)).unwrap().is_none());
    let missed = observer.totals().missed;
    assert_eq!(missed.of(Wake::ACK), happened.of(Wake::ACK) - 1);
}

/// Somebody who fetches every event misses none, though they do not wait in the moment it happens.
#[test]
fn an_event_that_is_fetched_in_time_is_not_missed() {
    let mut scene = Scene::new();
    let observer = scene.ours.observer(Wake::ACK).unwrap();
    for _ in 0..3 {
        // One segment, one acknowledgement.
        scene.transfer(100);
        scene.settle();
        assert_eq!(observer.wait(Wake::ACK, Some(Duration::ZERO)).unwrap().unwrap().missed, 0);
    }
    assert_eq!(observer.totals().happened.of(Wake::ACK), 3);
    assert_eq!(observer.totals().missed.of(Wake::ACK), 0);
}

/// Two threads, each in the middle of changing one observer's limits, change the other's; and of their own. Nobody waits for anybody, and of
/// each only what was changed counts.
#[test]
fn observers_change_each_other() {
    let scene = Scene::new();
    let observers = [(); 2].map(|()| scene.ours.observer(Wake::empty()).unwrap());
    let both = std::sync::Barrier::new(2);
    let work = |own: usize| {
        let change = |limits: &mut transom_tcp::extension::Limits| {
            both.wait();
            observers[1 - own].limits(|limits| limits.at_most(Value::Cwnd(5000))).unwrap();
            observers[own].limits(|limits| limits.at_least(Value::Dupthresh(4))).unwrap();
            both.wait();
            limits.at_most(Value::Ssthresh(9000));
        };
        observers[own].limits(change).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| work(0));
        scope.spawn(|| work(1));
    });
    let asked = |connection: &transom_tcp::Connection| -> Vec<Vec<Interval>> {
        let variables = [Variable::Cwnd, Variable::Dupthresh, Variable::Ssthresh];
        let asked =
            connection.layers().map(|layer| variables.map(|one| layer.limits.asked(one)).to_vec());
        asked.collect()
    };
    let asked = scene.ours.with_connection(|connection, _| asked(connection)).unwrap();
    let each = vec![Interval::at_most(5000), Interval::at_least(4), Interval::at_most(9000)];
    assert_eq!(asked, [each.clone(), each]);
}

#[test]
fn limits_from_outside_hold_at_once_and_go_with_the_observer() {
    let mut scene = Scene::new();
    let observer = scene.ours.observer(Wake::empty()).unwrap();
    let ruling = |scene: &Scene| {
        scene.ours.with_connection(|connection, _| connection.ruling(Variable::Cwnd)).unwrap()
    };
    let own = ruling(&scene).own;
    observer.limits(|limits| limits.at_most(Value::Cwnd(3000))).unwrap();
    let narrowed = ruling(&scene);
    assert_eq!(narrowed.requested, Some(Interval::at_most(3000)));
    assert_eq!((narrowed.own, narrowed.effective), (own, 3000));
    assert_eq!(narrowed.decided_by, Decider::Layer(observer.layer()));
    assert_eq!(observer.snapshot().unwrap().ruling(Variable::Cwnd), narrowed);
    // Requests stay through events that nobody answers.
    scene.transfer(100_000);
    assert_eq!(ruling(&scene).effective, 3000);
    observer.limits(|limits| limits.clear(Variable::Cwnd)).unwrap();
    assert_eq!(ruling(&scene).requested, None);

    observer.limits(|limits| limits.at_most(Value::Cwnd(3000))).unwrap();
    drop(observer);
    assert_eq!(ruling(&scene).requested, None);
    let departure = scene.ours.with_connection(|connection, _| connection.poll_departure());
    assert_eq!(departure.unwrap(), None, "a layer that its owner took away has not failed");
}

/// The function that changes the limits may look at the connection and its observer. Meanwhile the layer waits for the mailbox under the host's lock.
#[test]
fn a_change_of_limits_may_use_the_connection() {
    let mut scene = Scene::new();
    let observer = scene.ours.observer(Wake::all()).unwrap();
    let stream = scene.ours.try_clone().unwrap();
    let changed = aside(move || {
        for _ in 0..200 {
            let change = |limits: &mut Limits| {
                let mss = u64::from(stream.info().unwrap().mss);
                assert_eq!(u64::from(observer.snapshot().unwrap().info.mss), mss);
                limits.at_most(Value::Cwnd(10 * mss));
            };
            observer.limits(change).unwrap();
        }
        observer
    });
    scene.transfer(1_000_000);
    let observer =
        changed.recv_timeout(SOON).expect("nobody waits for somebody who waits for them");
    let look = observer.snapshot().unwrap();
    let most = 10 * u64::from(look.info.mss);
    assert_eq!(look.ruling(Variable::Cwnd).requested, Some(Interval::at_most(most)));
}

#[test]
fn many_threads_may_look() {
    let scene = Scene::new();
    let observer = Arc::new(scene.ours.observer(Wake::empty()).unwrap());
    let looks = (0..4).map(|_| {
        let observer = Arc::clone(&observer);
        spawn(move || (0..2000).filter(|_| observer.snapshot().is_err()).count())
    });
    let threads: Vec<_> = looks.collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 0, "looks at a connection that is not over");
    }
}

#[test]
fn the_lists_are_there_for_who_asks_for_them() {
    let mut scene = Scene::new();
    let requires = Capabilities::ACK_LIST | Capabilities::MESSAGE_LIST;
    let options = ObserverOptions::default().with_requires(requires);
    let observer = scene.ours.observer(options).unwrap();
    let without = scene.ours.observer(Wake::ACK).unwrap();
    scene.transfer(20_000);
    scene.settle();
    let snapshot = observer.snapshot().unwrap();
    assert!(!snapshot.acks.is_empty() && !snapshot.past_messages.is_empty());
    assert_eq!(snapshot.acks[0].ack, snapshot.info.snd_una, "the latest comes first");
    assert!(snapshot.messages.is_empty(), "nothing is out");
    assert!(without.snapshot().unwrap().acks.is_empty());
}

#[test]
fn the_clock_wakes_an_observer_that_asks_for_it() {
    let scene = Scene::new();
    let observer = scene.ours.observer(Wake::empty()).unwrap();
    let at = observer.now() + transom_tcp::time::Duration::from_millis(5);
    observer.limits(|limits| limits.wake_at(at)).unwrap();
    let notice = observer.wait(Wake::TIMER, Some(SOON)).unwrap().unwrap();
    assert_eq!(notice.happened, Wake::TIMER);
    assert!(notice.snapshot.at >= at);
    // Once, and to be looked at or given limits is no event.
    observer.snapshot().unwrap();
    observer.limits(|limits| limits.at_most(Value::Cwnd(3000))).unwrap();
    assert!(observer.wait(Wake::all(), Some(Duration::ZERO)).unwrap().is_none());
}

#[test]
fn the_end_of_the_connection_ends_the_waiting() {
    // A reset by the peer.
    let scene = Scene::new();
    let waits = wait_in_thread(scene.ours.observer(Wake::ACK).unwrap(), Wake::ACK);
    scene.theirs.with_connection(|connection, now| connection.abort(now)).unwrap();
    assert_eq!(waits.recv_timeout(SOON).unwrap(), Err(ObservationEnded));

    // Dropped here.
    let scene = Scene::new();
    let observer = scene.ours.observer(Wake::TIMEOUT).unwrap();
    let waits = wait_in_thread(observer, Wake::TIMEOUT);
    drop((scene.ours, scene.theirs));
    assert_eq!(waits.recv_timeout(SOON).unwrap(), Err(ObservationEnded));

    // Ended in order by both, while the handles live.
    let scene = Scene::new();
    let observer = scene.ours.observer(Wake::TIMEOUT).unwrap();
    let waits = wait_in_thread(observer, Wake::TIMEOUT);
    scene.ours.shutdown(std::net::Shutdown::Write).unwrap();
    scene.theirs.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(waits.recv_timeout(SOON).unwrap(), Err(ObservationEnded));
    assert!(scene.ours.observer(Wake::ACK).is_err(), "nothing is left to be observed");
}

#[test]
fn a_faulty_layer_goes_and_the_flow_goes_on() {
    let mut scene = Scene::new();
    let departed = |scene: &Scene| {
        let departure = scene.ours.with_connection(|connection, _| connection.poll_departure());
        departure.unwrap().map(|departure| departure.reason)
    };
    let observer = scene.ours.observer(Wake::ACK).unwrap();
    observer.fail(Fault::Gone);
    assert_eq!(departed(&scene), Some(Fault::Gone.into()));
    assert_eq!(observer.wait(Wake::ACK, None).unwrap_err(), ObservationEnded);
    assert_eq!(observer.limits(|_| {}), Err(ObservationEnded));
    assert!(observer.snapshot().is_err());

    let observer = scene.ours.observer(Wake::ACK).unwrap();
    let rto = |nanos| Value::Rto(Span::from_nanos(nanos));
    observer.limits(|limits| limits.between(rto(2), rto(1))).unwrap();
    assert_eq!(departed(&scene), Some(Fault::Nonsense(Variable::Rto).into()));
    scene.transfer(100_000);
}

#[test]
fn there_is_an_end_to_observers() {
    let scene = Scene::new();
    let all: Vec<_> = (0..MAX_LAYERS).map(|_| scene.ours.observer(Wake::ACK).unwrap()).collect();
    let error = scene.ours.observer(Wake::ACK).unwrap_err();
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref());
    assert_eq!(reason, Some(&AttachError::TooMany));
    drop(all);
    scene.ours.observer(Wake::ACK).unwrap();
}

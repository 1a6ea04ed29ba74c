//! Scenarios with a driver: an event loop of the application's leads.

use crate::driving::Driving;
use crate::engine::TIMER;
use crate::scenarios::{Host, check, join};
use crate::wake_event::Packet;
use shuttle::thread::{JoinHandle, spawn, yield_now};
use std::panic::{AssertUnwindSafe, catch_unwind};
use transom_tcp::time::Duration;

/// The driver of a host, once no thread leads. None of these may wait for a packet that comes only when the driver has done its work.
fn take(host: &Host) -> Driving {
    loop {
        match Driving::take([&host.runtime].into_iter()) {
            Ok(driving) => return driving,
            Err(_) => yield_now(),
        }
    }
}

/// A loop around an epoll, until each of its sockets has had a packet. Like a program it tries only sockets of which it has heard.
fn drive(host: &Host, mut driving: Driving, sockets: &[u32]) {
    let mut left = sockets.to_vec();
    host.runtime.with(|inner, _| left.iter().for_each(|&socket| inner.watch(socket)));
    let take = |left: &mut Vec<u32>, heard: &[u32]| {
        left.retain(|socket| {
            let tried = heard.contains(socket);
            !(tried && host.runtime.with(|inner, _| inner.take(*socket)).is_some())
        });
    };
    // Of what was there before, nothing is reported.
    take(&mut left, sockets);
    while !left.is_empty() {
        let span = driving.rest();
        let device = host.runtime.device_fd().unwrap();
        let readable = host.runtime.wake_leader().sleep_for_levels(device, span);
        for (place, _) in readable.into_iter().enumerate().filter(|(_, readable)| *readable) {
            assert!(driving.note(place));
        }
        let mut heard = Vec::new();
        driving.work(false, |inner| heard.extend(inner.take_driver_news()));
        take(&mut left, &heard);
    }
}

/// A thread with a driver, which it has already.
fn driver(host: &Host, sockets: &[u32]) -> JoinHandle<()> {
    let (host, driving, sockets) = (host.clone(), take(host), sockets.to_vec());
    spawn(move || drive(&host, driving, &sockets))
}

#[test]
fn a_driver_serves_its_own_sockets() {
    check(|| {
        let host = Host::start();
        let driver = driver(&host, &[1, 2, 3]);
        join([host.brings(&[3, 1].map(Packet::For)), host.brings(&[Packet::For(2)])]);
        join([driver]);
        host.runtime.stop();
    });
}

/// More than a driver takes in one turn.
#[test]
fn a_driver_comes_back_for_what_it_had_no_time_for() {
    check(|| {
        let host = Host::start();
        let sockets = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let driver = driver(&host, &sockets);
        join([host.brings(&sockets.map(Packet::For)), driver]);
        host.runtime.stop();
    });
}

/// And the lead goes on when it is dropped.
#[test]
fn a_driver_serves_threads_and_tasks_too() {
    check(|| {
        let host = Host::start();
        let (driver, reader, task) = (driver(&host, &[1]), host.reader(2), host.task(3));
        join([host.brings(&[Packet::For(2)]), host.brings(&[Packet::For(3), Packet::For(1)])]);
        join([driver, reader]);
        assert!(join([task]).iter().all(Result::is_ok));
        host.runtime.stop();
    });
}

#[test]
fn waiting_threads_are_served_when_a_driver_has_gone() {
    check(|| {
        let host = Host::start();
        let driver = driver(&host, &[1]);
        let (reader, task) = (host.reader(2), host.task(3));
        join([host.brings(&[Packet::For(1)])]);
        join([driver]);
        join([host.brings(&[Packet::For(3), Packet::For(2)])]);
        join([reader]);
        assert!(join([task]).iter().all(Result::is_ok));
        host.runtime.stop();
    });
}

#[test]
fn one_driver_after_the_other() {
    check(|| {
        let host = Host::start();
        let (brought, task) = (host.brings(&[2, 1].map(Packet::For)), host.task(3));
        for socket in [1, 2] {
            assert!(Driving::take([&host.runtime].into_iter()).is_ok());
            join([driver(&host, &[socket])]);
        }
        join([brought, host.brings(&[Packet::For(3)])]);
        assert!(join([task]).iter().all(Result::is_ok));
        host.runtime.stop();
    });
}

/// Threads that wait lead, until they have what they wait for. A driver is refused meanwhile, and lost nothing.
#[test]
fn a_driver_is_refused_while_a_thread_leads() {
    check(|| {
        let host = Host::start();
        let reader = host.reader(1);
        let refused = Driving::take([&host.runtime].into_iter()).is_err();
        join([host.brings(&[2, 1].map(Packet::For)), reader]);
        if refused {
            join([driver(&host, &[2])]);
        }
        host.runtime.stop();
    });
}

/// What another thread does to the host, asleep or not.
#[test]
fn a_driver_learns_of_a_timer_and_of_news_from_another_thread() {
    check(|| {
        let host = Host::start();
        let driver = driver(&host, &[TIMER, 1]);
        let others = [host.sets_timer(Duration::from_millis(1)), host.forwards(1)];
        join(others);
        join([driver]);
        host.runtime.stop();
    });
}

#[test]
fn a_driver_that_panics_stops_nobody_else() {
    check(|| {
        let host = Host::start();
        let reader = host.clone();
        let reader = spawn(move || catch_unwind(AssertUnwindSafe(|| reader.read(2))).ok());
        let driven = host.clone();
        let driver = spawn(move || {
            catch_unwind(AssertUnwindSafe(|| drive(&driven, take(&driven), &[1]))).ok()
        });
        join([host.brings(&[Packet::Poison])]);
        // Whoever led is gone: the driver, the reader or the background thread.
        let rest = host.brings(&[1, 2].map(Packet::For));
        let gone = [driver.join().unwrap().is_none(), reader.join().unwrap().is_none()];
        assert!(gone.iter().filter(|gone| **gone).count() <= 1, "{gone:?}");
        join([rest]);
        host.runtime.stop();
    });
}

//! Connections of many users, more than the broker takes.

use std::os::fd::OwnedFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Net, until, wire};

/// The first of the users.
const FIRST: u32 = 100_000;
/// The connections that one user may have.
const EACH: u32 = 64;
/// The connections that all users may have who are neither root nor named by a rule; and the one that asks for the number.
const ALL: u64 = 2048 + 1;

/// The connections, until this is dropped.
pub(crate) struct Crowd(#[expect(dead_code, reason = "they are only to be there")] Vec<OwnedFd>);

impl Crowd {
    /// So many users, each with as many connections as one may have, and one more user, who takes what is left. `None`, and a word about it, where a process
    /// has too few descriptors.
    pub(crate) fn come(net: &Net, users: u32) -> Option<Crowd> {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
        if limit.maximum.is_some_and(|most| most < 10_000) {
            eprintln!("SKIPPED: a process has too few descriptors here");
            return None;
        }
        let mut crowd: Vec<_> = (0..users).flat_map(|user| connect(net, FIRST + user)).collect();
        // A connection of root that ended late may have had the place of one of them, so another user asks too.
        until("others have all that they can have", || {
            crowd.extend(connect(net, FIRST + users));
            connections(net) == ALL
        });
        Some(Crowd(crowd))
    }
}

/// As many connections as one user may have.
fn connect(net: &Net, user: u32) -> Vec<OwnedFd> {
    let path = net.socket();
    // The system call changes the thread, and no other thread of the process.
    let work = move || {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(user)).unwrap();
        (0..EACH).map(|_| wire::connect(&path).unwrap()).collect()
    };
    std::thread::spawn(work).join().unwrap()
}

/// The connections that the broker has.
pub(crate) fn connections(net: &Net) -> u64 {
    let status = net.status();
    status.broker.iter().find(|count| count.name == "connections").unwrap().count
}

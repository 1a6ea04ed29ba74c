//! What a packet costs when there are many connections.
//!
//! A few connections exchange requests and answers of 64 bytes among many that are idle. The cost of a packet is the CPU
//! time of everything a host does for it: sending, the copy in between, finding its connection, TCP, and the application's
//! calls. When all connections take turns instead, each packet finds its connection's memory cold; that is shown beside it, in
//! the order in which the connections lie in memory, and in another.

use super::Settings;
use crate::clock::{Clock, thread_time};
use crate::harness::{Bound, Case, Group, Unit};
use crate::many_connections::Crowd;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// Connections that are in use.
const ACTIVE: usize = 4;
/// Bytes of a request and of its answer.
const REQUEST: [u8; 64] = [5; 64];

/// Connections whose packets arrive together.
const TOGETHER: usize = 32;
/// A prime, so that its steps meet all connections.
const STRIDE: usize = 7919;

const FEW_TOGETHER: &str = "32 connections, all at once";
const TEN: &str = "10 connections";

/// A crowd and its clock, which two cases may share.
type Shared = Rc<RefCell<(Crowd, Clock)>>;

fn crowd(count: usize) -> anyhow::Result<Shared> {
    let clock = Clock::start();
    Ok(Rc::new(RefCell::new((Crowd::new(count, clock.now())?, clock))))
}

/// Repeats `round`, which gets its number and returns how many packets it took. The result is in nanoseconds per packet.
fn case(
    name: &'static str,
    crowd: &Shared,
    mut round: impl FnMut(&mut Crowd, usize, transom_tcp::time::Instant) -> anyhow::Result<u64>
    + 'static,
) -> Case {
    let crowd = Rc::clone(crowd);
    Case::new(name, move |span| {
        let (crowd, clock) = &mut *crowd.borrow_mut();
        let (start, started, mut packets, mut number) = (Instant::now(), thread_time(), 0, 0);
        loop {
            let now = clock.now();
            crowd.tick(now);
            packets += round(crowd, number, now)?;
            number += 1;
            crowd.forget_signals();
            if start.elapsed() >= span {
                let elapsed = thread_time() - started;
                return Ok(elapsed.as_secs_f64() * 1e9 / packets as f64);
            }
        }
    })
}

/// Uses `active` connections in turns, [`ACTIVE`] in a round, one after the other.
fn in_turns(name: &'static str, crowd: &Shared, active: usize) -> Case {
    case(name, crowd, move |crowd, round, now| {
        // Far from each other, in the tables as well.
        let step = crowd.connections.len() / active;
        let mut packets = 0;
        for turn in round * ACTIVE..(round + 1) * ACTIVE {
            let ends = crowd.connections[turn % active * step];
            packets += crowd.request(ends, &REQUEST, now)?;
        }
        Ok(packets)
    })
}

/// Uses all connections in turns, [`TOGETHER`] at a time and far from each other.
fn scattered(name: &'static str, crowd: &Shared) -> Case {
    let mut ends = Vec::with_capacity(TOGETHER);
    case(name, crowd, move |crowd, round, now| {
        let (all, first) = (&crowd.connections, round * TOGETHER);
        ends.clear();
        ends.extend((0..TOGETHER).map(|at| all[(first + at) * STRIDE % all.len()]));
        crowd.requests(&ends, &REQUEST, now)
    })
}

/// Builds the group.
///
/// # Errors
/// When a connection is not established.
pub fn build(_settings: Settings) -> anyhow::Result<Group> {
    let figure = Bound::AtMost(1.3);
    let (ten, few) = (crowd(10)?, crowd(TOGETHER)?);
    let (thousand, many) = (crowd(1_000)?, crowd(100_000)?);
    let cases = vec![
        in_turns(TEN, &ten, ACTIVE),
        in_turns("1,000 connections", &thousand, ACTIVE).figure(TEN, figure),
        in_turns("100,000 connections", &many, ACTIVE).figure(TEN, figure),
        in_turns("100,000 connections, all in turns", &many, 100_000).against(TEN),
        scattered(FEW_TOGETHER, &few),
        scattered("100,000 connections, 32 at a time, scattered", &many).against(FEW_TOGETHER),
    ];
    Ok(Group::new(Unit::Nanoseconds, cases))
}

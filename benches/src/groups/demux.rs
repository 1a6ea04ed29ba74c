//! What a packet costs when there are many connections.
//!
//! A few connections exchange requests and answers of 64 bytes among many that are idle. The cost of a packet is the CPU
//! time of everything a host does for it: sending, the copy in between, finding its connection, TCP, and the application's
//! calls. When all connections take turns instead, each packet finds its connection's memory cold; that is shown beside it, in
//! the order in which the connections lie in memory, and in another.

use super::Settings;
use crate::clock::{Clock, thread_time};
use crate::crowd::Crowd;
use crate::harness::{Bound, Case, Group, Unit};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

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

/// Uses connections `step` apart, `active` of them, in turns; returns nanoseconds per packet.
fn sample(shared: &Shared, active: usize, span: Duration) -> anyhow::Result<f64> {
    let (crowd, clock) = &mut *shared.borrow_mut();
    let count = crowd.connections.len();
    // Far from each other, in the tables as well.
    let step = count / active;
    let (start, started, mut packets, mut turn) = (Instant::now(), thread_time(), 0, 0);
    loop {
        let now = clock.now();
        crowd.tick(now);
        for _ in 0..ACTIVE {
            let ends = crowd.connections[turn % active * step];
            packets += crowd.request(ends, &REQUEST, now)?;
            turn += 1;
        }
        crowd.forget_events();
        if start.elapsed() >= span {
            let elapsed = thread_time() - started;
            return Ok(elapsed.as_secs_f64() * 1e9 / packets as f64);
        }
    }
}

/// Uses all connections in turns, [`TOGETHER`] at a time and far from each other.
fn together(shared: &Shared, span: Duration) -> anyhow::Result<f64> {
    let (crowd, clock) = &mut *shared.borrow_mut();
    let count = crowd.connections.len();
    let (start, started, mut packets, mut turn) = (Instant::now(), thread_time(), 0, 0);
    let mut ends = Vec::with_capacity(TOGETHER);
    loop {
        let now = clock.now();
        crowd.tick(now);
        ends.clear();
        ends.extend((0..TOGETHER).map(|at| crowd.connections[(turn + at) * STRIDE % count]));
        packets += crowd.requests(&ends, &REQUEST, now)?;
        turn += TOGETHER;
        crowd.forget_events();
        if start.elapsed() >= span {
            let elapsed = thread_time() - started;
            return Ok(elapsed.as_secs_f64() * 1e9 / packets as f64);
        }
    }
}

fn scattered(name: &'static str, crowd: &Shared) -> Case {
    let crowd = Rc::clone(crowd);
    Case::new(name, move |span| together(&crowd, span))
}

fn case(name: &'static str, crowd: &Shared, active: usize) -> Case {
    let crowd = Rc::clone(crowd);
    Case::new(name, move |span| sample(&crowd, active, span))
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
        case(TEN, &ten, ACTIVE),
        case("1,000 connections", &thousand, ACTIVE).figure(TEN, figure),
        case("100,000 connections", &many, ACTIVE).figure(TEN, figure),
        case("100,000 connections, all in turns", &many, 100_000).against(TEN),
        scattered(FEW_TOGETHER, &few),
        scattered("100,000 connections, 32 at a time, scattered", &many).against(FEW_TOGETHER),
    ];
    Ok(Group::new(Unit::Nanoseconds, cases))
}

//! What extensions cost: figures 4 and 5 of icTCP, in process.
//!
//! Bulk transfer over 1, 96 and 1000 connections of one host, in virtual time over a path of 400 Mbit/s (what four links of 100 Mbit/s make) and
//! 1 ms each way; what counts is CPU time for each byte of everything: both hosts, the copies, the path. So the share of an extension is a
//! little less than it would be of the sender alone. Three synthetic extensions stand for what later ones do, as in the paper: woken for every
//! acknowledgement; woken for every round; woken for every round with the lists of messages and acknowledgements, which it walks. Each reads
//! what Vegas would read and sets a limit. They are attached to the same connections in turns: two sets of connections that do the same differ
//! by several per cent in where their memory lies. A second measurement without extensions shows how far a ratio can be trusted.
//!
//! There are 1 to 96 connections, as in the paper's figure, and a thousand.
//!
//! Then Vegas itself, polled in three ways, on paths of several rates, against Reno, whose window is larger, so that part of the difference is in smaller super-segments; and a Vegas outside of TCP in the manner of INFOTCP: it looks at the
//! connection's information before each message of a segment's size, and keeps the data back.

use super::Settings;
use crate::delayed::{Delayed, Feed, Path, Write, plain_feed};
use crate::harness::{Bound, Case, Group, Unit, named};
use crate::pair::fixed_buffers;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use transom_extensions::stack;
use transom_stack::{ConnectionId, Stack};
use transom_tcp::Profile;
use transom_tcp::extension::{
    Capabilities, Extension, ExtensionChoice, Limits, Occasion, Value, View, Wake,
};
use transom_tcp::time::{Duration, Instant};

/// Bytes of each socket buffer.
const BUFFER: usize = 262_144;
/// What four links of the paper's carry.
pub const PATH: Path = Path { rate: 400_000_000, delay: Duration::from_millis(1) };
/// The throughput of a host that is busy all the time goes down by as much as a byte costs more.
const PER_ACK: Bound = Bound::AtLeast(0.98);
const PER_ROUND: Bound = Bound::AtLeast(0.995);

/// How many connections: the paper's figure has up to 96.
const COUNTS: [usize; 10] = [1, 2, 3, 4, 8, 16, 32, 64, 96, 1000];
/// Rates of the path for Vegas, in Mbit/s, beside that of [`PATH`].
const RATES: [u64; 5] = [10, 25, 50, 75, 100];
const RENO: &str = "8 connections, Reno";

/// Wakes up, looks, and sets a limit that binds nobody.
#[derive(Clone, Copy, Debug)]
struct Synthetic {
    wakes: Wake,
    lists: bool,
}

impl Extension for Synthetic {
    fn name(&self) -> &str {
        "synthetic"
    }

    fn requires(&self) -> Capabilities {
        let lists = Capabilities::ACK_LIST | Capabilities::MESSAGE_LIST;
        if self.lists { lists } else { Capabilities::empty() }
    }

    fn wake_on(&self) -> Wake {
        self.wakes
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let mut most = view.cwnd().max(view.in_flight());
        if let (Some(rtt), Some(least)) = (view.last_rtt(), view.min_rtt()) {
            most = most.saturating_add(rtt.since_least(least));
        }
        if self.lists {
            let acked: u64 = view.acks().take(64).map(|ack| ack.acked).sum();
            let times = view.past_messages().take(64).filter_map(|one| one.rtt()).count() as u64;
            most = most.saturating_add(acked).saturating_add(times);
        }
        limits.at_most(Value::Cwnd(most));
    }
}

/// How much longer than the least.
trait SinceLeast {
    fn since_least(self, least: Duration) -> u64;
}

impl SinceLeast for Duration {
    fn since_least(self, least: Duration) -> u64 {
        self.as_nanos().saturating_sub(least.as_nanos())
    }
}

fn with(choices: Vec<ExtensionChoice>) -> Profile {
    fixed_buffers(BUFFER).with_extensions(choices)
}

fn synthetic(wakes: Wake, lists: bool) -> Vec<ExtensionChoice> {
    let one = Synthetic { wakes, lists };
    vec![ExtensionChoice::new("synthetic", move || Box::new(one))]
}

/// Connections without extensions.
pub fn plain_profile() -> Profile {
    with(Vec::new())
}

/// Connections with the synthetic extension.
pub fn woken_profile(wakes: Wake, lists: bool) -> Profile {
    with(synthetic(wakes, lists))
}

fn case(name: &'static str, profile: Profile, count: usize, feed: Feed) -> anyhow::Result<Case> {
    let mut delayed = Delayed::new(profile, count, PATH, feed)?;
    Ok(Case::new(name, move |span| delayed.sample(span)))
}

/// The connections of `delayed`, wearing these extensions for as long as a sample lasts.
fn wearing(
    name: &'static str,
    delayed: &Rc<RefCell<Delayed>>,
    choices: Vec<ExtensionChoice>,
) -> Case {
    let delayed = Rc::clone(delayed);
    Case::new(name, move |span| {
        let mut delayed = delayed.borrow_mut();
        delayed.wear(&choices)?;
        // Others have used the caches since.
        delayed.sample(span)?;
        delayed.sample(span)
    })
}

/// Reno and the Vegases with eight connections on a slower path.
fn at_rate(rate: u64) -> anyhow::Result<[Case; 5]> {
    let name = |what: &str| named(format!("8 connections, {rate} Mbit/s, {what}"));
    let path = Path { rate: rate * 1_000_000, ..PATH };
    let case = |name, profile, feed| {
        let mut delayed = Delayed::new(profile, 8, path, feed)?;
        anyhow::Ok(Case::new(name, move |span| delayed.sample(span)))
    };
    let reno = name("Reno");
    let vegas = |what: &str, text: &str| {
        let profile = with(stack(text)?);
        anyhow::Ok(case(name(&format!("Vegas {what}")), profile, plain_feed())?.against(reno))
    };
    Ok([
        case(reno, plain_profile(), plain_feed())?,
        vegas("polled per send", "vegas(poll=send)")?,
        vegas("polled per ack", "vegas(poll=ack)")?,
        vegas("polled per round", "vegas(poll=round)")?,
        case(name("Vegas outside of TCP"), plain_profile(), outside())?.against(reno),
    ])
}

/// Builds the group.
///
/// # Errors
/// When a connection is not established.
pub fn build(_settings: Settings) -> anyhow::Result<Group> {
    let acks = Wake::ACK | Wake::DUPLICATE_ACK;
    let vegas = |name, text: &str| case(name, with(stack(text)?), 8, plain_feed());
    let mut cases = Vec::new();
    for count in COUNTS {
        let connections = if count == 1 { "connection" } else { "connections" };
        let name = |what: &str| named(format!("{count} {connections}, {what}"));
        let (again, plain) = (name("plain, to compare"), name("plain"));
        let (per_ack, acks_listed) = (name("per ack"), name("per ack with lists"));
        let (per_round, rounds_listed) = (name("per round"), name("per round with lists"));
        let delayed = Delayed::new(plain_profile(), count, PATH, plain_feed())?;
        let delayed = Rc::new(RefCell::new(delayed));
        let wearing = |name, choices| wearing(name, &delayed, choices);
        cases.extend([
            wearing(again, Vec::new()).against(plain),
            wearing(plain, Vec::new()),
            wearing(per_ack, synthetic(acks, false)).figure(plain, PER_ACK),
            wearing(acks_listed, synthetic(acks, true)).against(plain),
            wearing(per_round, synthetic(Wake::ROUND, false)).figure(plain, PER_ROUND),
            wearing(rounds_listed, synthetic(Wake::ROUND, true)).against(plain),
        ]);
    }
    cases.extend([
        case(RENO, plain_profile(), 8, plain_feed())?,
        vegas("8 connections, Vegas polled per send", "vegas(poll=send)")?.against(RENO),
        vegas("8 connections, Vegas polled per ack", "vegas(poll=ack)")?.against(RENO),
        vegas("8 connections, Vegas polled per round", "vegas(poll=round)")?
            .figure(RENO, PER_ROUND),
        case("8 connections, Vegas outside of TCP", plain_profile(), 8, outside())?.against(RENO),
    ]);
    for rate in RATES {
        cases.extend(at_rate(rate)?);
    }
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// What the Vegas outside knows of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Outside {
    window: u64,
    decided_at: Instant,
    least: Option<Duration>,
}

/// A Vegas that an application keeps for itself: for each message of a segment's size it asks for the connection's information, decides anew if a
/// round trip has passed, and writes only if less than its window is outstanding. It writes the rest when there is room again.
fn outside() -> Feed {
    let known: Rc<RefCell<HashMap<ConnectionId, Outside>>> = Rc::default();
    let write: Write = Box::new(move |stack: &mut Stack, id, now, bytes: &[u8]| {
        let mut known = known.borrow_mut();
        let state = known.entry(id).or_default();
        loop {
            let Some(info) = stack.connection(id).map(|connection| connection.info(now)) else {
                return;
            };
            let mss = u64::from(info.mss);
            state.window = state.window.max(2 * mss);
            state.decide(&info, mss, now);
            if info.unacknowledged as u64 + mss > state.window {
                return;
            }
            let message = bytes.get(..mss as usize).unwrap_or(bytes);
            if !matches!(stack.write(id, now, message), Ok(1..)) {
                return;
            }
        }
    });
    Feed { write, after_acks: true }
}

impl Outside {
    fn decide(&mut self, info: &transom_tcp::ConnectionState, mss: u64, now: Instant) {
        let Some(rtt) = info.last_rtt else { return };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if now < self.decided_at + rtt {
            return;
        }
        self.decided_at = now;
        let queued = self.window / mss * rtt.since_least(least) / rtt.as_nanos().max(1);
        match queued {
            0..2 => self.window += mss,
            5.. => self.window = (self.window - mss).max(2 * mss),
            _ => {}
        }
    }
}

//! The cost of choosing units at run time.
//!
//! The same transfer, by the same source, is compiled twice: once as everybody uses it, with each unit behind a pointer, and once with the units of the
//! profile `classic` in place of the pointers, so that the compiler knows every call (`benches/fixed-units`, `transom_tcp::units`). Both are in this
//! program and take turns. With super-segments the sender decides once for 44 segments, and without them for each; the receiver
//! takes single segments in either case.
//!
//! In a third case the congestion controller and the acknowledgement policy of both ends are exchanged a thousand times a second.

use super::Settings;
use crate::harness::{Bound, Case, Group, Unit};
use crate::pair::{Pair, fixed_buffers};
use crate::transfer::{Bytes, Transfer};
use transom_pair_fixed::{pair as fixed_pair, transfer as fixed};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::profile::Profile;
use transom_tcp::time::{Duration, Instant};

/// Bytes of each socket buffer.
const BUFFER: usize = 65_536;
/// Less than three hundredths of the bulk throughput.
const AIM: Bound = Bound::AtLeast(0.97);

const FIXED: &str = "fixed by the compiler";
const FIXED_SINGLY: &str = "fixed, segment by segment";

/// Builds the group.
///
/// # Errors
/// When one of the connections cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let chunk = settings.chunk;
    let profile = || fixed_pair::fixed_buffers(BUFFER);
    let mut known = fixed::Transfer::new(profile(), chunk)?;
    let mut known_singly = fixed::Transfer::with(profile(), None, chunk)?;
    let mut chosen = Transfer::new(fixed_buffers(BUFFER), chunk)?;
    let mut chosen_singly = Transfer::with(fixed_buffers(BUFFER), None, chunk)?;
    let mut exchanged = Transfer::new(fixed_buffers(BUFFER), chunk)?;
    let mut exchanger = Exchanger::new()?;
    let cases = vec![
        Case::new(FIXED, move |span| known.sample(span, fixed::Bytes::Copied)),
        Case::new("chosen at run time", move |span| chosen.sample(span, Bytes::Copied))
            .figure(FIXED, AIM),
        Case::new("exchanged 1000 times a second", move |span| {
            exchanged.sample_while(span, Bytes::Copied, |pair, now| exchanger.tick(pair, now))
        })
        .figure(FIXED, AIM),
        Case::new(FIXED_SINGLY, move |span| known_singly.sample(span, fixed::Bytes::Copied)),
        Case::new("chosen at run time, segment by segment", move |span| {
            chosen_singly.sample(span, Bytes::Copied)
        })
        .against(FIXED_SINGLY),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Exchanges units each millisecond.
struct Exchanger {
    profiles: [Profile; 2],
    due: Instant,
    turn: usize,
}

impl Exchanger {
    fn new() -> anyhow::Result<Self> {
        let profiles = [compose("reno")?, compose("cubic + immediate-ack")?];
        Ok(Exchanger { profiles, due: Instant::ZERO, turn: 0 })
    }

    fn tick(&mut self, pair: &mut Pair, now: Instant) {
        if now < self.due {
            return;
        }
        self.due = now + Duration::from_millis(1);
        self.turn += 1;
        let profile = &self.profiles[self.turn % self.profiles.len()];
        let ends = [(&mut pair.client, pair.at_client), (&mut pair.server, pair.at_server)];
        for (host, id) in ends {
            // A connection that is gone would show as a stall.
            let _ = host.with_connection(id, now, |connection| {
                connection.set_congestion(now, profile.congestion.clone());
                connection.set_ack_policy(profile.ack)
            });
        }
    }
}

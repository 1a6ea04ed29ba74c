//! The members of a macroflow, and the share of each.

use super::rates::{loss_rate, rate};
use std::collections::BTreeMap;
use transom_tcp::Estimate as RoundTrip;
use transom_tcp::arguments::Fraction;
use transom_tcp::time::{Duration, Instant};

/// The state of a member, as it reports it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// The window without the others, in bytes.
    pub window: u64,
    /// Sent and not acknowledged, in bytes.
    pub outstanding: u64,
    /// The bytes that it could have outstanding now: those outstanding and those that wait to be sent, as far as its peer accepts them.
    pub usable: u64,
    /// Its largest packet, in bytes.
    pub packet: u64,
    /// The smoothed round-trip time and its variation, if it has measured any.
    pub rtt: Option<RoundTrip>,
    /// Bytes delivered, and bytes lost, since it began.
    pub delivered: u64,
    pub lost: u64,
    /// The time at which it stops counting without another report.
    pub expires: Option<Instant>,
}

impl Report {
    /// The window that it has and can use.
    fn entitlement(&self) -> u64 {
        self.window.min(self.usable)
    }

    /// Whether it could use more than it has.
    fn wants_more(&self) -> bool {
        self.usable >= self.window
    }

    fn is_active(&self, now: Instant) -> bool {
        self.entitlement() > 0 && self.expires.is_none_or(|at| now < at)
    }
}

/// A member and its last report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub weight: u32,
    pub report: Report,
}

pub(super) type Members = BTreeMap<u64, Member>;

/// The demand of another member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub weight: u32,
    /// It needs exactly this much; `None`: its whole part.
    pub need: Option<u64>,
}

/// The part of `total` for a member of weight `own` beside `others`, by weight and max-min fair. Members that need less than their part get what
/// they need, and leave the rest to the others.
pub(super) fn part(total: u128, own: u32, others: impl Iterator<Item = Claim> + Clone) -> u64 {
    let all = others.clone().fold(u128::from(own), |sum, claim| sum + u128::from(claim.weight));
    let (mut rest, mut weights) = (total, all);
    // Each pass takes out all that are content with their part of the rest, which leaves larger parts for the others: so there are no more
    // passes than others.
    loop {
        let (mut left, mut over) = (total, all);
        for Claim { weight, need } in others.clone() {
            let weight = u128::from(weight);
            let content = need.map(u128::from);
            let content =
                content.filter(|need| need.saturating_mul(weights) <= weight.saturating_mul(rest));
            if let Some(need) = content {
                left = left.saturating_sub(need);
                over -= weight;
            }
        }
        if over == weights {
            break;
        }
        (rest, weights) = (left, over);
    }
    let part = u128::from(own).saturating_mul(rest) / weights.max(1);
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The part of the sum of all entitlements that `id` gets, in bytes. One packet at least.
pub(super) fn share(members: &Members, id: u64, now: Instant) -> u64 {
    let Some(own) = members.get(&id) else { return u64::MAX };
    let others =
        members.iter().filter(|&(&other, member)| other != id && member.report.is_active(now));
    let reports = others.map(|(_, member)| (member.weight, &member.report));
    // It is not known of `id` what it will have use for in a moment: it may have its whole part, and brings its whole window.
    let total = reports.clone().fold(u128::from(own.report.window), |sum, (_, report)| {
        sum + u128::from(report.entitlement())
    });
    let claims = reports.map(|(weight, report)| Claim {
        weight,
        need: (!report.wants_more()).then(|| report.entitlement()),
    });
    part(total, own.weight, claims).max(own.report.packet)
}

/// A member's estimate of its path (RFC 3124 section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// Bytes per second: its window over the round-trip time.
    pub rate: u64,
    /// The round-trip time: its own, or the mean of the others while it has none.
    pub rtt: RoundTrip,
    /// The share that was lost of everything that the present members sent.
    pub loss: Fraction,
}

pub(super) fn estimate(members: &Members, id: u64, now: Instant) -> Option<Estimate> {
    let own = members.get(&id)?;
    let rtt = own.report.rtt.or_else(|| mean_rtt(members))?;
    let window = own.report.window.min(share(members, id, now));
    Some(Estimate { rate: rate(window, rtt.srtt), rtt, loss: loss(members) })
}

fn mean_rtt(members: &Members) -> Option<RoundTrip> {
    let known: Vec<_> = members.values().filter_map(|member| member.report.rtt).collect();
    let count = u64::try_from(known.len()).ok().filter(|&count| count > 0)?;
    let mean = |of: fn(&RoundTrip) -> Duration| {
        known.iter().fold(Duration::ZERO, |sum, rtt| sum + of(rtt)).over(count)
    };
    Some(RoundTrip { srtt: mean(|rtt| rtt.srtt), rttvar: mean(|rtt| rtt.rttvar) })
}

fn loss(members: &Members) -> Fraction {
    let sum = |of: fn(&Report) -> u64| {
        members.values().fold(0u64, |sum, member| sum.saturating_add(of(&member.report)))
    };
    loss_rate(sum(|report| report.delivered), sum(|report| report.lost))
}

/// The aggregate statistics of a macroflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Macroflow {
    /// Flows that are part of it.
    pub members: usize,
    /// Those that have something outstanding or to send.
    pub active: usize,
    /// Bytes that all of them have outstanding.
    pub outstanding: u64,
    /// The sum that is shared: the windows of all, as far as they have use for them.
    pub window: u64,
    /// The mean of their round-trip times.
    pub rtt: Option<RoundTrip>,
    /// The share that was lost of everything that they sent.
    pub loss: Fraction,
}

impl Macroflow {
    pub(super) fn of(members: &Members, now: Instant) -> Self {
        let active = members.values().filter(|member| member.report.is_active(now));
        let sum = |of: fn(&Report) -> u64| {
            active.clone().fold(0u64, |sum, member| sum.saturating_add(of(&member.report)))
        };
        Macroflow {
            members: members.len(),
            active: active.clone().count(),
            outstanding: sum(|report| report.outstanding),
            window: sum(Report::entitlement),
            rtt: mean_rtt(members),
            loss: loss(members),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members by number, of (weight, window, usable), and what each gets.
    fn shares(members: &[(u32, u64, u64)]) -> Vec<u64> {
        let members: Members = (0u64..)
            .zip(members)
            .map(|(id, &(weight, window, usable))| {
                let report = Report { window, usable, packet: 100, ..Report::default() };
                (id, Member { weight, report })
            })
            .collect();
        members.keys().map(|&id| share(&members, id, Instant::ZERO)).collect()
    }

    const BUSY: u64 = 1 << 30;

    #[test]
    fn those_that_are_busy_get_the_mean() {
        // 4000 + 8000 + 6000, in three.
        assert_eq!(shares(&[(1, 4000, BUSY), (1, 8000, BUSY), (1, 6000, BUSY)]), [6000; 3]);
        // In six parts, of which one gets three and one two.
        let weighted = [(1, 4000, BUSY), (3, 8000, BUSY), (2, 6000, BUSY)];
        assert_eq!(shares(&weighted), [3000, 9000, 6000]);
        assert_eq!(shares(&[(5, 7000, BUSY)]), [7000], "alone it has what it has");
    }

    #[test]
    fn the_unused_share_of_one_goes_to_the_others() {
        // 1000 of 9000 are used by the first; each of the others gets half of the rest. Should the first have more to send, it gets a third
        // of what all three have then.
        let members = [(1, 5000, 1000), (1, 5000, BUSY), (1, 3000, BUSY)];
        assert_eq!(shares(&members), [4333, 4000, 4000]);
        // One after the other: 1000, 3400 and 10 600 are 15 000, in three 5000. Both of the small ones are content.
        let members = [(1, 8000, 1000), (1, 8000, 3400), (1, 10_600, BUSY)];
        assert_eq!(shares(&members)[2], 10_600);
        // 900, 2100 and 3000 are 6000, in three 2000: the second is content with 2100 only when the first has left its rest.
        let members = [(1, 8000, 900), (1, 8000, 2100), (1, 3000, BUSY)];
        assert_eq!(shares(&members)[2], 3000);
        // Who is idle has no part in it, until it begins.
        assert_eq!(shares(&[(2, 5000, 0), (1, 4000, BUSY)]), [6000, 4000]);
    }

    #[test]
    fn a_packet_at_least() {
        assert_eq!(shares(&[(1, 150, BUSY), (1_000_000, 150, BUSY)])[0], 100);
        let huge = [(u32::MAX, u64::MAX, u64::MAX); 3];
        assert_eq!(shares(&huge), [u64::MAX; 3]);
    }

    /// It said that it would tell of something by then.
    #[test]
    fn a_silent_member_does_not_count() {
        let at = Instant::from_millis;
        let report = Report { window: 6000, usable: BUSY, ..Report::default() };
        let silent = Report { expires: Some(at(500)), ..report };
        let members: Members =
            [(0, Member { weight: 1, report }), (1, Member { weight: 2, report: silent })].into();
        assert_eq!([at(499), at(500)].map(|now| share(&members, 0, now)), [4000, 6000]);
        let counted = [at(499), at(500)].map(|now| Macroflow::of(&members, now));
        assert_eq!(counted.map(|all| (all.active, all.window)), [(2, 12_000), (1, 6000)]);
    }
}

//! Limits the rate of requests of each user, and of all users together.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The average interval between two requests of a user.
const INTERVAL: Duration = Duration::from_millis(200);
/// The burst of a user.
const BURST: u32 = 50;
/// The same for all users together.
const TOTAL_INTERVAL: Duration = Duration::from_millis(50);
const TOTAL_BURST: u32 = 200;
/// With more users than this, those who have not asked lately are forgotten.
const USERS: usize = 1024;

/// A leaky bucket for each user, and one for all users.
#[derive(Clone, Debug, Default)]
pub(super) struct RateLimiter {
    /// For each user, the time at which all requests so far would be served at the average rate.
    users: BTreeMap<u32, Instant>,
    all: Option<Instant>,
}

/// One limiter for users whom a rule of the policy names, and one for others: these can be one user with many numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct RateLimiters {
    named: RateLimiter,
    others: RateLimiter,
}

impl RateLimiters {
    pub(super) fn of(&mut self, named: bool) -> &mut RateLimiter {
        if named { &mut self.named } else { &mut self.others }
    }
}

impl RateLimiter {
    /// Whether a user may make a request now. If so, it is counted.
    pub(super) fn allows(&mut self, user: u32, now: Instant) -> bool {
        if self.users.len() > USERS {
            self.users.retain(|_, free_at| *free_at > now);
        }
        let user_free_at = next_free_at(self.users.get(&user).copied(), now, INTERVAL, BURST);
        let all_free_at = next_free_at(self.all, now, TOTAL_INTERVAL, TOTAL_BURST);
        let (Some(user_free_at), Some(all_free_at)) = (user_free_at, all_free_at) else {
            return false;
        };
        self.users.insert(user, user_free_at);
        self.all = Some(all_free_at);
        true
    }
}

/// The bucket's time after one more request; `None` if that exceeds the burst.
fn next_free_at(
    free_at: Option<Instant>,
    now: Instant,
    each: Duration,
    burst: u32,
) -> Option<Instant> {
    let free_at = free_at.map_or(now, |at| at.max(now)) + each;
    (free_at <= now + each * burst).then_some(free_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_burst_and_a_rate() {
        let (mut limiter, start) = (RateLimiter::default(), Instant::now());
        let allowed = |limiter: &mut RateLimiter, user, at| {
            (0..1000).filter(|_| limiter.allows(user, start + at)).count() as u32
        };
        assert_eq!(allowed(&mut limiter, 1, Duration::ZERO), BURST);
        assert_eq!(allowed(&mut limiter, 1, INTERVAL * 3), 3);
        assert_eq!(allowed(&mut limiter, 2, INTERVAL * 3), BURST);
    }

    #[test]
    fn all_users_share_a_limit_and_idle_users_are_forgotten() {
        let (mut limiter, start) = (RateLimiter::default(), Instant::now());
        let allowed = (0..10_000).filter(|user| limiter.allows(*user, start)).count() as u32;
        assert_eq!(allowed, TOTAL_BURST);
        let later = start + Duration::from_secs(3600);
        assert!((0..100).all(|user| limiter.allows(user, later)));
        for user in 0..USERS as u32 + 100 {
            limiter.allows(user, later + TOTAL_INTERVAL * user);
        }
        assert!(limiter.users.len() <= USERS + 1, "{}", limiter.users.len());
    }
}

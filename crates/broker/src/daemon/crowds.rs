//! How often something may be asked for, by one user and by all of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A user gets one each time in the long run.
const INTERVAL: Duration = Duration::from_millis(200);
/// So many at once.
const BURST: u32 = 50;
/// The same for all users together.
const INTERVAL_OF_ALL: Duration = Duration::from_millis(50);
const BURST_OF_ALL: u32 = 200;
/// With more users than this, those who have not asked lately are forgotten.
const USERS: usize = 1024;

/// A bucket that leaks for each user, and one for all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// When what was asked for so far would have been given, one after the other.
    users: BTreeMap<u32, Instant>,
    all: Option<Instant>,
}

impl Pace {
    /// Whether a user gets one more at this moment. If so, it counts.
    pub(super) fn allows(&mut self, user: u32, now: Instant) -> bool {
        if self.users.len() > USERS {
            self.users.retain(|_, free_at| *free_at > now);
        }
        let mine = after(self.users.get(&user).copied(), now, INTERVAL, BURST);
        let all = after(self.all, now, INTERVAL_OF_ALL, BURST_OF_ALL);
        let (Some(mine), Some(all)) = (mine, all) else { return false };
        self.users.insert(user, mine);
        self.all = Some(all);
        true
    }
}

/// When one more would have been given; `None` if that is too far ahead.
fn after(free_at: Option<Instant>, now: Instant, each: Duration, burst: u32) -> Option<Instant> {
    let free_at = free_at.map_or(now, |at| at.max(now)) + each;
    (free_at <= now + each * burst).then_some(free_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_burst_and_a_rate() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let given = |pace: &mut Pace, user, at| {
            (0..1000).filter(|_| pace.allows(user, start + at)).count() as u32
        };
        assert_eq!(given(&mut pace, 1, Duration::ZERO), BURST);
        assert_eq!(given(&mut pace, 1, INTERVAL * 3), 3);
        assert_eq!(given(&mut pace, 2, INTERVAL * 3), BURST);
    }

    #[test]
    fn all_users_together_have_one_too_and_few_are_remembered() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let given = (0..10_000).filter(|user| pace.allows(*user, start)).count() as u32;
        assert_eq!(given, BURST_OF_ALL);
        let later = start + Duration::from_secs(3600);
        assert!((0..100).all(|user| pace.allows(user, later)));
        for user in 0..USERS as u32 + 100 {
            pace.allows(user, later + INTERVAL_OF_ALL * user);
        }
        assert!(pace.users.len() <= USERS + 1, "{}", pace.users.len());
    }
}

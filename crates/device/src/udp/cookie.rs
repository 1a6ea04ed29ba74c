//! Proof that a peer receives datagrams at the address that it names, without storing anything about it.

use std::hash::Hash;
use std::net::SocketAddr;
use std::time::Duration;

use siphasher::sip128::{Hasher128, SipHasher24};

/// A cookie is good for one of these at least, and less than two.
const PERIOD: Duration = Duration::from_secs(60);

/// The secret that cookies are made of.
#[derive(Debug)]
pub(super) struct Cookies {
    key: [u8; 16],
}

impl Cookies {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Cookies { key }
    }

    fn in_period(&self, period: u64, from: SocketAddr, identity: &[u8; 16]) -> [u8; 16] {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        (period, from.ip(), from.port(), identity).hash(&mut hasher);
        hasher.finish128().as_bytes()
    }

    /// A cookie for one who says to be at `from`; `now` is any clock's time that goes forward.
    pub(super) fn make(&self, now: Duration, from: SocketAddr, identity: &[u8; 16]) -> [u8; 16] {
        self.in_period(now.as_secs() / PERIOD.as_secs(), from, identity)
    }

    /// Whether this is a cookie that was sent there lately.
    pub(super) fn is_valid(
        &self,
        now: Duration,
        from: SocketAddr,
        identity: &[u8; 16],
        cookie: &[u8; 16],
    ) -> bool {
        let period = now.as_secs() / PERIOD.as_secs();
        // Who measures how long this takes learns nothing that the next period does not change; the guess is of 128 bits.
        [Some(period), period.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|period| self.in_period(period, from, identity) == *cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_one_place_one_identity_and_a_while() {
        let cookies = Cookies::new([7; 16]);
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (here, now) = (at("192.0.2.1:9"), Duration::from_secs(90));
        let cookie = cookies.make(now, here, &[1; 16]);
        assert!(cookies.is_valid(now, here, &[1; 16], &cookie));
        assert!(cookies.is_valid(now + PERIOD, here, &[1; 16], &cookie));
        assert!(!cookies.is_valid(now + 2 * PERIOD, here, &[1; 16], &cookie));
        assert!(!cookies.is_valid(now, at("192.0.2.1:8"), &[1; 16], &cookie));
        assert!(!cookies.is_valid(now, at("192.0.2.2:9"), &[1; 16], &cookie));
        assert!(!cookies.is_valid(now, here, &[2; 16], &cookie));
        assert!(!Cookies::new([8; 16]).is_valid(now, here, &[1; 16], &cookie));
        assert!(!cookies.is_valid(now, here, &[1; 16], &[0; 16]));
    }
}

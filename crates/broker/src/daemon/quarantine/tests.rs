use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use crate::daemon::layout::HOLD_TIME;

/// What the programs do to the table, and what was sent.
#[derive(Default)]
struct Fake {
    held: RefCell<BTreeMap<Flow, Quarantined>>,
    probes: RefCell<Vec<(Flow, u32, u32)>>,
}

impl Table for Fake {
    fn held(&self, flow: &Flow) -> Option<Quarantined> {
        self.held.borrow().get(flow).copied()
    }

    fn release(&self, flow: &Flow) {
        assert!(self.held.borrow_mut().remove(flow).is_some());
    }

    fn probe(&self, flow: &Flow, nonce: u32, attempt: u32) {
        self.probes.borrow_mut().push((*flow, nonce, attempt));
    }
}

fn flow(number: u32) -> Flow {
    let peer = std::net::Ipv4Addr::from(0xc000_0200 + (number >> 16));
    let own = "198.51.100.1:80".parse().unwrap();
    Flow { own, peer: SocketAddr::new(peer.into(), number as u16) }
}

const NOW: Duration = Duration::from_secs(1000);

fn place(table: &Fake, until: Duration) -> impl FnMut(&Flow) -> bool {
    move |flow| {
        let value = Quarantined { until, nonce: flow.peer.port().into(), user: 5 };
        table.held.borrow_mut().insert(*flow, value);
        true
    }
}

#[test]
fn a_silent_peer_is_probed_until_its_time_wait_has_passed() {
    let (mut quarantine, table) = (Quarantine::default(), Fake::default());
    let left = quarantine.admit(5, [flow(7)], NOW, place(&table, NOW + HOLD_TIME));
    assert!(left.is_empty());
    let mut now = NOW;
    let mut times = Vec::new();
    while let Some(next) = quarantine.run(now, &table) {
        times.extend(table.probes.borrow_mut().drain(..).map(|(_, nonce, attempt)| {
            assert_eq!(nonce, 7);
            (now - NOW, attempt)
        }));
        assert!(table.held(&flow(7)).is_some() || quarantine.len() == 0);
        now = now.max(next);
    }
    let seconds: Vec<_> = times.iter().map(|(time, _)| time.as_secs_f64()).collect();
    assert_eq!(seconds, [0.0, 0.25, 1.0, 3.0, 7.0, 15.0, 31.0, 47.0]);
    assert!(times.iter().map(|(_, attempt)| *attempt).eq(0..8));
    assert!(now - NOW >= HOLD_TIME && table.held.borrow().is_empty());
    assert_eq!(quarantine.len(), 0);
}

#[test]
fn a_peer_that_has_answered_is_left_alone() {
    let (mut quarantine, table) = (Quarantine::default(), Fake::default());
    quarantine.admit(5, [flow(7), flow(8)], NOW, place(&table, NOW + HOLD_TIME));
    quarantine.run(NOW, &table);
    // The programs have seen the one's answer.
    table.held.borrow_mut().remove(&flow(7));
    table.probes.borrow_mut().clear();
    let next = quarantine.run(NOW + PAUSES[1], &table);
    assert!(next.is_some());
    assert_eq!(table.probes.borrow().iter().map(|probe| probe.0).collect::<Vec<_>>(), [flow(8)]);
    assert_eq!(quarantine.len(), 1);
}

#[test]
fn a_peer_that_goes_on_sending_stays() {
    let (mut quarantine, table) = (Quarantine::default(), Fake::default());
    quarantine.admit(5, [flow(7)], NOW, place(&table, NOW + HOLD_TIME));
    let mut now = NOW;
    while now < NOW + Duration::from_secs(300) {
        // As the programs do with each of its segments.
        let later = now + HOLD_TIME;
        table.held.borrow_mut().get_mut(&flow(7)).expect("it is still there").until = later;
        now = quarantine.run(now, &table).expect("it is still probed").max(now);
    }
    while let Some(next) = quarantine.run(now, &table) {
        now = now.max(next);
    }
    assert!(table.held.borrow().is_empty());
}

#[test]
fn all_are_probed_and_probes_keep_their_pauses() {
    const MANY: u32 = 10_000;
    let (mut quarantine, table) = (Quarantine::default(), Fake::default());
    let all = (0..MANY).map(flow);
    assert!(quarantine.admit(5, all, NOW, place(&table, NOW + HOLD_TIME)).is_empty());
    let mut now = NOW;
    let mut first = BTreeMap::new();
    while first.len() < MANY as usize {
        let before = table.probes.borrow().len();
        let next = quarantine.run(now, &table).unwrap();
        let sent = table.probes.borrow().len() - before;
        assert!(sent <= BATCH, "{sent}");
        for (flow, ..) in &table.probes.borrow()[before..] {
            first.entry(*flow).or_insert(now);
        }
        // Asked again at once, it sends nothing.
        let before = table.probes.borrow().len();
        assert_eq!(quarantine.run(now, &table), Some(next));
        assert_eq!(table.probes.borrow().len(), before);
        assert!(next >= now + PAUSE);
        now = next;
    }
    assert!(now - NOW <= PAUSE * (MANY / BATCH as u32) * 2, "{:?}", now - NOW);
}

#[test]
fn a_user_and_all_users_have_a_bound() {
    let (mut quarantine, table) = (Quarantine::default(), Fake::default());
    let until = NOW + HOLD_TIME;
    let many = || (0..MAX_PER_USER as u32 + 10).map(flow);
    for user in 0..10 {
        let left = quarantine.admit(user, many(), NOW, place(&table, until));
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [flow(0).own]);
        assert!(quarantine.len() <= MAX_QUARANTINED);
    }
    assert_eq!(quarantine.len(), MAX_QUARANTINED);
    // What the table does not take is left out too.
    let mut quarantine = Quarantine::default();
    let left = quarantine.admit(1, [flow(1)], NOW, |_| false);
    assert_eq!((left.len(), quarantine.len()), (1, 0));
    // Everything is counted down again.
    quarantine.admit(1, many(), NOW, |_| true);
    let mut now = NOW;
    while let Some(next) = quarantine.run(now, &Fake::default()) {
        now = now.max(next);
    }
    assert!(quarantine.users.is_empty() && quarantine.len() == 0);
}

/// Whatever comes in what order: nothing leaves the table before its time but by an answer, and everything leaves it in the end.
#[test]
fn nothing_leaves_early_and_everything_leaves() {
    for seed in 1..200u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (mut quarantine, table) = (Quarantine::default(), Fake::default());
        // Until when each has to stay.
        let mut model: BTreeMap<Flow, Duration> = BTreeMap::new();
        let mut now = NOW;
        for _ in 0..300 {
            now += Duration::from_millis(random(3_000));
            match random(4) {
                0 => {
                    let (one, until) = (flow(random(20) as u32), now + HOLD_TIME);
                    quarantine.admit(random(3) as u32, [one], now, place(&table, until));
                    model.insert(one, until);
                }
                1 => {
                    let one = flow(random(20) as u32);
                    table.held.borrow_mut().remove(&one);
                    model.remove(&one);
                }
                2 => {
                    let one = flow(random(20) as u32);
                    if let Some(held) = table.held.borrow_mut().get_mut(&one)
                        && held.until > now
                    {
                        held.until = now + HOLD_TIME;
                        model.insert(one, held.until);
                    }
                }
                _ => {
                    quarantine.run(now, &table);
                }
            }
            for (one, until) in &model {
                let there = table.held(one).is_some_and(|held| held.until == *until);
                assert!(there || *until <= now, "seed {seed}: {one:?} has left early");
            }
        }
        while let Some(next) = quarantine.run(now, &table) {
            now = now.max(next);
        }
        assert!(table.held.borrow().is_empty(), "seed {seed}");
        assert!(quarantine.users.is_empty() && quarantine.len() == 0, "seed {seed}");
    }
}

//! An extension cannot change what it sees.

use transom_tcp::extension::{Limits, View};
use transom_tcp::time::Instant;

pub fn greedy(view: &View<'_>, limits: &mut Limits) {
    view.cwnd() += 10 * view.mss(); //~ E0067
    let _connection = view.glance; //~ E0616
    let _connection = view.0; //~ E0616
    view.counters().timeouts = 0; //~ E0594
    view.acks().next().unwrap().acked = 0; //~ E0594
    limits.wake_at(Instant::ZERO);
}

//! A variable takes values of its own kind, and the kinds are those there are.

use transom_tcp::extension::{Limits, Variable, variable};
use transom_tcp::time::Duration;

#[derive(Clone, Copy)]
pub struct Mine(pub u64);

impl variable::Value for Mine { fn number(self) -> u64 { self.0 } } //~ E0277

pub fn confused(limits: &mut Limits) {
    limits.at_most(variable::CWND, Duration::from_secs(1)); //~ E0308
    limits.at_least(variable::RTO, 1_000_000_000u64); //~ E0308
    limits.exactly(variable::SND_UNA, 100u64); //~ E0308
    limits.at_most(variable::DUPTHRESH, 3u64); //~ E0308
    limits.at_most(Variable::Cwnd, 1000u64); //~ E0308
    limits.at_most(variable::Key::<u64>::new(Variable::Rto), 1000u64); //~ E0624
    limits.at_most(variable::CWND, 1000);
    limits.at_least(variable::RTO, Duration::from_secs(1));
}

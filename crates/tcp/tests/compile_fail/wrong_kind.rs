//! A variable takes values of its own kind, and the kinds are those there are.

use transom_tcp::extension::{Limits, Variable, Value};
use transom_tcp::time::Duration;

pub fn confused(limits: &mut Limits) {
    limits.at_most(Value::Cwnd(Duration::from_secs(1))); //~ E0308
    limits.at_least(Value::Rto(1_000_000_000u64)); //~ E0308
    limits.exactly(Value::SndUna(100u64)); //~ E0308
    limits.at_most(Value::Dupthresh(3u64)); //~ E0308
    limits.at_most(Variable::Cwnd, 1000u64); //~ E0061
    limits.at_most(Variable::Cwnd); //~ E0308
    limits.at_most(1000u64); //~ E0308
    limits.at_most(Value::Cwnd(1000));
    limits.at_least(Value::Rto(Duration::from_secs(1)));
}

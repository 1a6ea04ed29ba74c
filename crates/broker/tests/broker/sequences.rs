//! The fuzz target `broker` without a fuzzer: scripts from seeds.
//!
//! `TRANSOM_SEED=n` plays one seed alone, `TRANSOM_SEEDS=n` sets how many are played.

#[path = "../../../../fuzz/sequences/broker.rs"]
mod broker;

use crate::seeds;

#[test]
fn messages_and_rules_from_seeds_do_no_harm() {
    let understood = seeds::play_all(2_000, broker::play);
    assert!(understood > 2_000, "some of the messages are understood: {understood}");
}

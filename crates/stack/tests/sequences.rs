//! The fuzz target `stack` without a fuzzer: scripts from seeds, and those the fuzzer found worth keeping.
//!
//! `TRANSOM_SEED=n` plays one seed alone, `TRANSOM_SEEDS=n` sets how many are played.

#[path = "../../../fuzz/sequences/stack.rs"]
mod stack;

use crate::seeds;

#[test]
fn scripts_from_seeds_do_no_harm() {
    let sent = seeds::play_all(4_000, stack::play);
    assert!(sent > 4_000, "the scripts do something");
}

#[test]
fn scripts_from_the_corpus_do_no_harm() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/stack.hex");
    seeds::play_corpus(corpus, stack::play);
}

//! The fuzz target `extensions` without a fuzzer: scripts from seeds, and those the fuzzer found worth keeping.
//!
//! `TRANSOM_SEED=n` plays one seed alone, `TRANSOM_SEEDS=n` sets how many are played.

#[path = "../../../fuzz/sequences/extensions.rs"]
mod extensions;

use crate::seeds;

#[test]
fn scripts_from_seeds_do_no_harm() {
    let sent = seeds::play_all(3_000, extensions::play);
    assert!(sent > 30_000, "the scripts do something: {sent}");
}

#[test]
fn scripts_from_the_corpus_do_no_harm() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/extensions.hex");
    seeds::play_corpus(corpus, extensions::play);
}

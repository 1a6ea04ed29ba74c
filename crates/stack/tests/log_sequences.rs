//! The fuzz target `log` without a fuzzer: scripts from seeds, and those the fuzzer found worth keeping.
//!
//! `TRANSOM_SEED=n` plays one seed alone, `TRANSOM_SEEDS=n` sets how many are played.

#[path = "../../../fuzz/sequences/log.rs"]
mod log;

use crate::seeds;

#[test]
fn files_from_seeds_do_no_harm() {
    let read = seeds::play_all(5_000, log::play);
    assert!(read > 15_000, "some of what the scripts write can be read: {read}");
}

#[test]
fn files_from_the_corpus_do_no_harm() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/log.hex");
    seeds::play_corpus(corpus, log::play);
}

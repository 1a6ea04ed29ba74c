//! The fuzz target `remote` without a fuzzer: scripts from seeds, and those the fuzzer found worth keeping.
//!
//! `TRANSOM_SEED=n` plays one seed alone, `TRANSOM_SEEDS=n` sets how many are played.

#[path = "../../../fuzz/sequences/remote.rs"]
mod remote;

use crate::seeds;

#[test]
fn messages_from_seeds_do_no_harm() {
    let understood = seeds::play_all(2_000, remote::play);
    assert!(understood > 20_000, "some of what the scripts say is understood: {understood}");
}

#[test]
fn messages_from_the_corpus_do_no_harm() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/remote.hex");
    seeds::play_corpus(corpus, remote::play);
}

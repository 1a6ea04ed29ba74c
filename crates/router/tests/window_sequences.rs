//! The fuzz target `window` without a fuzzer: scripts from seeds, and those the fuzzer found worth keeping.
//!
//! `TRANSOM_SEED=n` plays one seed alone, `TRANSOM_SEEDS=n` sets how many are played.

#[allow(dead_code)] // each target uses its part
#[path = "../../../fuzz/sequences/bytes.rs"]
mod bytes;
#[path = "../../../fuzz/sequences/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/sequences/window.rs"]
mod window;

#[test]
fn packets_from_seeds_come_to_no_harm() {
    let asked = seeds::play_all(10_000, window::play);
    assert!(asked > 20_000, "some windows are rewritten: {asked}");
}

#[test]
fn packets_from_the_corpus_come_to_no_harm() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/window.hex");
    seeds::play_corpus(corpus, window::play);
}

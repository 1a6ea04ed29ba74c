//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-forwarder --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.
//!
//! `flood` is another, as it looks at the memory of the whole program.

mod inject;
mod support;

#[cfg(feature = "bpf")]
mod forged;
mod nfqueue;
mod order;
#[cfg(feature = "bpf")]
#[path = "same/main.rs"]
mod same;
#[cfg(feature = "bpf")]
mod tc;
mod tun;
mod untouched;
mod user;

#[cfg(not(feature = "bpf"))]
#[test]
fn mode_tc() {
    eprintln!(
        "SKIPPED: mode tc (built without the feature `bpf`, which takes libelf-dev and zlib1g-dev)"
    );
}

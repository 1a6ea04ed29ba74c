//! The broker in a network of namespaces, with processes of another user that hold its devices.
//!
//! They are this program itself, started once more (`support/helper.rs`): a broker can be killed only if it is a process.

#[cfg(feature = "daemon")]
mod attacks;
#[cfg(feature = "daemon")]
mod crashes;
#[cfg(feature = "daemon")]
mod delivery;
#[cfg(feature = "daemon")]
mod many_connections;
#[cfg(feature = "daemon")]
mod networks;
#[cfg(feature = "daemon")]
mod quarantine;
#[cfg(feature = "daemon")]
mod requests;
#[cfg(feature = "daemon")]
mod reserve;
#[cfg(feature = "daemon")]
mod scale;
#[cfg(feature = "daemon")]
mod soak;
#[cfg(feature = "daemon")]
mod stacks;
#[cfg(feature = "daemon")]
mod support;
#[cfg(feature = "daemon")]
mod takeover;

#[allow(dead_code)] // each target uses its part
#[path = "../../../../fuzz/sequences/bytes.rs"]
mod bytes;
#[allow(dead_code)] // this one has no corpus
#[path = "../../../../fuzz/sequences/seeds.rs"]
mod seeds;
mod sequences;
mod unit;
#[cfg(feature = "daemon")]
mod victims;

#[cfg(not(feature = "daemon"))]
#[test]
fn the_broker() {
    eprintln!(
        "SKIPPED: the broker (built without the feature `daemon`, which takes libelf-dev and zlib1g-dev)"
    );
}

//! All tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-tcp --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.

#[allow(dead_code)] // each target uses its part
#[path = "../../../fuzz/sequences/bytes.rs"]
mod bytes;
mod common;
#[path = "../../../fuzz/sequences/seeds.rs"]
mod seeds;

mod accurate_ecn;
mod ack_policy;
mod arbitrary;
mod closing;
mod compile_fail;
mod congestion;
mod congestion_properties;
mod congestion_transfer;
mod controls;
mod delivery;
mod digest;
mod duplicates;
mod ecn;
mod exchange;
mod extension_liveness;
mod extension_sequences;
mod extensions;
mod fast_open;
mod go_back_n;
mod halfopen;
mod handshake;
mod held_open;
mod icmp_pmtu;
mod info;
mod keepalive;
mod lossy_path;
mod memory;
mod nagle_sws;
mod partial_path;
mod partial_receiver;
mod partial_sender;
mod path_mtu_probes;
mod paws;
mod persist;
mod prr;
mod rack_tlp;
mod reno_recovery;
mod reset_5961;
mod retransmission;
mod sack_pipe;
mod sack_receiver;
mod sack_sender;
mod self_connect;
mod sequence;
mod sequences;
mod simultaneous_open;
mod through;
mod timer_choices;
mod timewait;
mod told;
mod undo;
mod units_apart;
mod urgent;
mod user_timeout;
mod validation;
mod whole_window;
mod windows;

/// A file that is not named above would be a file of tests that nobody runs.
#[test]
fn every_file_is_run() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let names: Vec<String> =
        sources.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names.iter().filter(|name| *name != "all") {
        assert!(include_str!("all.rs").contains(&format!("\nmod {name};\n")), "{name}");
    }
}

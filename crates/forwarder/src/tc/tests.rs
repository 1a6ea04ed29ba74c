//! The object and its source, and what is counted without looking.

use sha2::{Digest, Sha256};

use super::Counted;

#[test]
fn flows_are_counted_from_the_last_walk_on() {
    let counted = Counted { flows: 3, confirmed: 10 };
    assert_eq!([10, 12, 9].map(|confirmed| counted.now(confirmed, 100)), [3, 5, 3]);
    assert_eq!(counted.now(1000, 4), 4, "no more than there can be");
    assert_eq!(Counted::default().now(7, 100), 7);
}

#[test]
fn the_object_was_compiled_from_the_source() {
    let source: &[u8] = include_bytes!("../../bpf/window.bpf.c");
    let noted = include_str!("../../bpf/window.bpf.sha256");
    let noted: Vec<_> = noted.lines().filter_map(|line| line.split_once("  ")).collect();
    let found = [("window.bpf.c", source), ("window.bpf.o", super::OBJECT)];
    for ((digest, name), (expected, bytes)) in noted.iter().zip(found) {
        let found: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(*name, expected);
        assert_eq!(*digest, found, "{name} has changed since bpf/build.sh ran");
    }
    assert_eq!(noted.len(), found.len(), "{noted:?}");
}

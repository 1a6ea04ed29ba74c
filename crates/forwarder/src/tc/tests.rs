//! The object and its source.

use sha2::{Digest, Sha256};

#[test]
fn the_object_was_compiled_from_the_source() {
    let source = include_bytes!("../../bpf/window.bpf.c");
    let noted = include_str!("../../bpf/window.bpf.sha256");
    let digest: String = Sha256::digest(source).iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = noted.split_whitespace().next();
    assert_eq!(expected, Some(digest.as_str()), "window.bpf.c has changed since bpf/build.sh ran");
}

//! The object and its sources.

#[test]
fn the_object_was_compiled_from_the_sources() {
    transom_testkit::digests::assert_unchanged(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
}

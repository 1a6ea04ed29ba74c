//! The object and its source, and what is counted without looking.

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
    transom_testkit::assert_unchanged(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
}

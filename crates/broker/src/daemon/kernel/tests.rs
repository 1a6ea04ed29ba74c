//! The object and its sources.

#[test]
fn the_object_was_compiled_from_the_sources() {
    transom_testkit::digests::assert_unchanged(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
}

/// A change of the layout takes another number, or a new broker would misunderstand the maps of an old one.
#[test]
fn the_layout_is_the_one_that_has_the_number() {
    let list = include_str!("../../../bpf/tcpk.sha256");
    let digest = |name: &str| {
        let line = list.lines().find(|line| line.ends_with(name)).unwrap();
        line.split_ascii_whitespace().next().unwrap()
    };
    // If the structures or maps in these files have another form now, raise LAYOUT. Then put the new digests here.
    let (types, shared) = (digest("  types.h"), digest("  shared.h"));
    assert_eq!((super::LAYOUT, types, shared), (1, TYPES, SHARED));
}

const TYPES: &str = "c0511c3733c83105442573547e5a66784b3af32e5c9efd42a44f9c3df553f1c4";
const SHARED: &str = "7fe90f2f5634829ce19db951260a7f53563d3abeda6f4f919ce71fe510419c4a";

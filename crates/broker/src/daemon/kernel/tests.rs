//! The object and its sources.

#[test]
fn the_object_was_compiled_from_the_sources() {
    transom_testkit::assert_unchanged(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
}

/// A change of the layout takes another number, or a new broker would misunderstand the maps of an old one.
#[test]
fn a_changed_layout_takes_another_number() {
    let list = include_str!("../../../bpf/tcpk.sha256");
    let digest = |name: &str| {
        let line = list.lines().find(|line| line.ends_with(name)).unwrap();
        line.split_ascii_whitespace().next().unwrap()
    };
    // If the structures or maps in these files have another form now, raise LAYOUT. Then put the new digests here.
    let (types, shared) = (digest("  types.h"), digest("  shared.h"));
    assert_eq!((super::LAYOUT, types, shared), (2, TYPES, SHARED));
}

const TYPES: &str = "c0511c3733c83105442573547e5a66784b3af32e5c9efd42a44f9c3df553f1c4";
const SHARED: &str = "4bea1a0030b41cad3218147cb5c6d98316ecb6157c2eb6d9b23a0a0303d61cae";

/// The sources and the compiler give the object that is checked in, byte for byte.
#[test]
fn compiling_the_sources_again_gives_the_same_object() {
    let version = std::process::Command::new("clang").arg("--version").output();
    let version = version.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    if !version.as_ref().is_ok_and(|text| text.contains("clang version 14.")) {
        eprintln!(
            "SKIPPED: the BPF object was not compiled again; that takes clang 14, llvm and libbpf-dev"
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
    for entry in std::fs::read_dir(sources).unwrap().flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "o") {
            std::fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
        }
    }
    let build = std::process::Command::new(directory.path().join("build.sh")).output().unwrap();
    let said = String::from_utf8_lossy(&build.stderr);
    if said.contains("not found") {
        eprintln!("SKIPPED: the BPF object was not compiled again: {said}");
        return;
    }
    assert!(build.status.success(), "{said}");
    let rebuilt = std::fs::read(directory.path().join("tcpk.bpf.o")).unwrap();
    assert!(rebuilt == super::OBJECT.0, "another object; run bpf/build.sh");
}

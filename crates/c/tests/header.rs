//! The header for C is what the sources say.
//!
//! `TRANSOM_BLESS=1 cargo test -p transom-c header` writes it anew.

use std::path::Path;

/// The files with something for C, in the order in which the header shows it.
const SOURCES: [&str; 4] = ["stacks.rs", "sockets.rs", "transfer.rs", "waiting.rs"];

fn generate(root: &Path) -> String {
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join("src/ffi").join(source));
    }
    let mut header = Vec::new();
    builder.generate().expect("the sources parse").write(&mut header);
    let header = String::from_utf8(header).expect("the header is text");
    // A heading of rustdoc becomes a sentence in C.
    header
        .replace("// # Safety\n", "// What the pointers must be:\n")
        .replace("[`", "")
        .replace("`]", "")
}

#[test]
fn the_header_matches_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("include/transom/transom.h");
    let fresh = generate(root);
    if std::env::var_os("TRANSOM_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("the header can be written");
    }
    let present = std::fs::read_to_string(&path).expect("the header is there");
    let line = present.lines().zip(fresh.lines()).position(|(present, fresh)| present != fresh);
    assert!(
        present == fresh,
        "include/transom/transom.h is not what the sources say, from line {} on; run this test with TRANSOM_BLESS=1",
        line.unwrap_or_else(|| present.lines().count().min(fresh.lines().count())) + 1
    );
}

/// The functions of the sources.
pub(crate) fn functions() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut functions = Vec::new();
    for file in SOURCES {
        let source = std::fs::read_to_string(root.join("src/ffi").join(file)).expect("its text");
        for rest in source.split("extern \"C\" fn ").skip(1) {
            functions.push(rest.split('(').next().expect("a name").to_owned());
        }
    }
    functions
}

#[test]
fn every_function_is_in_the_header_and_in_the_manual() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/transom/transom.h")).expect("its text");
    let manual = std::fs::read_to_string(root.join("man/transom.3")).expect("its text");
    assert!(header.is_ascii());
    let functions = functions();
    for name in &functions {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
        assert!(manual.contains(name.as_str()), "{name} is not in the manual page");
    }
    assert!(functions.len() >= 35, "only {} functions were looked at", functions.len());
}

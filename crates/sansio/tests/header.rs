//! The header for C is what the sources say.
//!
//! `TRANSOM_BLESS=1 cargo test -p transom-sansio --test header` writes it anew.

#[path = "header/constants.rs"]
mod constants;

use std::fmt::Write;
use std::path::Path;
use transom_sansio::options::OPTIONS;

/// The files with something for C, in the order in which the header shows it.
const SOURCES: [&str; 8] = [
    "src/host.rs",
    "../sockets/src/info.rs",
    "src/config.rs",
    "src/ffi.rs",
    "src/ffi/hosts.rs",
    "src/ffi/time.rs",
    "src/ffi/sockets.rs",
    "src/ffi/memory.rs",
];

/// The definitions of Linux' constants, the options last.
fn constants() -> String {
    let mut text = String::from("\n");
    let options = OPTIONS.iter().map(|option| (option.name, option.number.into(), option.about));
    for (name, number, about) in constants::CONSTANTS.iter().copied().chain(options) {
        about.iter().for_each(|line| writeln!(text, "//{line}").expect("a string"));
        writeln!(text, "#define TS_{name} {number}\n").expect("a string");
    }
    text.trim_end_matches('\n').to_owned()
}

fn generate(root: &Path) -> String {
    let mut config =
        cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    config.after_includes = Some(constants());
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join(source));
    }
    let mut header = Vec::new();
    builder.generate().expect("the sources parse").write(&mut header);
    let header = String::from_utf8(header).expect("the header is text");
    // What rustdoc wants as a heading is a sentence in C.
    header.replace("// # Safety\n", "// What the pointers must be:\n")
}

#[test]
fn the_header_is_what_the_sources_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("include/transom_sansio.h");
    let fresh = generate(root);
    if std::env::var_os("TRANSOM_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("the header can be written");
    }
    let present = std::fs::read_to_string(&path).expect("the header is there");
    let line = present.lines().zip(fresh.lines()).position(|(present, fresh)| present != fresh);
    assert!(
        present == fresh,
        "include/transom_sansio.h is not what the sources say, from line {} on; run this test with TRANSOM_BLESS=1",
        line.unwrap_or_else(|| present.lines().count().min(fresh.lines().count())) + 1
    );
}

#[test]
fn every_function_is_in_the_header() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/transom_sansio.h")).expect("its text");
    assert!(header.is_ascii());
    let mut functions = 0;
    for file in std::fs::read_dir(root.join("src/ffi")).expect("the directory") {
        let source = std::fs::read_to_string(file.expect("a file").path()).expect("its text");
        for rest in source.split("extern \"C\" fn ").skip(1) {
            let name = rest.split('(').next().expect("a name");
            functions += 1;
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
        }
    }
    assert!(functions >= 30, "only {functions} functions were looked at");
}

#[test]
fn states_have_the_numbers_that_the_code_gives_them() {
    use transom_tcp::State;
    let states = [
        ("TCP_ESTABLISHED", State::Established),
        ("TCP_SYN_SENT", State::SynSent),
        ("TCP_SYN_RECV", State::SynReceived),
        ("TCP_FIN_WAIT1", State::FinWait1),
        ("TCP_FIN_WAIT2", State::FinWait2),
        ("TCP_TIME_WAIT", State::TimeWait),
        ("TCP_CLOSE", State::Closed),
        ("TCP_CLOSE_WAIT", State::CloseWait),
        ("TCP_LAST_ACK", State::LastAck),
        ("TCP_CLOSING", State::Closing),
    ];
    for (name, state) in states {
        let number =
            constants::CONSTANTS.iter().find(|constant| constant.0 == name).map(|one| one.1);
        assert_eq!(number, Some(state.to_linux().into()), "{name}");
    }
}

//! C programs that use the library as other people's tools would: compiled against the header, with all warnings as errors,
//! and run with the shared library and, the first of them, with the static one.
//!
//! Without a C compiler there is nothing to be tested; the tests then say so, loudly. `CC` names another compiler than `cc`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn compiler() -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let works = Command::new(&compiler)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        eprintln!("SKIPPED: there is no C compiler ({compiler}); the C interface was not tested");
    }
    works.then_some(compiler)
}

/// Where the libraries are: beside this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let directory = test.parent().expect("a directory").to_owned();
    for name in ["libtransom_sansio.so", "libtransom_sansio.a"] {
        assert!(directory.join(name).exists(), "{name} is not beside the test");
    }
    directory
}

enum Link {
    Shared,
    Static,
}

/// Compiles `source` and runs it; it has to end with success within a minute. Returns what it printed.
fn run(compiler: &str, name: &str, source: &Path, link: &Link) -> String {
    let directory = libraries();
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let program = scratch.path().join(name);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut compile = Command::new(compiler);
    compile
        .args([
            "-std=c11",
            "-D_GNU_SOURCE",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
        ])
        .arg("-I")
        .arg(include)
        .arg(source)
        .arg("-o")
        .arg(&program);
    match link {
        Link::Shared => compile.arg(directory.join("libtransom_sansio.so")),
        // What Rust's standard library needs of the system's.
        Link::Static => compile.arg(directory.join("libtransom_sansio.a")).args([
            "-lpthread",
            "-ldl",
            "-lm",
            "-lgcc_s",
            "-lc",
        ]),
    };
    let compiled = compile.output().expect("the compiler runs");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{name} does not compile:\n{said}");

    let mut child = Command::new(&program)
        .env("LD_LIBRARY_PATH", &directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("its state").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it can be ended");
            panic!("{name} did not end within a minute");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name} failed:\n{said}");
    said
}

fn c_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

#[test]
fn packets_made_by_hand() {
    let Some(compiler) = compiler() else { return };
    let said = run(&compiler, "scripted", &c_source("scripted.c"), &Link::Shared);
    assert!(said.contains("all as expected"), "{said}");
    run(&compiler, "scripted-static", &c_source("scripted.c"), &Link::Static);
}

#[test]
fn mistakes_of_programs_are_answered() {
    let Some(compiler) = compiler() else { return };
    let said = run(&compiler, "misuse", &c_source("misuse.c"), &Link::Shared);
    assert!(said.contains("all as expected"), "{said}");
}

#[test]
fn the_program_in_the_readme() {
    let Some(compiler) = compiler() else { return };
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(readme).expect("the README");
    let program = text.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let source = scratch.path().join("readme.c");
    std::fs::write(&source, program.expect("a C program in the README")).expect("a file");
    let said = run(&compiler, "readme", &source, &Link::Shared);
    assert!(said.starts_with("100000 bytes in "), "{said}");
}

#[test]
fn the_header_in_cpp() {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/transom_sansio.h");
    let checked = Command::new(&compiler)
        .args(["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .args(["-fsyntax-only", "-x", "c++"])
        .arg(header)
        .output();
    match checked {
        Ok(checked) => {
            let said = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success(), "{said}");
        }
        Err(error) => eprintln!("SKIPPED: there is no C++ compiler ({compiler}): {error}"),
    }
}

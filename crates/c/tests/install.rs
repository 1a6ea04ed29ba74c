//! The library as a package installs it: in a prefix, found by pkg-config, used by a compiler that knows nothing else.

use crate::support::{c_source, compiler, finish, libraries, root};
use std::path::Path;
use std::process::{Command, Stdio};

fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// The flags that pkg-config gives for the library below `prefix`.
fn flags(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(arguments).arg("transom");
    let said = output(&mut command).expect("pkg-config runs");
    said.split_whitespace().map(ToOwned::to_owned).collect()
}

#[test]
fn pkg_config_finds_the_installed_library() {
    let Some(compiler) = compiler() else { return };
    for tool in ["make", "pkg-config"] {
        if Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_err() {
            eprintln!("SKIPPED: {tool} is not installed; libtransom was not installed for a test");
            return;
        }
    }
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let prefix = scratch.path().join("usr");
    let make = |target: &str| {
        let mut command = Command::new("make");
        command.arg("-s").arg("-C").arg(root()).arg(target);
        command.arg(format!("PREFIX={}", prefix.display()));
        command.arg(format!("BUILT={}", libraries().display()));
        output(&mut command).expect("make runs")
    };
    make("install");
    assert_eq!(flags(&prefix, &["--modversion"]), [env!("CARGO_PKG_VERSION")]);

    for (name, how) in
        [("shared", &["--cflags", "--libs"][..]), ("static", &["--cflags", "--libs", "--static"])]
    {
        let program = scratch.path().join(name);
        let mut compile = Command::new(&compiler);
        compile.args(["-Wall", "-Werror", "-D_GNU_SOURCE"]).arg(c_source("echo.c"));
        compile.arg("-o").arg(&program);
        if name == "static" {
            // Only this library, and not the C library.
            let flags = flags(&prefix, how);
            compile.args(flags.iter().map(|flag| match flag.as_str() {
                "-ltransom" => "-l:libtransom.a",
                other => other,
            }));
        } else {
            compile.args(flags(&prefix, how)).arg("-lpthread");
        }
        output(&mut compile).expect("the compiler runs");
        let mut run = Command::new(&program);
        run.arg("both").stdout(Stdio::piped());
        if name == "shared" {
            run.env("LD_LIBRARY_PATH", prefix.join("lib"));
        }
        let said = finish(run.spawn().expect("the program starts"));
        assert_eq!(said, "1048576 bytes came back\n", "{name}");
    }
    assert!(prefix.join("share/man/man3/transom.3").exists());

    make("uninstall");
    let left = output(Command::new("find").arg(&prefix).args(["-not", "-type", "d"]));
    assert_eq!(left.as_deref(), Some(""));
}

#[test]
fn the_manual_page_is_well_formed() {
    let mut command = Command::new("groff");
    let page = root().join("man/transom.3");
    match command.args(["-ww", "-man", "-Tutf8"]).arg(page).stdin(Stdio::null()).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{said}");
        }
        Err(error) => eprintln!("SKIPPED: the manual page was not formatted: groff: {error}"),
    }
}

#[test]
fn the_headers_compile_as_cpp() {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    for header in ["transom.h", "tcpu.h", "compat.h"] {
        let mut command = Command::new(&compiler);
        command.args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"]);
        command.arg("-I").arg(root().join("include"));
        match command.arg(root().join("include/transom").join(header)).output() {
            Ok(checked) => {
                let said = String::from_utf8_lossy(&checked.stderr);
                assert!(checked.status.success(), "{said}");
            }
            Err(error) => eprintln!("SKIPPED: there is no C++ compiler ({compiler}): {error}"),
        }
    }
}

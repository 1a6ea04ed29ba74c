//! Code that must not compile does not, and for the reason that is meant.
//!
//! Each file in `compile_fail` is a program against the interface of extensions. In it a line with `//~ E0308` is one that must not compile, for
//! an error of that code on that very line (`//~ lifetime` for one about lifetimes, which have several codes or none). Each such line is tried
//! alone; and without any of them the file compiles, so that nothing else in it is what is wrong.
//!
//! Why not the compiler's whole message, as `trybuild` compares it: that is another one with each version of the compiler, and the project
//! goes with the stable one. Codes stay. And why not `compile_fail` in a documentation test alone: there a misspelled name is as good as
//! the error that is meant, as the code after it counts with a nightly compiler only. The library that is there already is used, so that
//! this costs no build.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The libraries of this crate beside the test that runs, the newest first.
fn libraries() -> Vec<PathBuf> {
    let beside = std::env::current_exe().unwrap();
    let files = fs::read_dir(beside.parent().unwrap()).unwrap();
    let mut found: Vec<_> = files
        .map(|file| file.unwrap())
        .filter(|file| {
            let name = file.file_name().into_string().unwrap_or_default();
            name.starts_with("libtransom_tcp-") && name.ends_with(".rlib")
        })
        .map(|file| (file.metadata().unwrap().modified().unwrap(), file.path()))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// The errors in a program: `(line, code and message)`.
fn errors(library: &Path, source: &str, thread: usize) -> Vec<(usize, String)> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("compile_fail_{thread}.rmeta"));
    let compiler = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let mut child = Command::new(compiler)
        .args(["-", "--crate-name=tried", "--crate-type=lib", "--edition=2024", "--emit=metadata"])
        .args(["--allow=warnings", "--error-format=short", "--color=never", "-o"])
        .arg(out)
        .arg(format!("--extern=transom_tcp={}", library.display()))
        .arg(format!("-Ldependency={}", library.parent().unwrap().display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the compiler that built this runs");
    child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // <anon>:7:24: error[E0369]: cannot add `{integer}` to `Effective<u64>`
    let found: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let (place, message) = line.split_once(": error")?;
            let number = place.split(':').nth(1)?.parse().ok()?;
            Some((number, message.to_owned()))
        })
        .collect();
    assert_eq!(output.status.success(), found.is_empty(), "{text}");
    found
}

/// The program with every marked line left empty but `line`.
fn with_only(source: &str, line: Option<usize>) -> String {
    let keep = |(index, text): (usize, &str)| {
        let wanted = !text.contains("//~") || Some(index + 1) == line;
        if wanted { format!("{text}\n") } else { "\n".to_owned() }
    };
    source.lines().enumerate().map(keep).collect()
}

/// What is wrong with a file's expectations, if anything.
fn judge(library: &Path, name: &str, source: &str, thread: usize) -> Vec<String> {
    let marked = source.lines().enumerate().filter_map(|(index, text)| {
        let (_, expected) = text.split_once("//~ ")?;
        Some((index + 1, expected.trim()))
    });
    let mut wrong = Vec::new();
    let mut count = 0;
    for (line, expected) in marked {
        count += 1;
        let found = errors(library, &with_only(source, Some(line)), thread);
        let meant = |(at, message): &(usize, String)| {
            *at == line
                && match expected {
                    "lifetime" => message.contains("lifetime") || message.starts_with("[E0521]"),
                    code => message.starts_with(&format!("[{code}]")),
                }
        };
        if found.is_empty() || !found.iter().all(meant) {
            wrong.push(format!("{name}:{line} should fail with {expected}, but: {found:?}"));
        }
    }
    let rest = errors(library, &with_only(source, None), thread);
    if count == 0 || !rest.is_empty() {
        wrong.push(format!("{name} without its {count} marked lines: {rest:?}"));
    }
    wrong
}

#[test]
fn unsafe_uses_do_not_compile() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/compile_fail");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.file_name().unwrap().display().to_string(), fs::read_to_string(&path)))
        .map(|(name, source)| (name, source.unwrap()))
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{}", files.len());

    // One of another compiler or of other dependencies may lie there as well. A program that uses nothing but what it can says which does not.
    let fits = |library: &PathBuf| {
        let control = "pub fn f(l: &mut transom_tcp::extension::Limits) { l.wake_at(None); }";
        std::panic::catch_unwind(|| errors(library, control, 0).is_empty()).unwrap_or(false)
    };
    let library = libraries().into_iter().find(fits).expect("the library lies beside its tests");

    // Two compilers at a time.
    let halves: [Vec<_>; 2] =
        [0, 1].map(|half| files.iter().skip(half).step_by(2).cloned().collect());
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let library = &library;
        let run = |(thread, half): (usize, &Vec<(String, String)>)| {
            let half = half.clone();
            scope.spawn(move || -> Vec<String> {
                let judged = half.iter().map(|(name, source)| judge(library, name, source, thread));
                judged.flatten().collect()
            })
        };
        let running: Vec<_> = halves.iter().enumerate().map(run).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

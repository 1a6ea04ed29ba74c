//! What the command's tests share.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

/// A command that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// How the files of tables end that runs are read back from, in this build.
pub const TABLE: &str = if cfg!(feature = "parquet") { "parquet" } else { "table" };

pub fn transom() -> PathBuf {
    env!("CARGO_BIN_EXE_transom").into()
}

/// How a command has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ended {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its output, which must come with exit status 0.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.text(), self.stderr);
        self
    }

    #[track_caller]
    pub fn fails_with(self, code: i32, message: &str) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.text(), self.stderr);
        assert!(self.stderr.contains(message), "{message:?} is not in: {}", self.stderr);
        self
    }

    pub fn json(&self) -> serde_json::Value {
        let text = self.text();
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// Runs the command with these arguments.
#[track_caller]
pub fn run<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    let arguments: Vec<String> = arguments.into_iter().map(|a| a.as_ref().to_owned()).collect();
    wait(Command::new(transom()).args(&arguments))
}

/// Runs any program to its end, within bounds.
#[track_caller]
pub fn wait(command: &mut Command) -> Ended {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    finish(child)
}

/// How long a program may take: TRANSOM_PATIENCE in seconds, for tests that are asked to do more than usual.
fn patience() -> Duration {
    let asked = std::env::var("TRANSOM_PATIENCE").ok().and_then(|seconds| seconds.parse().ok());
    asked.map_or(PATIENCE, Duration::from_secs)
}

/// Waits for a program; kills it when it takes too long.
#[track_caller]
pub fn finish(mut child: Child) -> Ended {
    fn drain(source: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut source) = source {
                source.read_to_end(&mut bytes).unwrap();
            }
            bytes
        })
    }
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let deadline = Instant::now() + patience();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() >= deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let stderr = stderr.join().unwrap();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.is_some(), "it did not end in time: {stderr}");
    Ended { code: status.and_then(|s| s.code()), stdout: stdout.join().unwrap(), stderr }
}

/// Whether this system lets us have a network of our own; says so if not.
pub fn lab() -> bool {
    let probe = Command::new(transom())
        .args(["serve", ".", "--run", "true"])
        .output()
        .expect("running the command itself");
    if probe.status.success() {
        return true;
    }
    let Output { stderr, .. } = probe;
    eprintln!("SKIPPED: no network of our own here: {}", String::from_utf8_lossy(&stderr).trim());
    false
}

/// Whether a program is installed; says so if not.
pub fn installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps nginx where ordinary users do not look.
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .any(|directory| directory.join(name).is_file());
    if !found {
        eprintln!("SKIPPED: {name} is not installed");
    }
    found
}

/// Runs a shell script in a network of its own, and gives its output. `apart` are further arguments of `unshare`. The script needs `programs`; `$1` is the
/// command. Its directory is its own, and `prepare` fills that. `None`, and a word about it, where this system cannot: then the script ends with 99.
#[track_caller]
pub fn in_own_network(
    apart: &[&str],
    programs: &[&str],
    prepare: impl FnOnce(&Path),
    script: &str,
) -> Option<String> {
    if !["unshare"].iter().chain(programs).all(|name| installed(name)) {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    prepare(directory.path());
    let mut unshare = Command::new("unshare");
    unshare.arg("--net").args(apart).args(["sh", "-c", script, "sh"]).arg(transom());
    let ended = wait(unshare.current_dir(directory.path()));
    if ended.code == Some(99) || ended.stderr.contains("unshare:") {
        eprintln!("SKIPPED: this system cannot give the script what it needs: {}", ended.stderr);
        return None;
    }
    Some(ended.success().text())
}

/// A file of so many bytes that do not repeat.
pub fn content(path: &Path, bytes: usize) -> String {
    let mut state = bytes as u64;
    let data: Vec<u8> = (0..bytes.div_ceil(8))
        .flat_map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (z ^ z >> 27).to_le_bytes()
        })
        .take(bytes)
        .collect();
    fs::write(path, &data).unwrap();
    sha256(&data)
}

pub fn sha256(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn sha256_of(path: &Path) -> String {
    sha256(&fs::read(path).unwrap())
}

//! A program outside of the workspace needs one dependency.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// A build from nothing takes a minute or two.
const BUILD: Duration = Duration::from_secs(900);
const RUN: Duration = Duration::from_secs(60);

const PROGRAM: &str = r#"
use std::io::{Read, Write};
use std::net::Shutdown;

use transom::device::memory::{MemoryConfig, pair};
use transom::prelude::*;

fn main() -> std::io::Result<()> {
    let (here, there) = pair(&MemoryConfig::default())?;
    let client = Stack::builder().address("10.0.0.1".parse().unwrap(), 24).tcp("cubic + pacing")?.start(here)?;
    let server = Stack::builder().address("10.0.0.2".parse().unwrap(), 24).start(there)?;
    let listener = server.listen("10.0.0.2:7")?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said)?;
        stream.write_all(&said)?;
        stream.shutdown(Shutdown::Write)
    });
    let mut stream = TcpStream::connect_with(&client, "10.0.0.2:7", &ConnectOptions::default())?;
    stream.write_all(b"one dependency")?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    echo.join().unwrap()?;
    println!("{answer}");
    Ok(())
}
"#;

/// Waits for a process for as long as this. Ends it when the time is over.
fn wait(mut child: Child, patience: Duration) -> ExitStatus {
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it took longer than {patience:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The program's directory, beside those that other tests made. A build finds what the one before it compiled.
fn package(root: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("one-dependency");
    fs::create_dir_all(here.join("src")).unwrap();
    let facade = root.join("crates/transom");
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [workspace]\n\n\
         [profile.dev]\ndebug = 0\n\n\
         [dependencies]\ntransom = {{ path = {facade:?} }}\n"
    );
    fs::write(here.join("Cargo.toml"), manifest).unwrap();
    fs::write(here.join("src/main.rs"), PROGRAM).unwrap();
    // The same versions as here, so that nothing is downloaded.
    fs::copy(root.join("Cargo.lock"), here.join("Cargo.lock")).unwrap();
    here
}

#[test]
fn a_program_outside_of_the_workspace_needs_one_dependency() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let here = package(&root);
    let target = here.join("target");
    let build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--offline", "--quiet"])
        .current_dir(&here)
        .env_remove("CARGO_BUILD_TARGET")
        .env("CARGO_TARGET_DIR", &target)
        .spawn()
        .unwrap();
    assert!(wait(build, BUILD).success(), "the program does not build");
    let output = here.join("output");
    let run = Command::new(target.join("debug/outside"))
        .stdout(fs::File::create(&output).unwrap())
        .spawn()
        .unwrap();
    assert!(wait(run, RUN).success(), "the program fails");
    assert_eq!(fs::read_to_string(output).unwrap(), "one dependency\n");
}

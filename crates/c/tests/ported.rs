//! Programs of other people's, built over the library with `transom/compat.h` alone: netcat (client and server), and rinetd, which accepts, connects
//! and copies for many connections in one process. Their sources come from Debian's archive, and are changed nowhere.
//!
//! Where they cannot be fetched there is nothing to be tested; the tests then say so, loudly.

use crate::support::{KERNEL, STACK, SYSTEM_LIBRARIES, compiler, libraries, namespace, root, wait};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use transom_device::namespace::Namespace;

/// A transfer that makes no progress for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that is ended whatever becomes of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command for two minutes at most.
fn run_with_timeout(command: &mut Command) -> Option<Output> {
    let program = command.get_program().to_owned();
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut timeout = Command::new("timeout");
    timeout.arg("120").arg(program).args(arguments);
    if let Some(directory) = command.get_current_dir() {
        timeout.current_dir(directory);
    }
    timeout.stdin(Stdio::null()).output().ok()
}

/// The release of Debian that this is.
fn release() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    value("VERSION_CODENAME").filter(|_| value("ID").as_deref() == Some("debian"))
}

/// One test fetches at a time.
static FETCHING: Mutex<()> = Mutex::new(());

/// The source of a Debian package, unpacked. It is fetched once for a build directory.
fn source(package: &str) -> Option<PathBuf> {
    let skipped = |why: &str| {
        eprintln!(
            "SKIPPED: the source of {package} was not fetched, so it was not built over libtransom: {why}"
        );
        None
    };
    let _fetching = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ported");
    let unpacked = base.join(package);
    if unpacked.is_dir() {
        return Some(unpacked);
    }
    if std::env::var_os("TRANSOM_NO_INSTALL").is_some() {
        return skipped("TRANSOM_NO_INSTALL is set");
    }
    let Some(release) = release() else { return skipped("this is no Debian") };
    for directory in ["lists/partial", "cache/archives/partial", "files"] {
        std::fs::create_dir_all(base.join(directory)).unwrap();
    }
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let list = format!("deb-src [signed-by={keys}] http://deb.debian.org/debian {release} main\n");
    std::fs::write(base.join("sources.list"), list).unwrap();
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        for (option, place) in [
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::State::Lists", "lists"),
            ("Dir::Cache", "cache"),
        ] {
            command.arg("-o").arg(format!("{option}={}", base.join(place).display()));
        }
        command.args(["-o", "Dir::Etc::sourceparts=/dev/null", "-o", "APT::Sandbox::User="]);
        run_with_timeout(command.args(arguments).current_dir(base.join("files")))
            .is_some_and(|output| output.status.success())
    };
    let has_lists = std::fs::read_dir(base.join("lists")).is_ok_and(|files| {
        files.flatten().any(|file| file.file_name().to_string_lossy().ends_with("Sources"))
    });
    if !has_lists && !apt(&["update"]) {
        return skipped("`apt-get update` failed");
    }
    if !apt(&["source", "--download-only", package]) {
        return skipped("`apt-get source` failed");
    }
    let prefix = format!("{package}_");
    let archive = std::fs::read_dir(base.join("files")).unwrap().flatten().find(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        name.starts_with(&prefix) && name.contains(".orig.tar.")
    });
    let Some(archive) = archive else { return skipped("it has no archive of its author's") };
    let fresh = base.join(format!("{package}.new"));
    let _ = std::fs::remove_dir_all(&fresh);
    std::fs::create_dir_all(&fresh).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("xf").arg(archive.path()).arg("--strip-components=1").arg("-C").arg(&fresh);
    if !run_with_timeout(&mut tar).is_some_and(|output| output.status.success()) {
        return skipped("tar failed");
    }
    std::fs::rename(&fresh, &unpacked).unwrap();
    Some(unpacked)
}

/// A program over the library, and the directory that goes with it.
struct Built {
    path: PathBuf,
    _directory: TempDir,
}

fn build(compiler: &str, source: &Path, files: &[&str], options: &[&str]) -> Built {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let mut compile = Command::new(compiler);
    compile.args(["-w", "-O1", "-include", "transom/compat.h", "-I"]).arg(root().join("include"));
    compile.args(options).args(files).arg("-o").arg(&path);
    compile.arg(libraries().join("libtransom.a")).args(SYSTEM_LIBRARIES).arg("-lresolv");
    let compiled = run_with_timeout(compile.current_dir(source)).expect("the compiler runs");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{} does not compile:\n{said}", source.display());
    Built { path, _directory: directory }
}

fn netcat(compiler: &str) -> Option<Built> {
    let source = source("netcat")?;
    Some(build(compiler, &source, &["netcat.c"], &["-DLINUX", "-Dres_init=__res_init"]))
}

fn spawn(namespace: &Namespace, command: &mut Command) -> Running {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    Running(namespace.spawn(command).expect("the program starts"))
}

/// Connects from the kernel as soon as somebody listens.
fn connect(namespace: &Namespace, port: u16) -> TcpStream {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match namespace.run(|| TcpStream::connect((STACK, port))).unwrap() {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return stream;
            }
            Err(error) => assert!(Instant::now() < deadline, "nobody listens: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn bytes(len: u32) -> Vec<u8> {
    (0..len).map(|n| (n % 253) as u8).collect()
}

/// Sends on a stream, and reads as much as was sent.
fn exchange(mut stream: TcpStream, sent: Vec<u8>) -> Vec<u8> {
    let mut reader = stream.try_clone().unwrap();
    let mut back = vec![0; sent.len()];
    let writer = std::thread::spawn(move || stream.write_all(&sent).unwrap());
    reader.read_exact(&mut back).unwrap();
    writer.join().unwrap();
    back
}

#[test]
fn netcat_as_a_client() {
    let (Some(compiler), Some(namespace)) = (compiler(), namespace()) else { return };
    let Some(netcat) = netcat(&compiler) else { return };
    let listener = namespace.run(|| TcpListener::bind("0.0.0.0:7100")).unwrap().unwrap();
    let mut command = Command::new(&netcat.path);
    // -q is Debian's; the author's ends when the server does.
    command.args(["-n", &KERNEL.to_string(), "7100"]).env("TRANSOM_DEVICE", "tun:netcat0");
    let mut client = spawn(&namespace, &mut command);
    let sent = bytes(300_000);
    let mut input = client.0.stdin.take().unwrap();
    input.write_all(b"from netcat").unwrap();
    let (stream, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), STACK);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = [0; 11];
    (&stream).read_exact(&mut got).unwrap();
    assert_eq!(&got, b"from netcat");
    let mut output = client.0.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        output.read_to_end(&mut said).unwrap();
        said
    });
    (&stream).write_all(&sent).unwrap();
    drop(stream);
    let said = reader.join().unwrap();
    assert!(said == sent, "{} bytes were printed", said.len());
    assert!(wait(&mut client.0).is_some_and(|status| status.success()));
}

#[test]
fn netcat_as_a_server() {
    let (Some(compiler), Some(namespace)) = (compiler(), namespace()) else { return };
    let Some(netcat) = netcat(&compiler) else { return };
    let mut command = Command::new(&netcat.path);
    command.args(["-n", "-l", "-p", "7101"]).env("TRANSOM_DEVICE", "tun:netcat1");
    let mut server = spawn(&namespace, &mut command);
    let mut stream = connect(&namespace, 7101);
    let sent = bytes(300_000);
    let mut output = server.0.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        output.read_to_end(&mut said).unwrap();
        said
    });
    let mut input = server.0.stdin.take().unwrap();
    input.write_all(b"from netcat").unwrap();
    let mut got = [0; 11];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"from netcat");
    stream.write_all(&sent).unwrap();
    drop(stream);
    let said = reader.join().unwrap();
    assert!(said == sent, "{} bytes were printed", said.len());
    assert!(wait(&mut server.0).is_some_and(|status| status.success()));
}

#[test]
fn rinetd_with_many_connections() {
    let (Some(compiler), Some(namespace)) = (compiler(), namespace()) else { return };
    let Some(source) = source("rinetd") else { return };
    // The results of its configure script on Linux.
    let options = [
        r#"-DPACKAGE_STRING="rinetd""#,
        r#"-DPACKAGE_BUGREPORT="nobody""#,
        r#"-DPACKAGE_NAME="rinetd""#,
        r#"-DPACKAGE_VERSION="0""#,
        "-DHAVE_SIGACTION",
        "-DHAVE_UNISTD_H",
        "-DHAVE_SYS_TIME_H",
        "-DHAVE_TIME_H",
        "-DHAVE_SOCKLEN_T",
        "-DHAVE_GETOPT_LONG=1",
    ];
    let files = ["match.c", "net.c", "parse.c", "rinetd.c", "getopt.c"];
    let program = build(&compiler, &source.join("src"), &files, &options);

    let listener = namespace.run(|| TcpListener::bind("0.0.0.0:7102")).unwrap().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut stream.try_clone().unwrap(), &mut &stream);
                let _ = stream.shutdown(Shutdown::Write);
            });
        }
    });
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("rinetd.conf");
    std::fs::write(&config, format!("{STACK} 80 {KERNEL} 7102\n")).unwrap();
    let mut command = Command::new(&program.path);
    command.arg("-f").arg("-c").arg(&config).env("TRANSOM_DEVICE", "tun:rinetd0");
    let mut server = spawn(&namespace, &mut command);
    drop(connect(&namespace, 80));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let sent = bytes(50_000);
                    let back = exchange(connect(&namespace, 80), sent.clone());
                    assert!(back == sent, "other bytes came back");
                }
            });
        }
    });
    assert!(server.0.try_wait().unwrap().is_none(), "rinetd has ended");
}

//! Shared by the tests with C programs: the compiler, and programs that are bounded in time.

use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use transom_device::namespace::Namespace;

/// No program takes longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The compiler, or a word about there being none. `CC` names another one than `cc`.
pub(crate) fn compiler() -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let works = Command::new(&compiler)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        eprintln!("SKIPPED: there is no C compiler ({compiler}); libtransom was not tested");
    }
    works.then_some(compiler)
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program in `tests/c`.
pub(crate) fn c_source(name: &str) -> PathBuf {
    root().join("tests/c").join(name)
}

/// Where the libraries are: beside this test.
pub(crate) fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let directory = test.parent().expect("a directory").to_owned();
    for name in ["libtransom.so", "libtransom.a"] {
        assert!(directory.join(name).exists(), "{name} is not beside the test");
    }
    directory
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Shared,
    Static,
}

/// A program that was compiled, and the directory that goes with it.
pub(crate) struct Program {
    pub(crate) directory: TempDir,
    path: PathBuf,
}

/// The system's libraries that Rust's standard library needs.
pub(crate) const SYSTEM_LIBRARIES: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lc"];

impl Program {
    /// Compiles `source` with all warnings as errors.
    pub(crate) fn build(compiler: &str, source: &Path, link: Link) -> Program {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("program");
        let mut compile = Command::new(compiler);
        let strict = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"];
        compile.args(strict).arg("-I").arg(root().join("include")).arg(source);
        compile.arg("-o").arg(&path);
        match link {
            // A soname is what a program looks for, and only installing makes a file of that name.
            Link::Shared => {
                let so = libraries().join("libtransom.so");
                std::os::unix::fs::symlink(so, directory.path().join("libtransom.so.0"))
                    .expect("a link to the library");
                compile.arg(directory.path().join("libtransom.so.0")).arg("-lpthread")
            }
            Link::Static => compile.arg(libraries().join("libtransom.a")).args(SYSTEM_LIBRARIES),
        };
        let compiled = compile.output().expect("the compiler runs");
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{} does not compile:\n{said}", source.display());
        Program { directory, path }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.env("LD_LIBRARY_PATH", self.directory.path());
        command
    }

    /// Runs it with `arguments` to its end, which has to be success. Returns what it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.command();
        let child = command.args(arguments).stdout(Stdio::piped()).spawn();
        finish(child.expect("the program starts"))
    }
}

/// Waits for a program to end, which has to be success. Returns what it printed, if that is kept.
pub(crate) fn finish(mut child: Child) -> String {
    let mut output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        output.iter_mut().for_each(|output| drop(output.read_to_string(&mut said)));
        said
    });
    let status = wait(&mut child);
    let said = reader.join().expect("the reader ends with the program");
    let status =
        status.unwrap_or_else(|| panic!("the program did not end in time; it said:\n{said}"));
    assert!(status.success(), "the program failed ({status}); it said:\n{said}");
    said
}

/// Waits for a program to end. `None`: it did not, and was ended.
pub(crate) fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("its state") {
            return Some(status);
        }
        if Instant::now() > deadline {
            child.kill().expect("it can be ended");
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The kernel's address on the TUN interfaces that stacks make.
pub(crate) const KERNEL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 1));
/// The stack's address there.
pub(crate) const STACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 2));

/// A network namespace where TUN interfaces can be made, or a word about there being none.
pub(crate) fn namespace() -> Option<Namespace> {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => {
            eprintln!("SKIPPED: no network namespace here: {error:?}");
            return None;
        }
    };
    if std::fs::File::open("/dev/net/tun").is_err() {
        eprintln!("SKIPPED: no access to TUN here");
        return None;
    }
    Some(namespace)
}

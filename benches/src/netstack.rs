//! gVisor's netstack on a TUN, as a process: the program in `netstack/`, which Go builds.
//!
//! Its TUN device has no offloads. netstack cuts its own super-segments there (`GVisorGSOEnabled`). Its `GRO` is off: with it, nothing moved over TUN.

use crate::network::{KernelEnd, OTHER, alone};
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The name of the interface, in a namespace of its own.
const INTERFACE: &str = "netstack0";

/// Builds the program, or says why it cannot be built.
fn build() -> anyhow::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("netstack");
    let program = std::env::current_exe()?.with_file_name("transom-benches-netstack");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(&source)
        .output()
        .context("go is not installed")?;
    ensure!(built.status.success(), "go build: {}", String::from_utf8_lossy(&built.stderr).trim());
    Ok(program)
}

/// A host of netstack, and the kernel it talks to.
#[derive(Debug)]
pub struct NetstackPath {
    /// The kernel's end, which other threads use meanwhile.
    pub kernel: Arc<KernelEnd>,
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl NetstackPath {
    /// Builds the program and starts it on a TUN of its own. Its threads run where those of the caller run.
    ///
    /// # Errors
    /// When Go cannot build it, or the system refuses namespaces or TUN devices.
    pub fn new() -> anyhow::Result<Self> {
        let program = build()?;
        let kernel = alone()?;
        let mut command = Command::new(program);
        command.arg(INTERFACE).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = kernel.run(|| command.spawn())?.context("starting netstack")?;
        let (commands, answers) = (child.stdin.take(), child.stdout.take());
        let mut path = NetstackPath {
            kernel: Arc::new(kernel),
            child,
            commands: commands.context("no pipe")?,
            answers: BufReader::new(answers.context("no pipe")?),
        };
        path.answer("ready")?;
        path.kernel.join(INTERFACE, "192.0.2.1/24")?;
        Ok(path)
    }

    /// Netstack's address and a port.
    pub fn at(&self, port: u16) -> SocketAddr {
        (OTHER, port).into()
    }

    fn command(&mut self, words: &str) -> anyhow::Result<()> {
        writeln!(self.commands, "{words}").context("netstack has ended")
    }

    /// The next answer, which begins with this word; the rest of it.
    fn answer(&mut self, word: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        match line.trim_end().split_once(' ').unwrap_or((line.trim_end(), "")) {
            (first, rest) if first == word => Ok(rest.to_owned()),
            _ if line.is_empty() => bail!("netstack has ended: {}", self.child.wait()?),
            _ => bail!("netstack said {:?}", line.trim_end()),
        }
    }

    /// Connects to a port of the kernel, and starts to send `chunk` bytes at a time.
    ///
    /// # Errors
    /// When netstack has ended.
    pub fn start_sending(&mut self, port: u16, chunk: usize, nodelay: bool) -> anyhow::Result<()> {
        self.command(&format!("send {port} {chunk} {}", u8::from(!nodelay)))
    }

    /// Stops sending; how many bytes there were.
    ///
    /// # Errors
    /// When netstack failed.
    pub fn stop_sending(&mut self) -> anyhow::Result<u64> {
        self.command("stop")?;
        Ok(self.answer("sent")?.parse()?)
    }

    /// Listens at a port, and reads `chunk` bytes at a time from the next connection there.
    ///
    /// # Errors
    /// When netstack failed.
    pub fn start_receiving(
        &mut self,
        port: u16,
        chunk: usize,
        span: Duration,
    ) -> anyhow::Result<()> {
        self.command(&format!("receive {port} {chunk} {}", span.as_millis().max(1)))?;
        self.answer("listening").map(drop)
    }

    /// Waits until the rate is known: Gb/s.
    ///
    /// # Errors
    /// When netstack failed, or the stream ended before.
    pub fn rate(&mut self) -> anyhow::Result<f64> {
        Ok(self.answer("rate")?.parse::<f64>()? * 8.0 / 1e9)
    }

    /// Waits for the end of the stream; how many bytes there were.
    ///
    /// # Errors
    /// When netstack failed.
    pub fn received(&mut self) -> anyhow::Result<u64> {
        Ok(self.answer("received")?.parse()?)
    }
}

impl Drop for NetstackPath {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

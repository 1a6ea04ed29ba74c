//! The copy in the background: `rsync` to a server of its own protocol.

use std::fs::{self, File};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::path::Network;
use crate::{Beside, Plan};

/// More than can be copied meanwhile; it takes no room on a disk.
const FILE: u64 = 1 << 30;
const PORT: u16 = 8730;
/// Transom's address, and the kernel's on the same device.
const TRANSOM: &str = "10.9.0.2/24";
const TRANSOM_PEER: &str = "10.9.0.1/24";

/// A copy that goes on.
pub(crate) struct Copying {
    directory: TempDir,
    server: Child,
    client: Option<Child>,
}

impl Copying {
    /// Starts the server, and the copy if there is to be one.
    pub(crate) fn start(plan: &Plan, network: &Network, beside: Beside) -> Result<Copying> {
        let directory = tempfile::tempdir()?;
        let path = directory.path();
        fs::create_dir(path.join("to"))?;
        File::create(path.join("file"))?.set_len(FILE)?;
        let configuration = format!(
            "use chroot = no\nreverse lookup = no\n[to]\npath = {}\nread only = no\n",
            path.join("to").display()
        );
        fs::write(path.join("rsyncd.conf"), configuration)?;
        // As root it wants to change to other users, which a namespace of an ordinary user's does not have.
        let mut server = Command::new("unshare");
        server.args([
            "-U",
            "--map-user=1000",
            "--map-group=1000",
            "rsync",
            "--daemon",
            "--no-detach",
            "--port",
            &PORT.to_string(),
            "--config",
        ]);
        server.arg(path.join("rsyncd.conf")).arg("--log-file").arg(path.join("log"));
        let server = network.receivers.spawn(server.stdin(Stdio::null())).context("no rsync")?;
        let mut copying = Copying { directory, server, client: None };
        copying.wait_for_server(network)?;
        let client = copying.client(plan, network, beside).map(|mut command| {
            network.senders.spawn(command.stdin(Stdio::null()).stderr(Stdio::null()))
        });
        copying.client = client.transpose()?;
        Ok(copying)
    }

    fn wait_for_server(&self, network: &Network) -> Result<()> {
        let address = (network.receiver(), PORT);
        let end = Instant::now() + Duration::from_secs(20);
        while network.senders.run(|| TcpStream::connect(address))?.is_err() {
            if Instant::now() > end {
                bail!("rsync does not listen");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn client(&self, plan: &Plan, network: &Network, beside: Beside) -> Option<Command> {
        let mut command = match beside {
            Beside::Nothing => return None,
            Beside::Nice => {
                let mut command = Command::new(&plan.transom);
                command.args(["exec", "--extension", "nice", "--addr", TRANSOM]);
                command.args(["--peer-addr", TRANSOM_PEER, "--", "rsync"]);
                command
            }
            Beside::Plain | Beside::Limited(_) => Command::new("rsync"),
        };
        if let Beside::Limited(rate) = beside {
            command.arg(format!("--bwlimit={rate}"));
        }
        let server = format!("rsync://{}:{PORT}/to/", network.receiver());
        command.args(["--whole-file", "--inplace"]);
        command.arg(self.directory.path().join("file")).arg(server);
        Some(command)
    }

    /// How much has been received.
    pub(crate) fn received(&self) -> u64 {
        fs::metadata(self.directory.path().join("to/file")).map_or(0, |file| file.len())
    }

    /// Ends it, and waits for the path to be empty.
    pub(crate) fn end(mut self) -> Result<()> {
        for child in self.client.iter_mut().chain([&mut self.server]) {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // It may have ended.
                let _ = kill_process(pid, Signal::TERM);
            }
            child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(500));
        Ok(())
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        for child in self.client.iter_mut().chain([&mut self.server]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

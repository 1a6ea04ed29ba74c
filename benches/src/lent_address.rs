//! A host whose address a broker lends to processes, and its neighbour.
//!
//! The broker is a process of its own, in the host's network namespace, with a BPF file system of its own. Both go when this program ends.

use crate::network::{KernelEnd, Veth};
use crate::roles;
use anyhow::{Context, bail, ensure};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use transom_broker::Policy;
use transom_broker::client::{self, BindOptions, Lease, Wish, bind};
use transom_broker::daemon::Daemon;
use transom_device::tun::Tun;
use transom_device::{Device, RxPacket};
use transom_net::{Profile, Stack};

const POLICY: &str = "uplinks = [\"veth0\"]
[[allow]]
user = 0
ports = \"1-65535\"
devices = 4000
most-ports = 60000
";

/// The broker is there within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// The host is [`Veth::other`], and its neighbour [`Veth::kernel`].
#[derive(Debug)]
pub struct LentHost {
    /// The wire between the two.
    pub veth: Veth,
    broker: Child,
    directory: TempDir,
}

impl LentHost {
    /// Makes both, and starts the broker.
    ///
    /// # Errors
    /// When the system refuses, for example since this is not root.
    pub fn new() -> anyhow::Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "the broker takes root's rights");
        let veth = Veth::new()?;
        let directory = tempfile::tempdir()?;
        let what = directory.path().display().to_string();
        let broker = veth.other.run(|| roles::command("broker", &what)?.spawn())??;
        let mut host = LentHost { veth, broker, directory };
        let end = Instant::now() + PATIENCE;
        while client::list(host.socket()).is_err() {
            if let Some(status) = host.broker.try_wait()? {
                bail!("the broker has ended: {status}");
            }
            ensure!(Instant::now() < end, "the broker does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(host)
    }

    /// Where the broker listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("broker.sock")
    }

    /// The kernel that has the address too.
    pub fn end(&self) -> &KernelEnd {
        &self.veth.other
    }

    /// Borrows a device.
    ///
    /// # Errors
    /// The broker's refusal.
    pub fn lease(&self) -> anyhow::Result<Lease> {
        Ok(Lease::connect(self.socket(), &Wish { name: "benches".into(), queues: 1 })?)
    }

    /// Starts Transom on a device of the broker's.
    ///
    /// # Errors
    /// The broker's refusal.
    pub fn stack(&self, profile: Profile, busy_poll: Duration) -> anyhow::Result<Stack> {
        let lease = self.lease()?;
        let builder = Stack::builder().profile(profile).busy_poll(busy_poll);
        self.end().run(|| builder.start_leased(lease))?.context("starting Transom")
    }

    /// A device with a port, without any TCP.
    ///
    /// # Errors
    /// The broker's refusal.
    pub fn bare(&self, at: SocketAddr) -> anyhow::Result<BareLease> {
        let mut lease = self.lease()?;
        let socket = self.end().run(|| bind(at, &BindOptions::default()))??;
        lease.add_port(&socket)?;
        BareLease::new(lease, vec![socket])
    }

    /// A process that holds a port, and counts the packets that come to it.
    ///
    /// # Errors
    /// The system's.
    pub fn holder(&self, at: SocketAddr) -> anyhow::Result<Holder> {
        let what = format!("{at} {}", self.socket().display());
        let start = || roles::command("holder", &what)?.stdout(Stdio::piped()).spawn();
        let mut child = self.end().run(start)??;
        let said = child.stdout.take().context("it has no output")?;
        let mut holder = Holder { child, said: BufReader::new(said) };
        ensure!(holder.line()? == "ready", "the holder of {at} did not begin");
        Ok(holder)
    }
}

impl Drop for LentHost {
    fn drop(&mut self) {
        let _ = client::stop(self.socket());
        let _ = self.broker.kill();
        let _ = self.broker.wait();
    }
}

/// A device and the ports that belong to it.
#[derive(Debug)]
pub struct BareLease {
    /// What is read from, and written to.
    pub device: Tun,
    _lease: Lease,
    _sockets: Vec<OwnedFd>,
}

impl BareLease {
    fn new(mut lease: Lease, sockets: Vec<OwnedFd>) -> anyhow::Result<Self> {
        let (index, mtu) = (lease.opened().index, lease.opened().host.mtu);
        let descriptor = lease.take_descriptors().pop().context("a descriptor")?;
        let device = Tun::from_descriptor(descriptor, index, mtu)?;
        Ok(BareLease { device, _lease: lease, _sockets: sockets })
    }
}

/// A process that holds a port.
#[derive(Debug)]
pub struct Holder {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Holder {
    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Has it end, and says how many segments came for its own port, and how many others.
    ///
    /// # Errors
    /// When it has failed.
    pub fn counts(mut self) -> anyhow::Result<(u64, u64)> {
        drop(self.child.stdin.take());
        let line = self.line()?;
        let counts = line.split_once(' ').context("two numbers are expected")?;
        Ok((counts.0.parse()?, counts.1.parse()?))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The broker's process. `what` is a directory of its own.
///
/// # Errors
/// What is missing.
#[allow(unsafe_code)]
pub fn broker(what: &str) -> anyhow::Result<()> {
    let directory = Path::new(what);
    // SAFETY: the table of descriptors stays shared; this thread's view of the file system is what is wanted.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let pins = directory.join("bpf");
    std::fs::create_dir(&pins)?;
    mount("bpf", &pins, "bpf", MountFlags::empty(), None)?;
    let mut policy = POLICY.parse::<Policy>()?;
    policy.audit = Some(directory.join("audit.log"));
    Daemon::start(policy, &directory.join("broker.sock"), &pins.join("transom"))?.run()?;
    Ok(())
}

/// A holder's process. `what` is the address, and the broker's socket.
///
/// # Errors
/// The broker's refusal.
pub fn hold(what: &str) -> anyhow::Result<()> {
    let (at, socket) = what.split_once(' ').context("an address and a socket")?;
    let at: SocketAddr = at.parse()?;
    let mut lease = Lease::connect(socket, &Wish::default())?;
    let bound = bind(at, &BindOptions::default())?;
    lease.add_port(&bound)?;
    let mut bare = BareLease::new(lease, vec![bound])?;
    println!("ready");
    std::io::stdout().flush()?;
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        let _ = tell.send(());
    });
    let (mut own, mut others) = (0u64, 0u64);
    loop {
        // Once more after the word, so that nothing is left.
        let last = told.try_recv().is_ok();
        while let Ok(packet) = bare.device.recv() {
            match is_for(&packet, at.port()) {
                true => own += 1,
                false => others += 1,
            }
            bare.device.recycle(packet.buffer);
        }
        if last {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{own} {others}");
    Ok(())
}

/// Whether that is TCP over IPv4 without options, for this port.
pub fn is_for(packet: &RxPacket, port: u16) -> bool {
    let bytes = packet.bytes();
    bytes.first() == Some(&0x45)
        && bytes.get(9) == Some(&6)
        && bytes.get(22..24) == Some(&port.to_be_bytes())
}

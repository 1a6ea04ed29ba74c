//! A host with an uplink, its neighbour, a broker, and processes.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;
use tempfile::TempDir;
use transom_broker::client;
use transom_broker::protocol::{LeaseStatus, Status};
use transom_device::interface::IpPrefix;
use transom_device::namespace::Namespace;

pub(crate) mod frames;
pub(crate) mod helper;
pub(crate) mod holder;
pub(crate) mod many_users;
pub(crate) mod path;
pub(crate) mod tun;
pub(crate) mod wire;

pub(crate) use helper::BrokerProcess;
pub(crate) use holder::{Device, Holder};
pub(crate) use many_users::Crowd;

/// The uplink's addresses.
pub(crate) const HOST4: &str = "192.0.2.1";
pub(crate) const HOST6: &str = "2001:db8::1";
/// The neighbour's.
pub(crate) const PEER4: &str = "192.0.2.2";
pub(crate) const PEER6: &str = "2001:db8::2";
/// An ordinary user.
pub(crate) const NOBODY: u32 = 65_534;
/// Another one.
pub(crate) const SOMEBODY: u32 = 65_533;
/// An expected event happens within this time, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a broker, and a process of an ordinary user that opens a device.
pub(crate) fn start_with_device(net: &Net, rules: &str) -> (BrokerProcess, Holder, Device) {
    let broker = BrokerProcess::start(net, rules);
    let holder = Holder::start(net, NOBODY);
    let device = holder.open().unwrap();
    (broker, holder, device)
}

pub(crate) fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

/// A host and its neighbour.
pub(crate) struct Net {
    pub(crate) host: Namespace,
    pub(crate) peer: Namespace,
    pub(crate) directory: TempDir,
    /// The uplinks of the policy file.
    pub(crate) uplinks: Vec<String>,
    /// What is between the two, if packets are to take time.
    pub(crate) path: Option<path::Path>,
}

impl Net {
    /// `None`, and a word about it, where the system does not let us.
    pub(crate) fn new() -> Option<Self> {
        let net = Self::unjoined()?;
        net.join("eth0", [HOST4, HOST6], [PEER4, PEER6]);
        Some(net)
    }

    /// The same, with a path between the two on which each packet takes this long.
    pub(crate) fn with_delay(delay: Duration) -> Option<Self> {
        let mut net = Self::unjoined()?;
        net.path = Some(path::Path::join(&net, delay));
        net.set_addresses("eth0", [HOST4, HOST6], [PEER4, PEER6]);
        Some(net)
    }

    fn unjoined() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: the broker takes root's rights");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        own_bpf_file_system(directory.path().join("bpf"));
        let (host, peer) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        Some(Net { host, peer, directory, uplinks: vec!["eth0".into()], path: None })
    }

    /// Joins the two by a pair of interfaces of this name.
    pub(crate) fn join(&self, name: &str, host: [&str; 2], peer: [&str; 2]) {
        self.host.add_veth(name, &self.peer, name).unwrap();
        self.set_addresses(name, host, peer);
    }

    fn set_addresses(&self, name: &str, host: [&str; 2], peer: [&str; 2]) {
        for (namespace, addresses) in [(&self.host, host), (&self.peer, peer)] {
            let mut interfaces = namespace.interfaces();
            interfaces.set_up(name, true).unwrap();
            for address in addresses {
                let prefix: IpPrefix = match address.contains(':') {
                    true => format!("{address}/64").parse().unwrap(),
                    false => format!("{address}/24").parse().unwrap(),
                };
                interfaces.add_address(name, prefix).unwrap();
            }
        }
        for (namespace, addresses) in [(&self.host, host), (&self.peer, peer)] {
            for address in addresses {
                let address: IpAddr = address.parse().unwrap();
                assert!(namespace.interfaces().wait_until_local(address, PATIENCE).unwrap());
            }
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("broker.sock")
    }

    pub(crate) fn pins(&self) -> PathBuf {
        self.directory.path().join("bpf").join("transom")
    }

    /// Everything as root sees it.
    pub(crate) fn status(&self) -> Status {
        client::list(self.socket()).unwrap()
    }

    pub(crate) fn lease(&self, device: &str) -> LeaseStatus {
        let found = self.status().leases.into_iter().find(|lease| lease.device == device);
        found.expect("the lease")
    }

    /// How many packets the guard has dropped for a reason.
    pub(crate) fn drops(&self, reason: &str) -> u64 {
        self.status().guard.iter().find(|count| count.name == reason).unwrap().count
    }

    /// How often demux has done something.
    pub(crate) fn demuxed(&self, counter: &str) -> u64 {
        self.status().demux.iter().find(|count| count.name == counter).unwrap().count
    }

    /// Connects with the neighbour's kernel.
    pub(crate) fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        let stream = self.peer.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Ok(stream)
    }

    /// The names of the host's interfaces.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        self.host.interfaces().all().unwrap().into_iter().map(|link| link.name).collect()
    }

    /// A server of the kernel's on the host, which sends everything back.
    pub(crate) fn kernel_echo(&self, at: SocketAddr) {
        let listener = self.host.run(|| TcpListener::bind(at)).unwrap().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || echo(stream));
            }
        });
    }
}

/// A mount namespace of the thread's own, and in it a BPF file system that goes with the process.
fn own_bpf_file_system(path: PathBuf) {
    // SAFETY: the descriptor table stays shared; the thread's own view of the file system is what is wanted.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
    let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", all).unwrap();
    std::fs::create_dir(&path).unwrap();
    rustix::mount::mount("bpf", &path, "bpf", MountFlags::empty(), None).unwrap();
}

/// Sends everything back.
pub(crate) fn echo(mut stream: impl Read + Write) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length) = stream.read(&mut buffer) {
        if length == 0 || stream.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

/// Whether all bytes that are sent come back.
pub(crate) fn echoes(stream: &mut TcpStream, bytes: usize) -> bool {
    let sent: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = std::thread::spawn(move || writer.write_all(&copy));
    let mut received = vec![0; bytes];
    let read = stream.read_exact(&mut received);
    let written = writing.join().unwrap();
    read.is_ok() && written.is_ok() && received == sent
}

//! What the tests against the kernel's TCP share: a network namespace with the kernel on one side of a TUN interface and
//! Transom on the other, and transfers whose every byte is accounted for.
#![allow(dead_code, unreachable_pub)]

use std::io::{self, Read, Write};
use std::net::{self, IpAddr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};
use transom_device::Device;
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunBuilder, TunError, TunOffload};
use transom_lab::{Emulated, PathConfig, PathMonitor};
use transom_net::{ConnectionState, Profile, Stack};

/// A transfer that makes no progress for so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Which IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V4,
    V6,
}

/// Who opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Transom connects to the kernel.
    Client,
    /// The kernel connects to Transom.
    Server,
}

pub const VERSIONS: [Version; 2] = [Version::V4, Version::V6];
pub const ROLES: [Role; 2] = [Role::Client, Role::Server];

/// The kernel's address in every lab, and Transom's: documentation addresses (RFC 5737, RFC 3849), in namespaces of our own.
pub fn kernel_address(version: Version) -> IpAddr {
    match version {
        Version::V4 => [192, 0, 2, 1].into(),
        Version::V6 => "2001:db8::1".parse().unwrap(),
    }
}

pub fn transom_address(version: Version) -> IpAddr {
    match version {
        Version::V4 => [192, 0, 2, 2].into(),
        Version::V6 => "2001:db8::2".parse().unwrap(),
    }
}

/// The kernel and Transom, in a network of their own.
pub struct Lab {
    pub namespace: Namespace,
    pub stack: Stack,
    pub monitor: Option<PathMonitor>,
    next_port: AtomicU16,
}

/// A TUN interface in a new namespace, or `None` and a word about it where the system refuses.
pub fn tun(offload: TunOffload) -> Option<(Namespace, Tun)> {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => {
            eprintln!(
                "SKIPPED: no network namespace here: {error:?} (try `unshare --user --map-root-user`)"
            );
            return None;
        }
    };
    let builder: TunBuilder = Tun::builder()
        .offload(offload)
        // No drops on the kernel's side of a path that is meant to be lossless.
        .queue_len(100_000)
        .address("192.0.2.1/24".parse().unwrap())
        .address("2001:db8::1/64".parse().unwrap());
    match namespace.run(|| builder.open()).expect("entering a namespace of our own") {
        Ok(tun) => Some((namespace, tun)),
        Err(TunError::Open(error)) => {
            eprintln!("SKIPPED: no access to TUN here: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

pub fn start(device: impl Device + 'static, profile: Profile) -> Stack {
    Stack::builder()
        .profile(profile)
        .address(transom_address(Version::V4), 24)
        .address(transom_address(Version::V6), 64)
        .start(device)
        .expect("a stack on a device of our own")
}

impl Lab {
    /// The two next to each other.
    pub fn direct(offload: TunOffload) -> Option<Lab> {
        let (namespace, tun) = tun(offload)?;
        Some(Lab::new(namespace, start(tun, Profile::classic()), None))
    }

    /// The two with a path between them.
    pub fn behind(path: &PathConfig) -> Option<Lab> {
        let (namespace, tun) = tun(TunOffload::Segmentation)?;
        let device = Emulated::new(tun, path).unwrap();
        let monitor = device.monitor();
        Some(Lab::new(namespace, start(device, Profile::classic()), Some(monitor)))
    }

    /// The same with this profile, and with the kernel's `net.ipv4.tcp_ecn`: 0 for no ECN, 1 to offer it and agree to it.
    pub fn with(path: &PathConfig, profile: Profile, kernel_ecn: u8) -> Option<Lab> {
        let (namespace, tun) = tun(TunOffload::Segmentation)?;
        set_kernel_ecn(&namespace, kernel_ecn);
        let device = Emulated::new(tun, path).unwrap();
        let monitor = device.monitor();
        Some(Lab::new(namespace, start(device, profile), Some(monitor)))
    }

    pub fn new(namespace: Namespace, stack: Stack, monitor: Option<PathMonitor>) -> Lab {
        let lab = Lab { namespace, stack, monitor, next_port: AtomicU16::new(5000) };
        // The kernel ignores IPv6 on an interface for a moment after it is up, and the SYN would be lost. Once a connection
        // is there, it does not any more.
        drop(lab.connect(Version::V6, Role::Client));
        lab
    }

    /// A new connection: Transom's end and the kernel's.
    pub fn connect(
        &self,
        version: Version,
        role: Role,
    ) -> (transom_net::TcpStream, net::TcpStream) {
        let port = self.next_port.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = match role {
            Role::Client => {
                let at = SocketAddr::new(kernel_address(version), port);
                let listener = self.namespace.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
                let ours = self.stack.connect(at).expect("connecting to the kernel");
                (ours, listener.accept().unwrap().0)
            }
            Role::Server => {
                let at = SocketAddr::new(transom_address(version), port);
                let listener = self.stack.listen(at).unwrap();
                thread::scope(|scope| {
                    let kernel = scope.spawn(|| {
                        self.namespace.run(|| net::TcpStream::connect(at)).unwrap().unwrap()
                    });
                    let ours = listener.accept().expect("accepting from the kernel").0;
                    (ours, kernel.join().unwrap())
                })
            }
        };
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        ours.set_write_timeout(Some(PATIENCE)).unwrap();
        theirs.set_read_timeout(Some(PATIENCE)).unwrap();
        theirs.set_write_timeout(Some(PATIENCE)).unwrap();
        (ours, theirs)
    }
}

/// Whether the kernel in this namespace offers ECN (1) or has none (0).
pub fn set_kernel_ecn(namespace: &Namespace, value: u8) {
    let write = || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", value.to_string());
    namespace.run(write).unwrap().expect("a setting of a namespace of our own");
}

/// A stream of bytes without repetitions that could hide a shift: SplitMix64 from a seed.
pub struct Content {
    state: u64,
    left: u64,
}

impl Content {
    pub fn new(seed: u64, bytes: u64) -> Self {
        Content { state: seed, left: bytes }
    }

    /// Fills `piece` and returns how much of it is content.
    fn fill(&mut self, piece: &mut [u8]) -> usize {
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece.len());
        for chunk in piece[..length].chunks_mut(8) {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z ^= z >> 27;
            chunk.copy_from_slice(&z.to_le_bytes()[..chunk.len()]);
        }
        self.left -= length as u64;
        length
    }
}

/// How much, and the SHA-256 of it.
pub type Tally = (u64, [u8; 32]);

/// Writes the content of a seed.
pub fn send(mut writer: impl Write, seed: u64, bytes: u64) -> io::Result<Tally> {
    let mut content = Content::new(seed, bytes);
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 128 * 1024];
    loop {
        let length = content.fill(&mut piece);
        if length == 0 {
            return Ok((bytes, hasher.finalize().into()));
        }
        hasher.update(&piece[..length]);
        writer.write_all(&piece[..length])?;
    }
}

/// Reads to the end.
pub fn receive(mut reader: impl Read) -> io::Result<Tally> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 128 * 1024];
    let mut bytes = 0;
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok((bytes, hasher.finalize().into())),
            length => {
                hasher.update(&piece[..length]);
                bytes += length as u64;
            }
        }
    }
}

/// Sends `bytes` from Transom to the kernel and as many back, one direction after the other or both at once, and
/// compares what was sent with what arrived. Returns the final state of Transom's end.
pub fn both_ways(
    lab: &Lab,
    version: Version,
    role: Role,
    bytes: u64,
    at_once: bool,
    seed: u64,
) -> ConnectionState {
    let (ours, theirs) = lab.connect(version, role);
    let what = format!("{version:?} {role:?} {bytes} bytes, seed {seed}");
    let up = || {
        let sent = send(&ours, seed, bytes).unwrap_or_else(|e| panic!("{what}: sending: {e}"));
        ours.shutdown(Shutdown::Write).unwrap();
        sent
    };
    let down = || {
        let sent = send(&theirs, !seed, bytes)
            .unwrap_or_else(|e| panic!("{what}: the kernel sending: {e}"));
        theirs.shutdown(Shutdown::Write).unwrap();
        sent
    };
    let up_received =
        || receive(&theirs).unwrap_or_else(|e| panic!("{what}: the kernel receiving: {e}"));
    let down_received = || receive(&ours).unwrap_or_else(|e| panic!("{what}: receiving: {e}"));
    if at_once {
        thread::scope(|scope| {
            let up = scope.spawn(up);
            let down = scope.spawn(down);
            let up_received = scope.spawn(up_received);
            assert_eq!(down_received(), down.join().unwrap(), "{what}: kernel to Transom");
            assert_eq!(up_received.join().unwrap(), up.join().unwrap(), "{what}: to the kernel");
        });
    } else {
        thread::scope(|scope| {
            let up_received = scope.spawn(up_received);
            let sent = up();
            assert_eq!(up_received.join().unwrap(), sent, "{what}: to the kernel");
            let down = scope.spawn(down);
            assert_eq!(down_received(), down.join().unwrap(), "{what}: kernel to Transom");
        });
    }
    ours.info().unwrap_or_else(|_| panic!("{what}: no information"))
}

//! Where packets go: the options that all commands share, and the host they result in.
//!
//! There are three ways. With a TUN interface, Transom is another host next to the machine it runs on, and the
//! kernel's end of the interface is its neighbour; making one takes privileges, using one that belongs to the user
//! does not. With `--lab` the interface lies in a network namespace of the command's own, which every user may
//! have on most systems; nothing outside can see it, so `--run` starts a program inside. With `--side kernel` the
//! command uses the kernel's own sockets, for comparison and as the other end of a test.

mod capture;
mod cleanup;
mod profile;
mod program;
mod watching;

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use transom_device::capture::Tapped;
use transom_device::interface::{Interfaces, IpPrefix};
use transom_device::namespace::{Namespace, enter_user_namespace};
use transom_device::tun::{Tun, TunError, TunOffload};
use transom_net::Stack;

use crate::socket::Host;

pub(crate) use capture::CaptureFile;
pub(crate) use cleanup::Cleanup;
pub(crate) use profile::ProfileArgs;
pub(crate) use program::Program;
use watching::Watching;

/// Whose TCP is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// Transom's, in this process.
    Transom,
    /// The operating system's.
    Kernel,
}

/// The options that say where packets go, and with what TCP.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Network options")]
pub(crate) struct NetworkArgs {
    /// The TUN interface to use. It is created (as root) unless it exists.
    ///
    /// To make one for an ordinary user, root runs once: `ip tuntap add dev transom0 mode tun user USER vnet_hdr`,
    /// `ip addr add 10.9.0.1/24 dev transom0` and `ip link set transom0 up`.
    #[arg(long, value_name = "NAME", default_value = "transom0")]
    tun: String,

    /// Transom's own address and its network; repeat it for IPv6.
    #[arg(long, value_name = "ADDRESS/LENGTH", default_value = "10.9.0.2/24")]
    addr: Vec<IpPrefix>,

    /// The kernel's address on the interface; repeat it for IPv6. Not for an interface that exists.
    #[arg(long, value_name = "ADDRESS/LENGTH", default_value = "10.9.0.1/24")]
    peer_addr: Vec<IpPrefix>,

    /// Work in a network namespace of the command's own, which takes no privileges on most systems.
    ///
    /// Only programs started with --run are in that namespace and can reach Transom.
    #[arg(long, visible_alias = "in-namespace")]
    lab: bool,

    /// Run a program in the lab's network (implies --lab); everything that follows is its command line.
    ///
    /// A command that serves ends when the program does, with its exit status. For a command that connects, the program is the server. The command
    /// starts it first, waits until it accepts the connection, and ends it afterwards. The program finds Transom's address in TRANSOM_ADDR and its
    /// own in TRANSOM_PEER_ADDR.
    #[arg(
        long,
        value_name = "PROGRAM",
        num_args = 1..,
        allow_hyphen_values = true,
        conflicts_with = "side"
    )]
    run: Vec<OsString>,

    /// Whose TCP to use.
    #[arg(long, value_enum, default_value = "transom", conflicts_with_all = ["lab", "pcap", "log", "extension_socket"])]
    side: Side,

    /// The longest IP packet, in bytes [default: 1500, or what an existing interface has].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..))]
    mtu: Option<u16>,

    /// Use no offload: no partial checksums, no super-segments.
    #[arg(long)]
    no_offload: bool,

    /// Write all packets to a pcapng file, in their form on a wire.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// In the file of --pcap, add a comment to each sent segment: the sender's windows, phase and timeout, its limit, and the values that extensions
    /// change.
    #[arg(long, requires = "pcap")]
    pcap_comments: bool,

    /// Write the event log of all connections to a file: as lines of JSON if its name ends in .jsonl, otherwise in the binary form that `transom
    /// log` shows.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Accept extensions of other processes at this Unix socket (docs/remote-extensions.md).
    #[arg(long, value_name = "PATH")]
    extension_socket: Option<PathBuf>,

    #[command(flatten)]
    profile: ProfileArgs,
}

/// A network that is up, and the host on it.
pub(crate) struct Network {
    /// The TCP that connects and listens.
    pub(crate) host: Host,
    /// The addresses the host has; none for the kernel's side, whose addresses are the machine's.
    pub(crate) addresses: Vec<IpAddr>,
    /// Where the host is, in words.
    pub(crate) description: String,
    /// State that a signal must clean up.
    pub(crate) cleanup: Arc<Cleanup>,
    program: Option<(Namespace, Vec<OsString>)>,
    peer: Option<IpAddr>,
}

impl NetworkArgs {
    /// Brings the network up. Must be called while the process has one thread.
    pub(crate) fn open(&self) -> anyhow::Result<Network> {
        let tcp = self.profile.profile()?;
        if self.side == Side::Kernel {
            return Ok(Network {
                host: Host::Kernel { nodelay: tcp.nodelay },
                addresses: Vec::new(),
                description: "the kernel's TCP".into(),
                cleanup: Cleanup::new(None, Watching::default()),
                program: None,
                peer: None,
            });
        }
        self.check_addresses()?;
        let lab = self.lab || !self.run.is_empty();
        let (tun, namespace) = if lab {
            let namespace = own_namespace()?;
            let opened = namespace.run(|| self.open_tun(true))?;
            (opened?, Some(namespace))
        } else {
            (self.open_tun(false)?, None)
        };
        let addresses: Vec<IpAddr> = self.addr.iter().map(|prefix| prefix.address()).collect();
        let place = if namespace.is_some() { ", in a network of its own" } else { "" };
        let description = format!("{} on {}{place}", join(&addresses), tun.name());
        let builder =
            self.addr.iter().fold(
                Stack::builder().profile(tcp).comments(self.pcap_comments),
                |builder, prefix| builder.address(prefix.address(), prefix.prefix_len()),
            );
        let (stack, capture) = match &self.pcap {
            None => (builder.start(tun), None),
            Some(path) => {
                let (capture, writer) = CaptureFile::create(path, u32::MAX)?;
                let tapped = Tapped::new(tun, writer, &self.tun)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                let capture = capture.with_status(tapped.status());
                (builder.start(tapped), Some(capture))
            }
        };
        let stack = stack.context("cannot start the stack")?;
        let watching =
            Watching::begin(&stack, self.log.as_deref(), self.extension_socket.as_deref())?;
        Ok(Network {
            host: Host::Transom(stack),
            addresses,
            description,
            cleanup: Cleanup::new(capture, watching),
            program: namespace.map(|namespace| (namespace, self.run.clone())),
            peer: self.peer_addr.first().map(|prefix| prefix.address()),
        })
    }

    /// Whether connections have extensions.
    pub(crate) fn has_extensions(&self) -> bool {
        self.profile.has_extensions()
    }

    /// Catches what could not work before the kernel answers it with a number.
    fn check_addresses(&self) -> anyhow::Result<()> {
        for peer in &self.peer_addr {
            if self.addr.iter().any(|own| own.address() == peer.address()) {
                bail!(
                    "--addr and --peer-addr are both {}, but two hosts need two addresses",
                    peer.address()
                );
            }
        }
        Ok(())
    }

    fn open_tun(&self, private: bool) -> anyhow::Result<Tun> {
        let offload = if self.no_offload { TunOffload::None } else { TunOffload::Segmentation };
        let exists = !private
            && Interfaces::open()
                .context("cannot ask the kernel for its interfaces")?
                .state(&self.tun)
                .is_ok();
        let builder = if exists {
            if self.mtu.is_some() {
                bail!("{} exists: its MTU is set with `ip link`, not with --mtu", self.tun);
            }
            Tun::builder().existing(&self.tun)
        } else {
            let builder = Tun::builder().name(&self.tun).mtu(self.mtu.unwrap_or(1500));
            self.peer_addr.iter().fold(builder, |builder, prefix| builder.address(*prefix))
        };
        builder.offload(offload).open().map_err(|error| self.explain(error, private))
    }

    /// Says what to do about a TUN interface that was refused.
    fn explain(&self, error: TunError, private: bool) -> anyhow::Error {
        let kind = error.kind();
        let name = &self.tun;
        let hint = match (&error, kind) {
            (TunError::Open(_), io::ErrorKind::NotFound) => {
                "the system has no TUN driver: load it with `modprobe tun`".into()
            }
            (TunError::Create { .. }, io::ErrorKind::ResourceBusy) => {
                format!("another program uses {name}: choose another one with --tun NAME")
            }
            (TunError::Open(_), io::ErrorKind::PermissionDenied) if private => {
                "a network of your own needs access to /dev/net/tun, which this system gives to root alone: \
                 `chmod 666 /dev/net/tun`, as root, is what most systems have (making interfaces takes \
                 privileges all the same)"
                    .into()
            }
            (_, io::ErrorKind::PermissionDenied) => format!(
                "making an interface takes root. Without it, use a network of your own (--lab, with --run \
                 PROGRAM for the other end), or have root make an interface for you once: `ip tuntap add dev \
                 {name} mode tun user $USER vnet_hdr`; see --tun in --help"
            ),
            _ => return anyhow::Error::new(error),
        };
        anyhow::Error::new(error).context(hint)
    }
}

fn own_namespace() -> anyhow::Result<Namespace> {
    let hint = "no network of your own: the system refuses user namespaces to ordinary users; run as root, or \
                use a TUN interface that root has made for you (see --tun in --help)";
    enter_user_namespace().context(hint)?;
    Namespace::new().context("cannot make a network namespace")
}

fn join(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    texts.join(" and ")
}

impl Network {
    /// The network of the command's own, if it has one.
    pub(crate) fn namespace(&self) -> Option<&Namespace> {
        self.program.as_ref().map(|(namespace, _)| namespace)
    }

    /// Starts the program that --run asks for, if it does.
    pub(crate) fn start_program(&self) -> anyhow::Result<Option<Program>> {
        let Some((namespace, command)) = &self.program else { return Ok(None) };
        let Some((name, arguments)) = command.split_first() else { return Ok(None) };
        let mut variables = Vec::new();
        if let Some(address) = self.addresses.first() {
            variables.push(("TRANSOM_ADDR", address.to_string()));
        }
        if let Some(peer) = self.peer {
            variables.push(("TRANSOM_PEER_ADDR", peer.to_string()));
        }
        let program = Program::start(namespace, name, arguments, variables)?;
        self.cleanup.watch_program(program.descriptor()?);
        Ok(Some(program))
    }

    /// The status of a server that has ended: that of its program, if it had one, unless a file could not be written.
    pub(crate) fn status(&self, program: Option<ExitCode>) -> ExitCode {
        let files = self.cleanup.status();
        program.filter(|status| *status != ExitCode::SUCCESS).unwrap_or(files)
    }

    /// Waits a moment for connections to end in order, then completes the capture and the log. Gives the command's status: a failure if
    /// one of them could not be written.
    #[must_use]
    pub(crate) fn finish(&self) -> ExitCode {
        if let Host::Transom(stack) = &self.host {
            stack.drain(Duration::from_secs(1));
        }
        self.cleanup.finish_files();
        self.cleanup.status()
    }
}

//! The network: the options that all commands share, and the host that they give.
//!
//! Transom is a host of its own on a device, which one word names (docs/devices.md): a TUN interface, an Ethernet interface, datagrams to another
//! Transom. With `--lab` the device is a TUN interface in a network namespace of the command's own, which every user may have on most systems.
//! Nothing outside can see it, so `--run` starts a program inside. With `--side kernel` the command uses the kernel's own sockets, for comparison
//! and as the other end of a test.

mod capture;
mod cleanup;
mod profile;
mod program;
mod silence;
mod watching;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use transom_device::interface::IpPrefix;
use transom_device::namespace::{Namespace, enter_user_namespace};
use transom_device::open::{OpenError, Opened, kernel_end, open};
use transom_device::{DeviceWord, Tapped};
use transom_net::Stack;

use crate::socket::{Host, Listener};

pub(crate) use capture::CaptureFile;
pub(crate) use cleanup::Cleanup;
pub(crate) use profile::ProfileArgs;
pub(crate) use program::{Program, cannot_run, exit_code};
use silence::Silence;
use watching::Watching;

/// The TCP that is used: Transom's or the kernel's.
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
    /// The device for packets: tun:NAME, packet:INTERFACE, xdp:INTERFACE, udp:ADDRESS:PORT, shared or fd:NUMBER.
    ///
    /// tun:NAME is a TUN interface. It is created (as root) unless it exists. To make one for an ordinary user, root runs once: `ip tuntap add dev
    /// transom0 mode tun user USER vnet_hdr`, `ip addr add 10.9.0.1/24 dev transom0` and `ip link set transom0 up`.
    ///
    /// udp:ADDRESS:PORT takes no privileges: another Transom has udp:listen:PORT there. `transom doctor` says which words work on this machine;
    /// docs/devices.md has them all.
    #[arg(long, value_name = "WORD", default_value = "tun:transom0")]
    device: DeviceWord,

    /// The same as --device tun:NAME.
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "device")]
    tun: Option<String>,

    /// Transom's own address and its network; repeat it for IPv6 [default: 10.9.0.2/24; on udp:ADDRESS:PORT the other end assigns it; 10.9.0.1/24 on
    /// udp:listen:PORT; none on packet and xdp, which need one].
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    addr: Vec<IpPrefix>,

    /// The kernel's address on a TUN interface that is created; repeat it for IPv6 [default: the first other one of --addr's network: 10.9.0.1/24].
    #[arg(long, value_name = "ADDRESS/LENGTH")]
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

    /// The TCP to use: Transom's or the kernel's.
    #[arg(long, value_enum, default_value = "transom", conflicts_with_all = ["lab", "device", "tun", "pcap", "log", "extension_socket", "status"])]
    side: Side,

    /// The longest IP packet, in bytes [default: 1500, or what an existing interface has].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..))]
    mtu: Option<u16>,

    /// Use no offload: no partial checksums, no super-segments.
    #[arg(long)]
    no_offload: bool,

    /// Use so many cores: the host works in as many parts, each with a queue of the device (docs/sharing.md). By default there are as many as processors,
    /// if the device has several queues: sixteen at most of a TUN interface, eight of `shared`. `exec` has one, since one of its threads does all the work.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: Option<u16>,

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

    /// Show the connections to `transom top` and `transom dash` of this user (docs/live.md). The environment variable TRANSOM_STATUS=1 does the
    /// same.
    #[arg(long)]
    status: bool,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
}

/// A network that is up, and the host on it.
pub(crate) struct Network {
    /// The TCP that connects and listens.
    pub(crate) host: Host,
    /// The addresses the host has; none for the kernel's side, whose addresses are the machine's.
    pub(crate) addresses: Vec<IpAddr>,
    /// The same with the lengths of their networks.
    pub(crate) prefixes: Vec<IpPrefix>,
    /// The place of the host, in words.
    pub(crate) description: String,
    /// State that a signal must clean up.
    pub(crate) cleanup: Arc<Cleanup>,
    program: Option<(Namespace, Vec<OsString>)>,
    peer: Option<IpAddr>,
    /// Says that a destination does not answer; none for the kernel's side.
    pub(crate) silence: Option<Silence>,
}

impl NetworkArgs {
    /// The same with so many shards, unless the caller asks for another number.
    pub(crate) fn with_usual_shards(&self, shards: u16) -> Self {
        NetworkArgs { shards: self.shards.or(Some(shards)), ..self.clone() }
    }

    /// Brings the network up. Must be called while the process has one thread.
    pub(crate) fn open(&self) -> anyhow::Result<Network> {
        let tcp = self.profile.profile()?;
        if self.side == Side::Kernel {
            return Ok(Network {
                host: Host::Kernel { nodelay: tcp.nodelay },
                addresses: Vec::new(),
                prefixes: Vec::new(),
                description: "the kernel's TCP".into(),
                cleanup: Cleanup::new(None, Watching::default()),
                program: None,
                peer: None,
                silence: None,
            });
        }
        let lab = self.lab || !self.run.is_empty();
        let word = self.word()?;
        self.check_addresses(&word)?;
        let usual = transom_net::open_options();
        let queues = self.shards.map_or(usual.queues, usize::from);
        let options = usual
            .with_addresses(self.addr.clone())
            .with_kernel_addresses(self.peer_addr.clone())
            .with_mtu(self.mtu)
            .with_offload(!self.no_offload)
            .with_queues(queues);
        // Only a TUN interface that is made has this one; a program of --run is told.
        let peer = kernel_end(&options);
        let (opened, namespace) = if lab {
            if !matches!(word, DeviceWord::Tun { .. }) {
                bail!(
                    "a network of the command's own (--lab, --run) has a TUN interface, not {word}"
                );
            }
            let namespace = own_namespace()?;
            let opened = namespace.run(|| open(&word, &options))?;
            (opened.map_err(|error| explain(error, true))?, Some(namespace))
        } else {
            (open(&word, &options).map_err(|error| explain(error, false))?, None)
        };
        let Opened { addresses: prefixes, place, .. } = &opened;
        let prefixes = prefixes.clone();
        let addresses: Vec<IpAddr> = prefixes.iter().map(|prefix| prefix.address()).collect();
        let private = if namespace.is_some() { ", in a network of its own" } else { "" };
        let description = format!("{} on {place}{private}", join(&addresses));
        let builder = Stack::builder().profile(tcp).comments(self.pcap_comments);
        let builder = match self.shards {
            Some(shards) => builder.shards(shards.into()),
            None => builder,
        };
        let (builder, device) = builder.on(opened).context("cannot start the stack")?;
        let (stack, capture) = match &self.pcap {
            None => (builder.start(device), None),
            Some(path) => {
                let (capture, writer) = CaptureFile::create(path, u32::MAX)?;
                let tapped = Tapped::new(device, writer, &word.to_string())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                let capture = capture.with_status(tapped.status());
                (builder.start(tapped), Some(capture))
            }
        };
        let stack = stack.context("cannot start the stack")?;
        let watching =
            Watching::begin(&stack, self.log.as_deref(), self.extension_socket.as_deref())?;
        let watching = watching.with_status(&stack, self.status)?;
        let behind_host = namespace.is_none() && matches!(word, DeviceWord::Tun { .. });
        let silence = Some(Silence::new(prefixes.clone(), behind_host));
        Ok(Network {
            host: Host::Transom(stack),
            addresses,
            prefixes,
            description,
            cleanup: Cleanup::new(capture, watching),
            program: namespace.map(|namespace| (namespace, self.run.clone())),
            peer,
            silence,
        })
    }

    /// Catches what could not work before the kernel answers it with a number.
    fn check_addresses(&self, word: &DeviceWord) -> anyhow::Result<()> {
        if !matches!(word, DeviceWord::Tun { .. }) {
            return Ok(());
        }
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

    fn word(&self) -> anyhow::Result<DeviceWord> {
        match &self.tun {
            Some(name) => Ok(format!("tun:{name}").parse()?),
            None if matches!(self.device, DeviceWord::Memory { .. }) => bail!(
                "{} is memory of one process, and this command is alone in its own: use --lab with --run PROGRAM, or \
                 udp:ADDRESS:PORT to another Transom",
                self.device
            ),
            None => Ok(self.device.clone()),
        }
    }
}

/// Gives better advice about a device that could not be opened, as far as only the command knows it.
fn explain(error: OpenError, private: bool) -> anyhow::Error {
    let refused = error.kind() == std::io::ErrorKind::PermissionDenied;
    let advice = match &error.word {
        DeviceWord::Tun { .. } if refused && private => {
            "a network of your own needs access to /dev/net/tun, which this system gives to root alone: \
             `chmod 666 /dev/net/tun`, as root, is what most systems have (making interfaces takes \
             privileges all the same)"
        }
        DeviceWord::Tun { name } if refused => {
            let own = "--lab gives a network of your own, which takes no privileges";
            let made = format!(
                "{own}; or root makes the interface once: `ip tuntap add dev {name} mode tun user $USER vnet_hdr`"
            );
            return error.with_advice(made).into();
        }
        _ => return error.into(),
    };
    error.with_advice(advice).into()
}

fn own_namespace() -> anyhow::Result<Namespace> {
    let hint = "no network of your own: the system refuses user namespaces to ordinary users; run as root, or \
                use a TUN interface that root has made for you, or udp:ADDRESS:PORT (see --device in --help)";
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

    /// Listens on one port of every address.
    pub(crate) fn listen(&self, port: u16) -> anyhow::Result<Vec<Listener>> {
        let mut addresses = self.addresses.clone();
        if addresses.is_empty() {
            // With the kernel's usual settings this takes IPv4 connections as well.
            addresses.push(Ipv6Addr::UNSPECIFIED.into());
        }
        let listen = |address: IpAddr| {
            let at = SocketAddr::from((address, port));
            let outcome = match self.host.listen(at) {
                // A machine without IPv6 still has the other one.
                Err(_) if address == IpAddr::from(Ipv6Addr::UNSPECIFIED) => {
                    self.host.listen((Ipv4Addr::UNSPECIFIED, port).into())
                }
                outcome => outcome,
            };
            outcome.with_context(|| format!("cannot listen on {at}"))
        };
        addresses.into_iter().map(listen).collect()
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

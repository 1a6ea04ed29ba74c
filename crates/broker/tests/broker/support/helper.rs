//! This program once more: as a broker, or as a process that holds a device.

use std::io::Read as _;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::net::{SocketAddrUnix, SocketFlags};
use transom_broker::Policy;
use transom_broker::client::{self, BindOptions, Lease, Wish, bind};
use transom_broker::daemon::Daemon;
use transom_device::tun::Tun;

use super::wire;
use super::{Net, echo, tun, until};

const ROLE: &str = "BROKER_TEST_ROLE";
const PLACE: &str = "BROKER_TEST_PLACE";

/// Not a test: what the program does when it is started as somebody else.
#[test]
fn helper() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let path = std::env::var(PLACE).unwrap();
    // Nothing of it is left when the test is killed.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    match role.as_str() {
        "broker" => run_broker(Path::new(&path)),
        _ => run_holder(Path::new(&path)),
    }
    std::process::exit(0);
}

/// How this program is started again.
pub(crate) fn helper_command(role: &str, place: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "support::helper::helper", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(PLACE, place).stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

fn run_broker(directory: &Path) {
    let policy = Policy::read(&directory.join("policy.toml")).unwrap();
    let (socket, pins) = (directory.join("broker.sock"), directory.join("bpf").join("transom"));
    let daemon = Daemon::start(policy, &socket, &pins).unwrap_or_else(|error| panic!("{error:?}"));
    daemon.run().unwrap();
}

/// A broker in a process of its own. It is killed with the value.
pub(crate) struct BrokerProcess(Child);

impl BrokerProcess {
    /// Starts one on the host, and waits until it answers.
    pub(crate) fn start(net: &Net, rules: &str) -> Self {
        let audit = net.directory.path().join("audit.log");
        let uplinks = net.uplinks.join("\", \"");
        let text = format!("uplinks = [\"{uplinks}\"]\naudit = \"{}\"\n{rules}", audit.display());
        std::fs::write(net.directory.path().join("policy.toml"), text).unwrap();
        let child = net.host.spawn(&mut helper_command("broker", net.directory.path())).unwrap();
        let mut broker = BrokerProcess(child);
        until("the broker answers", || {
            assert!(broker.0.try_wait().unwrap().is_none(), "the broker has ended");
            client::list(net.socket()).is_ok()
        });
        broker
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    pub(crate) fn wait(&mut self) {
        // Child::wait() would close its standard input, which ends it.
        let mut ended = None;
        until("the broker has ended", || {
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        assert!(ended.unwrap().success());
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Holds a device, and does what the test says. One message each way; descriptors travel beside them.
fn run_holder(control: &Path) {
    let control = {
        let socket = wire::socket(SocketFlags::CLOEXEC).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(control).unwrap()).unwrap();
        socket
    };
    let mut state = HolderState::default();
    while let Ok(Some((bytes, descriptors))) = wire::receive(&control) {
        let command = String::from_utf8(bytes).unwrap();
        let (text, attached) = match state.execute(&command, descriptors) {
            Ok(answer) => answer,
            Err(error) => (format!("error {error:?}"), Vec::new()),
        };
        let attached: Vec<_> = attached.iter().map(AsFd::as_fd).collect();
        wire::send(&control, text.as_bytes(), &attached).unwrap();
    }
}

#[derive(Default)]
struct HolderState {
    kernel: KernelSockets,
    lease: Option<Lease>,
    sockets: Vec<OwnedFd>,
    last_port: u64,
    tun: Option<OwnedFd>,
    networks: Vec<OwnedFd>,
    stack: Option<transom_net::Stack>,
}

type Answer = Result<(String, Vec<OwnedFd>), Box<dyn std::error::Error>>;

impl HolderState {
    fn execute(&mut self, command: &str, mut descriptors: Vec<OwnedFd>) -> Answer {
        let words: Vec<_> = command.split(' ').collect();
        match words[..] {
            ["open", path, queues] => {
                let wish = Wish { name: "test".into(), queues: queues.parse()? };
                let mut lease = Lease::connect(path, &wish)?;
                let mut queues = lease.take_descriptors();
                let opened = serde_json::to_string(lease.opened())?;
                let copies: Result<_, _> = queues.iter().map(OwnedFd::try_clone).collect();
                self.tun = queues.pop();
                self.lease = Some(lease);
                Ok((opened, copies?))
            }
            ["bind", address] => self.add(bind(address.parse()?, &BindOptions::default())?),
            ["show"] => self.add(descriptors.remove(0)),
            // Everything but the device.
            ["forget"] => {
                self.sockets.clear();
                self.lease = None;
                Ok(("ok".into(), Vec::new()))
            }
            // Only the device.
            ["close"] => {
                self.tun = None;
                Ok(("ok".into(), Vec::new()))
            }
            ["remove", id] => {
                self.lease.as_mut().ok_or("no lease")?.remove_port(id.parse()?)?;
                self.sockets.clear();
                Ok(("ok".into(), Vec::new()))
            }
            // The broker's number of the port that was registered last.
            ["last-port"] => Ok((self.last_port.to_string(), Vec::new())),
            ["bind-again", address] => {
                let reuse = BindOptions { reuse_address: true, ..Default::default() };
                self.add(bind(address.parse()?, &reuse)?)
            }
            // On the socket that was bound last.
            ["reuse"] => {
                let socket = self.sockets.last().ok_or("no socket")?;
                rustix::net::sockopt::set_socket_reuseaddr(socket, true)?;
                Ok(("ok".into(), Vec::new()))
            }
            ["kernel", ref rest @ ..] => self.kernel.execute(rest),
            // A connection to the broker, for the test.
            ["reach", path] => Ok(("ok".into(), vec![wire::connect(Path::new(path))?])),
            ["attach", name, queues] => {
                let device = descriptors.remove(0);
                tun::attach(&device, name, queues == "many", false)?;
                Ok(("ok".into(), Vec::new()))
            }
            ["host"] => {
                let host = self.lease.as_mut().ok_or("no lease")?.host()?;
                Ok((serde_json::to_string(&host)?, Vec::new()))
            }
            ["list", path] => Ok((serde_json::to_string(&client::list(path)?)?, Vec::new())),
            ["stop", path] => {
                client::stop(path)?;
                Ok(("ok".into(), Vec::new()))
            }
            ["network", path] => {
                self.networks.push(client::network(path)?);
                Ok(("ok".into(), Vec::new()))
            }
            ["use-network"] => {
                let socket = self.networks.pop().ok_or("no network")?;
                Ok((super::super::networks::use_network(socket)?, Vec::new()))
            }
            ["forget-networks"] => {
                self.networks.clear();
                Ok(("ok".into(), Vec::new()))
            }
            ["serve", address] => self.serve(address),
            ["fetch", address, bytes] => self.fetch(address, bytes.parse()?),
            _ => Err(format!("what is {command}?").into()),
        }
    }

    fn add(&mut self, socket: OwnedFd) -> Answer {
        let port = self.lease.as_mut().ok_or("no lease")?.add_port(&socket)?;
        self.sockets.push(socket);
        self.last_port = port.id;
        Ok((serde_json::to_string(&port)?, Vec::new()))
    }

    /// Transom's own TCP at the device, once for a process.
    fn stack(&mut self) -> Result<transom_net::Stack, Box<dyn std::error::Error>> {
        if let Some(stack) = &self.stack {
            return Ok(stack.clone());
        }
        let opened = self.lease.as_ref().ok_or("no lease")?.opened();
        let tun = self.tun.take().ok_or("no device")?;
        let device = Tun::from_descriptor(tun, opened.index, opened.host.mtu)?;
        let mut builder = transom_net::Stack::builder();
        for found in &opened.host.addresses {
            builder = builder.address(found.address, found.prefix);
        }
        let stack = builder.start(device)?;
        self.stack = Some(stack.clone());
        Ok(stack)
    }

    fn serve(&mut self, address: &str) -> Answer {
        let listener = self.stack()?.listen(address)?;
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                std::thread::spawn(move || echo(stream));
            }
        });
        Ok(("ok".into(), Vec::new()))
    }

    /// Sends bytes from the port that was registered last, and gets them back.
    fn fetch(&mut self, address: &str, bytes: usize) -> Answer {
        use std::io::Write;
        let bound = self.sockets.last().ok_or("no port")?;
        let from = SocketAddr::try_from(rustix::net::getsockname(bound)?)?;
        let stack = self.stack()?;
        let to: SocketAddr = address.parse()?;
        let options = transom_net::ConnectOptions::default().with_local(Some(from));
        let mut stream = transom_net::TcpStream::connect_with(&stack, to, &options)?;
        let sent: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
        let mut writer = stream.try_clone()?;
        let copy = sent.clone();
        let writing = std::thread::spawn(move || writer.write_all(&copy));
        let mut received = vec![0; bytes];
        stream.read_exact(&mut received)?;
        writing.join().map_err(|_| "a panic")??;
        match received == sent {
            true => Ok(("ok".into(), Vec::new())),
            false => Err("something else came back".into()),
        }
    }
}

/// Sockets of the kernel's TCP.
#[derive(Default)]
struct KernelSockets {
    listener: Option<std::net::TcpListener>,
    stream: Option<std::net::TcpStream>,
    bound: Option<OwnedFd>,
}

impl KernelSockets {
    fn execute(&mut self, command: &[&str]) -> Answer {
        match command {
            // As all servers do, with SO_REUSEADDR.
            ["listen", address] => self.listener = Some(std::net::TcpListener::bind(address)?),
            // One connection, and the listener goes.
            ["accept"] => {
                self.stream = Some(self.listener.take().ok_or("no listener")?.accept()?.0);
            }
            ["bind", address] => {
                let reuse = BindOptions { reuse_address: true, ..Default::default() };
                self.bound = Some(bind(address.parse()?, &reuse)?);
            }
            ["connect", address] => {
                let socket = self.bound.take().ok_or("no socket")?;
                let to: std::net::SocketAddr = address.parse()?;
                rustix::net::connect(&socket, &to)?;
                self.stream = Some(socket.into());
            }
            ["exchange"] => {
                let stream = self.stream.as_mut().ok_or("no connection")?;
                stream.set_read_timeout(Some(super::PATIENCE))?;
                if !super::echoes(stream, 100_000) {
                    return Err("it does not come back".into());
                }
            }
            _ => return Err(format!("what is {command:?}?").into()),
        }
        Ok(("ok".into(), Vec::new()))
    }
}

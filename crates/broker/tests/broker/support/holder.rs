//! A process of another user that holds a device, from the test's side.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{SocketAddrUnix, SocketFlags};
use transom_broker::protocol::{Opened, Port};

use super::Net;
use super::helper::helper_command;
use super::wire;

/// It is killed with the value.
pub(crate) struct Holder {
    child: Child,
    control: OwnedFd,
    broker: String,
}

/// A device that it has opened, and copies of its descriptors.
pub(crate) struct Device {
    pub(crate) opened: Opened,
    pub(crate) queues: Vec<OwnedFd>,
}

impl Holder {
    /// A process of this user on the host.
    pub(crate) fn start(net: &Net, user: u32) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("control-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = net.directory.path().join(name);
        let listener = wire::socket(SocketFlags::CLOEXEC).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&path, everybody).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let child = net.host.spawn(helper_command("holder", &path).uid(user).gid(user)).unwrap();
        let control = rustix::net::accept_with(&listener, SocketFlags::CLOEXEC).unwrap();
        Holder { child, control, broker: net.socket().display().to_string() }
    }

    fn request(&self, command: &str, descriptors: &[BorrowedFd<'_>]) -> (String, Vec<OwnedFd>) {
        wire::send(&self.control, command.as_bytes(), descriptors).unwrap();
        let (bytes, descriptors) = wire::receive(&self.control).unwrap().expect("an answer");
        (String::from_utf8(bytes).unwrap(), descriptors)
    }

    /// Has it do something; the answer, or the error's words.
    pub(crate) fn ask(&self, command: &str) -> Result<String, String> {
        let (text, _) = self.request(command, &[]);
        match text.strip_prefix("error ") {
            Some(error) => Err(error.to_owned()),
            None => Ok(text),
        }
    }

    pub(crate) fn open(&self) -> Result<Device, String> {
        self.open_with(1)
    }

    pub(crate) fn open_with(&self, queues: u16) -> Result<Device, String> {
        let (text, queues) = self.request(&format!("open {} {queues}", self.broker), &[]);
        match serde_json::from_str(&text) {
            Ok(opened) => Ok(Device { opened, queues }),
            Err(_) => Err(text),
        }
    }

    /// Binds a socket and registers it.
    pub(crate) fn bind(&self, address: SocketAddr) -> Result<Port, String> {
        self.ask(&format!("bind {address}")).map(|text| serde_json::from_str(&text).unwrap())
    }

    /// Registers a socket of the test's.
    pub(crate) fn register(&self, socket: impl AsFd) -> Result<Port, String> {
        let (text, _) = self.request("show", &[socket.as_fd()]);
        serde_json::from_str(&text).map_err(|_| text)
    }

    /// Has it open a device by its name, with a descriptor of `/dev/net/tun` from the test: not everywhere may ordinary users open that.
    pub(crate) fn attach(&self, tun: &OwnedFd, device: &str, queues: &str) -> Result<(), String> {
        let (text, _) = self.request(&format!("attach {device} {queues}"), &[tun.as_fd()]);
        if text == "ok" { Ok(()) } else { Err(text) }
    }

    /// The process' number.
    pub(crate) fn id(&self) -> i32 {
        self.child.id() as i32
    }

    /// A connection of its own to the broker.
    pub(crate) fn open_connection(&self) -> OwnedFd {
        self.request(&format!("reach {}", self.broker), &[]).1.remove(0)
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.kill();
    }
}

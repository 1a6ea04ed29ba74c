//! A transparent proxy between the kernel's TCP as client and the kernel's TCP as server: the client sees what it would see without the proxy.
//!
//! The proxy is the example's own (`examples/transparent_proxy/proxy.rs`).

#[allow(unreachable_pub)] // it is a module of a program
#[path = "../../../examples/transparent_proxy/proxy.rs"]
mod proxy;

use crate::support::{PATIENCE, VERSIONS, Version, receive, send, start, tun};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, IpAddr, Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;
use transom_device::namespace::Namespace;
use transom_device::tun::TunOffload;
use transom_net::{ListenConfig, Profile, Refusal, Stack, TcpStream, Unreachable};

/// The servers' address, far from the clients' and the proxy's networks (RFC 5737, RFC 3849).
fn server(version: Version) -> IpAddr {
    match version {
        Version::V4 => [203, 0, 113, 7].into(),
        Version::V6 => "2001:db8:7::7".parse().unwrap(),
    }
}

/// Runs `ip` with these words in a namespace.
fn ip(namespace: &Namespace, words: &str) {
    let mut command = Command::new("ip");
    let status = namespace.spawn(command.args(words.split_whitespace())).unwrap().wait().unwrap();
    assert!(status.success(), "ip {words}");
}

/// A namespace whose kernel sends everything to a host that has every address.
fn clients() -> Option<(Namespace, Stack)> {
    let (namespace, tun) = tun(TunOffload::Segmentation)?;
    let name = tun.name().to_owned();
    let inside = Stack::builder().every_address().start(tun).unwrap();
    for version in ["-4", "-6"] {
        ip(&namespace, &format!("{version} route add default dev {name}"));
    }
    wait_for_v6(&namespace);
    Some((namespace, inside))
}

/// The kernel uses no IPv6 address of an interface for a moment after it is up.
fn wait_for_v6(namespace: &Namespace) {
    let tentative = || {
        let mut command = Command::new("ip");
        let output = command.args(["-6", "addr", "show", "tentative"]).output().unwrap();
        !output.stdout.is_empty()
    };
    while namespace.run(tentative).unwrap() {
        thread::yield_now();
    }
}

/// Clients and servers with the proxy between them.
struct Lab {
    clients: Namespace,
    servers: Namespace,
}

fn lab() -> Option<Lab> {
    let (clients, inside) = clients()?;
    let (servers, tun) = tun(TunOffload::Segmentation)?;
    ip(&servers, "link set lo up");
    ip(&servers, "addr add 203.0.113.7/32 dev lo");
    ip(&servers, "-6 addr add 2001:db8:7::7/128 dev lo");
    for (setting, value) in [("ipv4.ip_forward", "1"), ("ipv6.conf.all.forwarding", "1")] {
        servers.set_sysctl(&format!("net.{setting}"), value).unwrap();
    }
    // The first of them for "no such host", the second for "forbidden".
    for (kind, last) in [("unreachable", 8), ("prohibit", 9)] {
        ip(&servers, &format!("route add {kind} 203.0.113.{last}"));
        ip(&servers, &format!("-6 route add {kind} 2001:db8:7::{last}"));
    }
    wait_for_v6(&servers);
    let outside = start(tun, Profile::classic());
    thread::spawn(move || proxy::run(&inside, &outside));
    Some(Lab { clients, servers })
}

impl Lab {
    fn listen(&self, version: Version) -> net::TcpListener {
        let at = SocketAddr::new(server(version), 0);
        self.servers.run(|| net::TcpListener::bind(at)).unwrap().unwrap()
    }

    fn connect(&self, to: SocketAddr) -> io::Result<net::TcpStream> {
        let stream = self.clients.run(|| net::TcpStream::connect(to)).unwrap()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn pair(&self, version: Version) -> (net::TcpStream, net::TcpStream) {
        let listener = self.listen(version);
        let to = listener.local_addr().unwrap();
        let client = self.connect(to).unwrap();
        assert_eq!(client.peer_addr().unwrap(), to, "the client does not see the proxy");
        let (server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        server.set_write_timeout(Some(PATIENCE)).unwrap();
        (client, server)
    }
}

#[test]
fn every_byte_passes_both_ways_at_once() {
    let Some(lab) = lab() else { return };
    for version in VERSIONS {
        let (client, server) = lab.pair(version);
        thread::scope(|scope| {
            let sends = |stream: &net::TcpStream, seed| {
                let sent = send(stream, seed, 3_000_000).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                sent
            };
            let (client, server) = (&client, &server);
            let there = scope.spawn(move || sends(client, 1));
            let back = scope.spawn(move || sends(server, 2));
            let got = scope.spawn(move || receive(client).unwrap());
            assert_eq!(receive(server).unwrap(), there.join().unwrap());
            assert_eq!(got.join().unwrap(), back.join().unwrap());
        });
    }
}

/// What a client hears of ports and hosts that do not answer is what their networks say.
#[test]
fn a_refused_connection_is_refused_in_the_same_words() {
    let Some(lab) = lab() else { return };
    let cases = [
        ("203.0.113.7:9", Errno::CONNREFUSED),
        ("[2001:db8:7::7]:9", Errno::CONNREFUSED),
        ("203.0.113.8:9", Errno::HOSTUNREACH),
        ("[2001:db8:7::8]:9", Errno::NETUNREACH),
        ("203.0.113.9:9", Errno::HOSTUNREACH),
        ("[2001:db8:7::9]:9", Errno::ACCESS),
    ];
    for (to, expected) in cases {
        let error = lab.connect(to.parse().unwrap()).expect_err(to);
        assert_eq!(Errno::from_io_error(&error), Some(expected), "{to}: {error}");
    }
}

#[test]
fn a_reset_of_one_end_resets_the_other() {
    let Some(lab) = lab() else { return };
    for version in VERSIONS {
        for server_resets in [false, true] {
            let (client, server) = lab.pair(version);
            let (resets, mut hears) = match server_resets {
                true => (server, client),
                false => (client, server),
            };
            // Both ends have the connection: a byte has passed.
            (&resets).write_all(b"x").unwrap();
            hears.read_exact(&mut [0]).unwrap();
            sockopt::set_socket_linger(&resets, Some(std::time::Duration::ZERO)).unwrap();
            drop(resets);
            let error = hears.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{version:?} {server_resets}");
        }
    }
}

#[test]
fn curl_sees_its_server() {
    let Some(lab) = lab() else { return };
    let listener = lab.listen(Version::V4);
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let mut read = 0;
        while !request[..read].ends_with(b"\r\n\r\n") {
            read += stream.read(&mut request[read..]).unwrap();
        }
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nfrom afar").unwrap();
    });
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--noproxy", "*", "--max-time", "60", &url]);
    let child = match lab.clients.spawn(curl.stdout(Stdio::piped())) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: there is no curl here");
            return;
        }
        child => child.unwrap(),
    };
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, b"from afar");
    server.join().unwrap();
}

/// The kernel begins to connect; whether it has, [`outcome`] says.
fn begin(namespace: &Namespace, to: SocketAddr) -> OwnedFd {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    namespace
        .run(|| {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(family, SocketType::STREAM, flags, None).unwrap();
            assert_eq!(connect(&socket, &to), Err(Errno::INPROGRESS));
            socket
        })
        .unwrap()
}

/// How connecting has ended; `None`: it has not.
fn outcome(socket: &OwnedFd, patience: std::time::Duration) -> Option<Result<(), Errno>> {
    let limit = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: 0 };
    let mut polled = [PollFd::new(socket, PollFlags::OUT)];
    if poll(&mut polled, Some(&limit)).unwrap() == 0 {
        return None;
    }
    Some(sockopt::socket_error(socket).unwrap())
}

/// The kernel's own word for each refusal, and for none.
#[test]
fn a_syn_is_answered_only_when_it_is_decided() {
    let Some((clients, inside)) = clients() else { return };
    let hold_syns = Some(PATIENCE.into());
    let config = ListenConfig::default().with_hold_syns(hold_syns);
    let listener = inside.listen_to_everything(config).unwrap();
    let unreachable = |why| Some(Refusal::Unreachable(why));
    let cases = [
        (None, Ok(()), Ok(())),
        (Some(Refusal::Reset), Err(Errno::CONNREFUSED), Err(Errno::CONNREFUSED)),
        (unreachable(Unreachable::Network), Err(Errno::NETUNREACH), Err(Errno::NETUNREACH)),
        (unreachable(Unreachable::Host), Err(Errno::HOSTUNREACH), Err(Errno::HOSTUNREACH)),
        (unreachable(Unreachable::Port), Err(Errno::CONNREFUSED), Err(Errno::CONNREFUSED)),
        (unreachable(Unreachable::Prohibited), Err(Errno::HOSTUNREACH), Err(Errno::ACCESS)),
    ];
    for (refusal, v4, v6) in cases {
        for (version, expected) in [(Version::V4, v4), (Version::V6, v6)] {
            let to = SocketAddr::new(server(version), 4321);
            let client = begin(&clients, to);
            let incoming = listener.wait_incoming().unwrap();
            assert_eq!(incoming.syn().local, to);
            assert_eq!(outcome(&client, std::time::Duration::ZERO), None, "nothing was said yet");
            match refusal {
                Some(refusal) => incoming.refuse(refusal),
                None => drop(incoming.accept().unwrap()),
            }
            assert_eq!(outcome(&client, PATIENCE), Some(expected), "{version:?} {refusal:?}");
        }
    }
    // A program that closes its socket while it connects says nothing; the answer is reset then.
    let to = SocketAddr::new(server(Version::V4), 4321);
    drop(begin(&clients, to));
    let late = listener.wait_incoming().unwrap().accept().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::ConnectionAborted);
}

/// Connections from anywhere, also from a loopback address, into the namespace; a listener of the kernel's has none of them to accept until they are
/// released.
#[test]
fn the_kernel_accepts_what_is_released() {
    let Some((clients, inside)) = clients() else { return };
    for (version, from) in
        [(Version::V4, "198.51.100.4:4000"), (Version::V6, "[2001:db8:9::4]:4000")]
    {
        let at = SocketAddr::new(crate::support::kernel_address(version), 0);
        let listener = clients.run(|| net::TcpListener::bind(at)).unwrap().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (from, to) = (from.parse().unwrap(), listener.local_addr().unwrap());
        let connect = || {
            let held = TcpStream::connect_held(&inside, Some(from), to, None, PATIENCE).unwrap();
            held.wait_answered(Some(PATIENCE)).unwrap();
            assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
            held
        };
        drop(connect());
        let mut ours = connect().release().unwrap();
        listener.set_nonblocking(false).unwrap();
        let (mut theirs, remote) = listener.accept().unwrap();
        assert_eq!(remote, from, "the remote's own address and port");
        ours.write_all(b"hello").unwrap();
        let mut bytes = [0; 5];
        theirs.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
    }
}

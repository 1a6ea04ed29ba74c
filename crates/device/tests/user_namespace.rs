//! Networks of an ordinary user's own. Entering a user namespace takes a process with one thread,
//! which no test of the usual harness is in, so this is a program of its own: without arguments it
//! starts itself again in each of the situations to be tested, and each of these prints what it
//! found.

use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use transom_device::Device;
use transom_device::diag::Destroyer;
use transom_device::namespace::{
    Namespace, UserNamespace, UserNamespaceError, enter_user_namespace,
};
use transom_device::private::sockets::{Caller, Family, Home, SocketMaker};
use transom_device::private::{InterfaceKind, PrivateError, PrivateNetwork};
use transom_device::tun::{Tun, TunError};

/// The user and group that systems agree to call nobody.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("--ordinary-user") => ordinary_user(),
        Some("--too-late") => too_late(),
        Some("--use-network") => use_network(),
        Some("--private-network") => private_network(),
        // What `cargo test` passes is not for us.
        _ => return all(),
    }
    ExitCode::SUCCESS
}

fn all() -> ExitCode {
    let this = std::env::current_exe().expect("a test knows its own path");
    let as_root = rustix::process::geteuid().is_root();
    let mut failed = false;
    let mut run = |title: &str, command: &mut Command| match command.status() {
        Ok(status) if status.success() => println!("test {title} ... ok"),
        // What unshare(1) answers when it is refused; a panic in the test gives 101.
        Ok(status) if status.code() == Some(1) => eprintln!("SKIPPED: {title}: {status}"),
        Ok(status) => {
            println!("test {title} ... FAILED ({status})");
            failed = true;
        }
        Err(error) => eprintln!("SKIPPED: {title}: {error}"),
    };
    let ordinary = |argument: &str| {
        let mut command = Command::new(&this);
        command.arg(argument).current_dir("/");
        if as_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    run("an_ordinary_user_gets_a_network", &mut ordinary("--ordinary-user"));
    run("an_ordinary_user_has_a_private_network", &mut ordinary("--private-network"));
    run("with_a_second_thread_it_is_too_late", &mut ordinary("--too-late"));
    // Here the user who is root inside is root outside too, and so may open /dev/net/tun.
    let mut mapped = Command::new("unshare");
    mapped.args(["--user", "--map-root-user"]).arg(&this).arg("--use-network");
    run("tun_works_in_a_user_namespace", &mut mapped);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn ordinary_user() {
    match enter_user_namespace() {
        Ok(outcome) => assert_eq!(outcome, UserNamespace::Entered),
        Err(
            error @ (UserNamespaceError::Forbidden { .. }
            | UserNamespaceError::TooMany(_)
            | UserNamespaceError::Powerless { .. }),
        ) => {
            eprintln!("SKIPPED: {error:?}");
            return;
        }
        Err(error) => panic!("{error:?}"),
    }
    assert!(rustix::process::geteuid().is_root(), "root within");
    assert_eq!(enter_user_namespace().unwrap(), UserNamespace::Entered, "again is harmless");
    use_network();
}

/// Sockets of a private network, without any privilege outside; by a veth pair where TUN is not for this user.
fn private_network() {
    if let Err(error) = enter_user_namespace() {
        eprintln!("SKIPPED: {error:?}");
        return;
    }
    let builder = || {
        let builder = PrivateNetwork::builder().address("192.0.2.1/24".parse().unwrap());
        builder.address("2001:db8::1/64".parse().unwrap())
    };
    let may_open_tun = std::fs::File::options().write(true).open("/dev/net/tun").is_ok();
    if !may_open_tun {
        let refused = builder().kind(InterfaceKind::Tun).open().unwrap_err();
        assert!(matches!(refused, PrivateError::Tun(TunError::Open(_))), "{refused:?}");
    }
    let (network, mut device) = builder().open().expect("a private network");
    assert_eq!(device.is_veth(), !may_open_tun);
    let mut maker = SocketMaker::new(&network, 2).expect("a thread inside");
    let caller = Caller::ourselves(&Home::here().unwrap()).unwrap();
    let has_v6 = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    let has_v6 = has_v6.is_ok_and(|off| off.trim() == "0");
    for (family, to) in [
        (Family::V4, "198.51.100.7:80"),
        (Family::V4, "127.0.0.1:80"),
        (Family::V6, "[2001:db8:7::7]:80"),
        (Family::V6, "[::1]:80"),
    ] {
        if family == Family::V6 && !has_v6 {
            continue;
        }
        let to: std::net::SocketAddr = to.parse().unwrap();
        let socket = maker.take(family, &caller).expect("a socket");
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        let begun = rustix::net::connect(&socket, &to);
        assert_eq!(begun, Err(rustix::io::Errno::INPROGRESS), "{to}");
        // The SYN was sent within the call; other packets may stand before it.
        let mut found = false;
        while let Ok(packet) = device.recv() {
            let bytes = packet.bytes();
            let destination =
                if to.is_ipv4() { bytes[16..20].to_vec() } else { bytes[24..40].to_vec() };
            found |= match to.ip() {
                std::net::IpAddr::V4(v4) => bytes[9] == 6 && destination == v4.octets(),
                std::net::IpAddr::V6(v6) => bytes[6] == 6 && destination == v6.octets(),
            };
            device.recycle(packet.buffer);
        }
        assert!(found, "the SYN to {to} did not come to the device");
        let mut destroyer = network.namespace().run(Destroyer::open).unwrap().unwrap();
        assert_eq!(destroyer.destroy_all().unwrap().destroyed, 1);
        let error = rustix::net::sockopt::socket_error(&socket).unwrap();
        assert_eq!(error, Err(rustix::io::Errno::CONNABORTED));
    }
}

fn too_late() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || stopped.recv());
    match enter_user_namespace() {
        Err(UserNamespaceError::MultiThreaded) => {}
        Err(UserNamespaceError::Forbidden { .. }) => {
            eprintln!("SKIPPED: this system does not look at threads before it refuses");
        }
        other => panic!("{other:?}"),
    }
    drop(stop);
    second.join().unwrap().unwrap_err();
}

/// Needs the right to a network namespace already; does what a user of the crate would do with it.
fn use_network() {
    assert_ne!(enter_user_namespace().ok(), None);
    let namespace = Namespace::new().expect("a network namespace");
    let peer = Namespace::new().expect("a second one");
    namespace.add_veth("one0", &peer, "two0").expect("a veth pair");

    let socket = namespace.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
    let address = socket.local_addr().unwrap();
    socket.send_to(b"to myself", address).unwrap();
    assert_eq!(socket.recv_from(&mut [0; 16]).unwrap(), (9, address));

    let builder = Tun::builder().address("192.0.2.1/24".parse().unwrap());
    let mut tun = match namespace.run(|| builder.open()).unwrap() {
        Ok(tun) => tun,
        Err(TunError::Open(error)) => {
            eprintln!("SKIPPED: no access to TUN for this user: {error}");
            return;
        }
        Err(error) => panic!("{error:?}"),
    };
    let socket = namespace.run(|| UdpSocket::bind("192.0.2.1:0")).unwrap().unwrap();
    socket.send_to(b"out", "192.0.2.2:9").unwrap();
    // Delivery into the queue happened within `send_to`; other packets may stand before it.
    let mut found = false;
    while let Ok(packet) = tun.recv() {
        found |= packet.bytes().ends_with(b"out");
        tun.recycle(packet.buffer);
    }
    assert!(found, "the datagram did not reach the device");
}

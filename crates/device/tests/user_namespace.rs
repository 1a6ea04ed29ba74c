//! Networks of an ordinary user's own. Entering a user namespace takes a process with one thread,
//! which no test of the usual harness is in, so this is a program of its own: without arguments it
//! starts itself again in each of the situations to be tested, and each of these prints what it
//! found.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, sockopt};
use transom_device::namespace::{Namespace, UserNamespaceError, enter_user_namespace};
use transom_device::private::{
    Caller, Change, Family, Home, InterfaceKind, MakerError, PrivateDevice, PrivateError,
    PrivateNetwork, PrivateSettings, SocketMaker,
};
use transom_device::tun::{Tun, TunError};
use transom_device::{Device, Diag, Outcome, TxPacket, cookie_of};
use transom_wire::offload::recompute_checksum;

const PATIENCE: Duration = Duration::from_secs(30);

/// The user and group that systems agree to call nobody.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("--ordinary-user") => ordinary_user(),
        Some("--too-late") => too_late(),
        Some("--use-network") => use_network(),
        Some("--maker") => transom_device::private::serve(std::io::stdin()).unwrap(),
        Some("--outside") => outside(&[InterfaceKind::Any, InterfaceKind::Veth]),
        Some("--outside-by-tun") => outside(&[InterfaceKind::Tun]),
        Some("--killed") => killed(),
        Some("--doomed") => doomed(),
        Some("--waiter") => waiter(),
        Some("--blocked") => blocked(),
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
    run("a_maker_makes_the_network_of_a_process_with_threads", &mut ordinary("--outside"));
    run("the_connections_of_a_killed_process_end", &mut ordinary("--killed"));
    // Root without capabilities may open /dev/net/tun. With the first of these the kernel lets it map itself, and with the second it makes a control group.
    const POWERLESS: [&str; 2] = ["--bounding-set=-all,+setfcap,+dac_override", "--inh-caps=-all"];
    let mut powerless = Command::new("setpriv");
    powerless.args(POWERLESS).arg(&this).arg("--outside-by-tun");
    run("a_maker_makes_tun_interfaces", &mut powerless);
    let mut blocked = Command::new("unshare");
    blocked.args(["--user", "--map-root-user", "sh", "-c"]);
    blocked.arg("echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv \"$@\"").arg("sh");
    blocked.args(POWERLESS).arg(&this).arg("--blocked");
    run("who_has_no_user_namespace_is_told_so", &mut blocked);
    // Here the user who is root inside is root outside too, and so may open /dev/net/tun.
    let mut mapped = Command::new("unshare");
    mapped.args(["--user", "--map-root-user"]).arg(&this).arg("--use-network");
    run("tun_works_in_a_user_namespace", &mut mapped);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn ordinary_user() {
    match enter_user_namespace() {
        Ok(()) => {}
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
    let namespace = || std::fs::read_link("/proc/self/ns/user").unwrap();
    let before = namespace();
    enter_user_namespace().expect("again is harmless");
    assert_eq!(namespace(), before);
    use_network();
}

/// Sockets of a private network, without any privilege outside; by a veth pair where TUN is not for this user.
fn private_network() {
    if let Err(error) = enter_user_namespace() {
        eprintln!("SKIPPED: {error:?}");
        return;
    }
    let settings = || {
        let mut settings = PrivateSettings::default();
        settings.addresses.push("192.0.2.1/24".parse().unwrap());
        settings.addresses.push("2001:db8::1/64".parse().unwrap());
        settings
    };
    let may_open_tun = std::fs::File::options().write(true).open("/dev/net/tun").is_ok();
    if !may_open_tun {
        let mut only_tun = settings();
        only_tun.kind = InterfaceKind::Tun;
        let refused = only_tun.open().unwrap_err();
        assert!(matches!(refused, PrivateError::Tun(TunError::Open(_))), "{refused:?}");
    }
    let (network, mut device) = settings().open().expect("a private network");
    assert_eq!(packet_socket(&device).is_some(), !may_open_tun);
    let mut maker = SocketMaker::new(&network, 2).expect("a thread inside");
    let caller = Caller::ourselves(&Home::here().unwrap()).unwrap();
    let connecting = connecting(&mut maker, &caller, &mut device);
    let mut diag = network.namespace().run(Diag::open).unwrap().unwrap();
    assert_eq!(diag.destroy_all().unwrap().destroyed, connecting.len());
    for (socket, to) in connecting {
        let error = rustix::net::sockopt::socket_error(&socket).unwrap();
        assert_eq!(error, Err(rustix::io::Errno::CONNABORTED), "{to}");
    }
}

/// The socket on the far end of a veth pair; none where the device has a TUN interface.
fn packet_socket(device: &PrivateDevice) -> Option<BorrowedFd<'_>> {
    let carrier =
        device.poll_parts().map_or_else(|| device.poll_fd(), |[carrier, _]| Some(carrier));
    carrier.filter(|fd| sockopt::socket_domain(fd) == Ok(AddressFamily::PACKET))
}

/// Sockets that connect to an address of each kind. The SYN of each has come to the device.
fn connecting(
    sockets: &mut SocketMaker,
    caller: &Caller,
    device: &mut PrivateDevice,
) -> Vec<(OwnedFd, SocketAddr)> {
    let has_v6 = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    let has_v6 = has_v6.is_ok_and(|off| off.trim() == "0");
    let mut connecting = Vec::new();
    for (family, to) in [
        (Family::V4, "198.51.100.7:80"),
        (Family::V4, "127.0.0.1:80"),
        (Family::V6, "[2001:db8:7::7]:80"),
        (Family::V6, "[::1]:80"),
    ] {
        if family == Family::V6 && !has_v6 {
            continue;
        }
        let to: SocketAddr = to.parse().unwrap();
        let socket = sockets.take(family, caller).expect("a socket");
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        let begun = rustix::net::connect(&socket, &to);
        assert_eq!(begun, Err(rustix::io::Errno::INPROGRESS), "{to}");
        // The SYN was sent within the call; other packets may stand before it.
        let found = std::iter::from_fn(|| next_tcp(device)).any(|packet| match to.ip() {
            IpAddr::V4(ip) => packet[0] >> 4 == 4 && packet[16..20] == ip.octets(),
            IpAddr::V6(ip) => packet[0] >> 4 == 6 && packet[24..40] == ip.octets(),
        });
        assert!(found, "the SYN to {to} did not come to the device");
        connecting.push((socket, to));
    }
    connecting
}

/// Has the test program itself be the maker.
fn by_maker(kind: InterfaceKind) -> PrivateSettings {
    let mut settings = PrivateSettings::default();
    settings.kind = kind;
    settings.maker = vec!["/proc/self/exe".into(), "--maker".into()];
    settings
}

fn made(kind: InterfaceKind) -> Option<(PrivateNetwork, PrivateDevice)> {
    let mut settings = by_maker(kind);
    settings.addresses.push("192.0.2.1/24".parse().unwrap());
    settings.addresses.push("2001:db8::1/64".parse().unwrap());
    match settings.open() {
        Ok(made) => Some(made),
        Err(error @ PrivateError::Maker(MakerError::NoUserNamespace { .. })) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Looks at nothing but TCP.
fn next_tcp(device: &mut PrivateDevice) -> Option<Vec<u8>> {
    while let Ok(packet) = device.recv() {
        let bytes = packet.bytes().to_vec();
        device.recycle(packet.buffer);
        let protocol = if bytes[0] >> 4 == 4 { bytes[9] } else { bytes[6] };
        if protocol == 6 {
            return Some(bytes);
        }
    }
    None
}

fn address_of(socket: &impl AsFd) -> SocketAddr {
    SocketAddr::try_from(rustix::net::getsockname(socket).unwrap()).unwrap()
}

/// The supervisor stays an ordinary user with threads, outside of the user namespace that the network belongs to.
fn outside(kinds: &[InterfaceKind]) {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || stopped.recv());
    let users = || std::fs::read_link("/proc/self/ns/user").unwrap();
    let before = users();
    let may_open_tun = std::fs::File::options().write(true).open("/dev/net/tun").is_ok();
    if !may_open_tun {
        match by_maker(InterfaceKind::Tun).open().map(drop).unwrap_err() {
            PrivateError::Maker(MakerError::Failed { message, source }) => {
                assert_eq!(source.raw_os_error(), Some(libc::EACCES), "{message}");
                assert!(message.contains("/dev/net/tun"), "{message}");
            }
            PrivateError::Maker(MakerError::NoUserNamespace { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    for kind in kinds {
        let Some((network, device)) = made(*kind) else { continue };
        assert!(network.has_maker());
        let is_veth = *kind == InterfaceKind::Veth || !may_open_tun;
        let socket = packet_socket(&device);
        assert_eq!(socket.is_some(), is_veth);
        // Twice as much as the limit says: the kernel counts its own part too.
        let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        let limit = 2 * limit.trim().parse::<usize>().unwrap();
        let room = socket.map(|socket| sockopt::socket_recv_buffer_size(socket).unwrap());
        assert_eq!(room, is_veth.then_some(limit.min(64 << 20)));
        in_another_group(&network);
        use_made(network, device);
    }
    assert_eq!(users(), before, "this process stays where it was");
    drop(stop);
    second.join().unwrap().unwrap_err();
}

fn use_made(mut network: PrivateNetwork, mut device: PrivateDevice) {
    let home = Home::here().unwrap();
    let caller = Caller::ourselves(&home).unwrap();
    let mut sockets = SocketMaker::new(&network, 3).unwrap();
    assert!(network.namespace().run(|| ()).is_err(), "nobody else is let in");
    let mut diag = network.diag().unwrap();
    let mut events = network.destroy_events().unwrap();
    let mut connecting: Vec<OwnedFd> = connecting(&mut sockets, &caller, &mut device)
        .into_iter()
        .map(|(socket, to)| {
            let found = diag.find(address_of(&socket), to).unwrap().expect("it is found");
            assert_eq!(found.cookie, cookie_of(&socket).unwrap());
            assert_eq!(found.user, rustix::process::geteuid().as_raw());
            socket
        })
        .collect();
    // One is closed, and the others are destroyed.
    let closed = connecting.pop().unwrap();
    let cookie = cookie_of(&closed).unwrap();
    drop(closed);
    let deadline = Instant::now() + PATIENCE;
    let mut told = false;
    while !told {
        let outcome = events.take(|ended| told |= ended.cookie == cookie).unwrap();
        assert_eq!(outcome, Outcome::Complete);
        assert!(Instant::now() < deadline, "the end of a socket was not told");
        std::thread::sleep(Duration::from_millis(2));
    }
    let destroyed = network.destroy_all().unwrap();
    assert_eq!((destroyed.destroyed, destroyed.left), (connecting.len(), 0));
    for socket in connecting {
        let error = rustix::net::sockopt::socket_error(&socket).unwrap();
        assert_eq!(error, Err(rustix::io::Errno::CONNABORTED));
    }
    talk(&mut sockets, &caller, &mut device);
    changes(&mut network, &mut sockets, &caller);

    // The kernel takes the order to end sockets from us that the maker has opened, as the namespace is our user's.
    network.destroy_all().unwrap();
    let last = sockets.take(Family::V4, &caller).unwrap();
    rustix::net::bind(&last, &"192.0.2.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::listen(&last, 1).unwrap();
    let mut diag = network.diag().unwrap();
    assert_eq!(diag.destroy_all().unwrap().destroyed, 1);

    // Nothing ends when the network is dropped in order, but the maker.
    let kept = sockets.take(Family::V4, &caller).unwrap();
    rustix::net::bind(&kept, &"192.0.2.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::listen(&kept, 1).unwrap();
    assert!(has_children());
    drop((network, sockets));
    assert!(!has_children(), "the maker has ended");
    assert!(rustix::net::sockopt::socket_acceptconn(&kept).unwrap());
}

/// The maker makes a socket in its caller's control group, where this user may.
fn in_another_group(network: &PrivateNetwork) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let place = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(place) = place.and_then(|line| line.split(' ').nth(4)) else {
        return eprintln!("SKIPPED: no control groups of version 2");
    };
    let group = format!("{place}/transom-maker-{}", std::process::id());
    match std::fs::create_dir(&group) {
        Ok(()) => {}
        // It is somebody else's, unless the system has delegated it.
        Err(_) if !rustix::process::geteuid().is_root() => return,
        Err(error) => return eprintln!("SKIPPED: no control group here: {error}"),
    }
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let moved = std::fs::write(format!("{group}/cgroup.procs"), child.id().to_string());
    let home = Home::here().unwrap();
    let caller = Caller::of(child.id(), &home);
    let number = std::fs::metadata(&group).unwrap().ino();
    let made = SocketMaker::new(network, 1).unwrap().take(Family::V4, &caller.unwrap());
    let own = Caller::ourselves(&home).unwrap();
    let plain = SocketMaker::new(network, 1).unwrap().take(Family::V4, &own).unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    // The kernel lets its processes go a little later.
    let deadline = Instant::now() + PATIENCE;
    while std::fs::remove_dir(&group).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
        assert!(Instant::now() < deadline, "somebody is still in {group}");
        std::thread::sleep(Duration::from_millis(2));
    }
    if let Err(error) = moved {
        return eprintln!("SKIPPED: no process may be moved: {error}");
    }
    let group_of = |socket: OwnedFd| {
        rustix::net::bind(&socket, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        let cookie = cookie_of(&socket).unwrap();
        let all = network.diag().unwrap().tcp().unwrap();
        all.into_iter().find(|found| found.cookie == cookie).unwrap().control_group
    };
    assert_eq!(group_of(made.unwrap()), Some(number));
    assert_ne!(group_of(plain), Some(number));
}

fn has_children() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let mut lists = tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
    lists.any(|children| !children.trim().is_empty())
}

/// A program that talks to itself by way of the device, which sends everything back.
fn talk(sockets: &mut SocketMaker, caller: &Caller, device: &mut PrivateDevice) {
    let [server, client] = [(), ()].map(|()| sockets.take(Family::V4, caller).unwrap());
    rustix::net::bind(&server, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::listen(&server, 1).unwrap();
    let (at, server) = (address_of(&server), TcpListener::from(server));
    let worker = std::thread::spawn(move || {
        rustix::net::connect(&client, &at).unwrap();
        let mut client = TcpStream::from(client);
        client.write_all(&[7; 300]).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        let mut bytes = [0; 300];
        accepted.read_exact(&mut bytes).unwrap();
        bytes
    });
    let deadline = Instant::now() + PATIENCE;
    while !worker.is_finished() {
        assert!(Instant::now() < deadline, "the bytes did not arrive");
        while let Some(mut packet) = next_tcp(device) {
            recompute_checksum(&mut packet).unwrap();
            device.send(&TxPacket::whole(&packet)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(worker.join().unwrap(), [7; 300]);
}

fn changes(network: &mut PrivateNetwork, sockets: &mut SocketMaker, caller: &Caller) {
    let mut bind = || {
        let socket = sockets.take(Family::V4, caller).unwrap();
        rustix::net::bind(&socket, &"192.0.2.77:0".parse::<SocketAddr>().unwrap()).is_ok()
    };
    let address = "192.0.2.77/24".parse().unwrap();
    assert!(!bind());
    network.change(Change::AddAddress(address)).unwrap();
    assert!(bind());
    let again = std::io::Error::from(network.change(Change::AddAddress(address)).unwrap_err());
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists, "{again:?}");
    network.change(Change::RemoveAddress(address)).unwrap();
    assert!(!bind());
    network.change(Change::AddBindable(address)).unwrap();
    assert!(bind());
    network.change(Change::RemoveBindable(address)).unwrap();
    assert!(!bind());
    let route = Change::AddRoute("203.0.113.0/24".parse().unwrap(), None);
    network.change(route).unwrap();
}

/// Kills a process that has a private network, while another one has a socket in it.
fn killed() {
    let mut doomed = Command::new("/proc/self/exe");
    let output = doomed.arg("--doomed").stderr(Stdio::inherit()).output().unwrap();
    // The pipe is closed when the last who can write into it has gone, which is the waiter.
    match &*output.stdout {
        b"SKIPPED" => {}
        said => assert_eq!(String::from_utf8_lossy(said), "waits; aborted"),
    }
}

fn doomed() {
    let Some((network, _device)) = made(InterfaceKind::Any) else {
        return print!("SKIPPED");
    };
    let mut sockets = SocketMaker::new(&network, 1).unwrap();
    let caller = Caller::ourselves(&Home::here().unwrap()).unwrap();
    let socket = sockets.take(Family::V4, &caller).unwrap();
    rustix::io::ioctl_fionbio(&socket, true).unwrap();
    let to: SocketAddr = "198.51.100.7:80".parse().unwrap();
    rustix::net::connect(&socket, &to).unwrap_err();
    let mut waiter = Command::new("/proc/self/exe").arg("--waiter").stdin(socket).spawn().unwrap();
    // It ends without a word to anybody.
    let ourselves = rustix::process::getpid();
    rustix::process::kill_process(ourselves, rustix::process::Signal::KILL).unwrap();
    waiter.wait().unwrap();
}

fn waiter() {
    print!("waits; ");
    let socket = std::io::stdin();
    let mut ready = [PollFd::new(&socket, PollFlags::OUT)];
    let patience = Timespec::try_from(PATIENCE).unwrap();
    if poll(&mut ready, Some(&patience)).unwrap() == 0 {
        return print!("for ever");
    }
    match rustix::net::sockopt::socket_error(&socket).unwrap() {
        Err(rustix::io::Errno::CONNABORTED) => print!("aborted"),
        other => print!("{other:?}"),
    }
}

fn blocked() {
    let error = by_maker(InterfaceKind::Any).open().map(drop).unwrap_err();
    assert!(matches!(error, PrivateError::Maker(MakerError::NoUserNamespace { .. })), "{error:?}");
    let said = error.to_string();
    for word in ["user namespace", "user.max_user_namespaces"] {
        assert!(said.contains(word), "{said}");
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
    enter_user_namespace().unwrap();
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

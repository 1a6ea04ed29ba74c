//! The kernel tells of the end of sockets, whatever they were doing; and one of them can be looked up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use transom_device::namespace::Namespace;
use transom_device::{
    DestroyEvents, Diag, KernelTcpState, Outcome, TcpSocket, cookie_of, namespace_of,
};

use crate::support::{PATIENCE, namespace};

const SYN_SENT: KernelTcpState = KernelTcpState::Other(2);

/// Waits until a socket with this number is told.
fn wait_for(events: &mut DestroyEvents, cookie: u64) -> TcpSocket {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut found = None;
        let outcome = events.take(|ended| {
            if ended.cookie == cookie {
                found = Some(ended);
            }
        });
        assert_eq!(outcome.unwrap(), Outcome::Complete);
        if let Some(found) = found {
            return found;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "the end of socket {cookie} was not told");
        let mut readable = [PollFd::new(events, PollFlags::IN)];
        poll(&mut readable, Some(&Timespec::try_from(left).unwrap())).unwrap();
    }
}

/// A namespace, what ends in it, and another one, where its way out leads and nobody answers.
fn silent() -> Option<(Namespace, DestroyEvents, Namespace)> {
    let namespace = namespace()?;
    let far = Namespace::new().unwrap();
    namespace.add_veth("one0", &far, "two0").unwrap();
    let mut interfaces = namespace.interfaces();
    interfaces.set_without_neighbours("one0").unwrap();
    interfaces.set_up("one0", true).unwrap();
    interfaces.add_address("one0", "192.0.2.1/24".parse().unwrap()).unwrap();
    interfaces.add_address("one0", "2001:db8::1/64".parse().unwrap()).ok();
    drop(interfaces);
    far.interfaces().set_up("two0", true).unwrap();
    let events = namespace.run(DestroyEvents::open).unwrap().unwrap();
    Some((namespace, events, far))
}

fn socket(namespace: &Namespace, family: AddressFamily) -> OwnedFd {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let kind = SocketType::STREAM;
    namespace.run(|| rustix::net::socket_with(family, kind, flags, None)).unwrap().unwrap()
}

fn name(socket: impl AsFd) -> SocketAddr {
    SocketAddr::try_from(rustix::net::getsockname(socket).unwrap()).unwrap()
}

fn connecting(namespace: &Namespace, to: SocketAddr) -> OwnedFd {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(namespace, family);
    let begun = rustix::net::connect(&socket, &to);
    assert_eq!(begun, Err(rustix::io::Errno::INPROGRESS), "{to}");
    socket
}

#[test]
fn a_socket_that_is_closed_while_it_connects_is_told_with_both_names() {
    let Some((namespace, mut events, _far)) = silent() else { return };
    for to in ["192.0.2.9:80", "[::ffff:192.0.2.9]:81"] {
        let to: SocketAddr = to.parse().unwrap();
        let socket = connecting(&namespace, to);
        let (local, cookie) = (name(&socket), cookie_of(&socket).unwrap());
        assert_eq!(events.take(|ended| panic!("{ended:?}")).unwrap(), Outcome::Complete);
        drop(socket);
        let ended = wait_for(&mut events, cookie);
        let shown = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
        assert_eq!((ended.local, ended.remote), (shown(local), shown(to)));
    }
}

#[test]
fn listeners_bound_and_unused_sockets_are_told() {
    let Some((namespace, mut events, _far)) = silent() else { return };
    for at in ["192.0.2.1:0", "0.0.0.0:0", "[::1]:0"] {
        let Ok(listener) = namespace.run(|| TcpListener::bind(at)).unwrap() else {
            eprintln!("SKIPPED: no socket at {at}");
            continue;
        };
        let (local, cookie) = (name(&listener), cookie_of(&listener).unwrap());
        drop(listener);
        let ended = wait_for(&mut events, cookie);
        assert_eq!((ended.local, ended.remote.port()), (local, 0));
        assert!(ended.remote.ip().is_unspecified());
    }
    let bound = socket(&namespace, AddressFamily::INET);
    rustix::net::bind(&bound, &"192.0.2.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    let (local, cookie) = (name(&bound), cookie_of(&bound).unwrap());
    drop(bound);
    assert_eq!(wait_for(&mut events, cookie).local, local);
    let unused = socket(&namespace, AddressFamily::INET);
    let cookie = cookie_of(&unused).unwrap();
    drop(unused);
    assert_eq!(wait_for(&mut events, cookie).local.port(), 0);
}

#[test]
fn both_ends_of_a_connection_are_told_when_both_have_closed() {
    let Some((namespace, mut events, _far)) = silent() else { return };
    let (mut client, mut server) = pair(&namespace);
    let cookies = [cookie_of(&client).unwrap(), cookie_of(&server).unwrap()];
    let names = [name(&client), name(&server)];
    client.write_all(b"word").unwrap();
    drop(client);
    assert_eq!(server.read_to_end(&mut Vec::new()).unwrap(), 4);
    drop(server);
    let mut ended = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while !cookies.iter().all(|cookie| ended.iter().any(|one: &TcpSocket| one.cookie == *cookie)) {
        assert_eq!(events.take(|one| ended.push(one)).unwrap(), Outcome::Complete);
        assert!(Instant::now() < deadline, "{cookies:?}, and only {ended:?} were told");
        std::thread::sleep(Duration::from_millis(5));
    }
    for (at, cookie) in cookies.into_iter().enumerate() {
        let one = ended.iter().find(|one| one.cookie == cookie).unwrap();
        assert_eq!((one.local, one.remote), (names[at], names[1 - at]));
    }
}

fn pair(namespace: &Namespace) -> (TcpStream, TcpStream) {
    namespace
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        })
        .unwrap()
}

#[test]
fn more_ends_than_the_kernel_remembers_are_reported_as_missed() {
    let Some((namespace, mut events, _far)) = silent() else { return };
    let kept = connecting(&namespace, "192.0.2.9:80".parse().unwrap());
    let small = 1 << 12;
    rustix::net::sockopt::set_socket_recv_buffer_size(&events, small).unwrap();
    namespace
        .run(|| {
            for _ in 0..2000 {
                rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            }
        })
        .unwrap();
    // The kernel tells of ends from a queue of work.
    let deadline = Instant::now() + PATIENCE;
    while events.take(|_| ()).unwrap() != Outcome::Missed {
        assert!(Instant::now() < deadline, "nothing was missed");
        std::thread::sleep(Duration::from_millis(5));
    }
    // What is there still can be told from what has ended.
    let cookies = namespace.run(|| Diag::open().unwrap().cookies().unwrap()).unwrap();
    assert_eq!(cookies, [cookie_of(&kept).unwrap()]);
}

#[test]
fn one_socket_is_found_by_its_names_and_no_listener_instead() {
    let Some((namespace, _events, _far)) = silent() else { return };
    let mut diag = namespace.run(Diag::open).unwrap().unwrap();
    let to = "192.0.2.9:80".parse().unwrap();
    let begun = connecting(&namespace, to);
    let found = diag.find(name(&begun), to).unwrap().expect("it is there");
    assert_eq!((found.state, found.cookie), (SYN_SENT, cookie_of(&begun).unwrap()));
    assert_eq!(found.user, rustix::process::geteuid().as_raw());
    assert_eq!(u64::from(found.inode), rustix::fs::fstat(&begun).unwrap().st_ino);
    let mapped = "[::ffff:192.0.2.9]:81".parse().unwrap();
    let begun = connecting(&namespace, mapped);
    let found = diag.find(name(&begun), mapped).unwrap().expect("it is there by both names");
    assert_eq!(found.cookie, cookie_of(&begun).unwrap());
    assert_eq!(found.remote, "192.0.2.9:81".parse().unwrap());
    let (client, server) = pair(&namespace);
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let there = |diag: &mut Diag, local, remote| {
        diag.find(local, remote).unwrap().map(|socket| socket.cookie)
    };
    let ends = (name(&client), name(&server));
    assert_eq!(there(&mut diag, ends.1, ends.0), Some(cookie_of(&server).unwrap()));
    // The kernel itself would show the listener for these.
    assert_eq!(there(&mut diag, name(&listener), ends.0), None);
    let expected = [client.as_fd(), server.as_fd(), listener.as_fd(), begun.as_fd()]
        .map(|socket| cookie_of(socket).unwrap());
    let cookies = diag.cookies().unwrap();
    assert!(expected.iter().all(|cookie| cookies.contains(cookie)), "{expected:?} {cookies:?}");
}

#[test]
fn a_socket_says_which_network_it_is_in() {
    let Some((namespace, _events, _far)) = silent() else { return };
    let inside = socket(&namespace, AddressFamily::INET);
    let again = socket(&namespace, AddressFamily::INET6);
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(namespace_of(&inside).unwrap(), namespace_of(&again).unwrap());
    assert_ne!(namespace_of(&inside).unwrap(), namespace_of(&outside).unwrap());
    assert!(cookie_of(rustix::pipe::pipe().unwrap().0).is_err());
}

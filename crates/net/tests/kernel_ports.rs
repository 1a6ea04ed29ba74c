//! Ports that the kernel says are free: reserved by bound sockets of its own, for as long as a listener or a connection has them.

use std::io::{ErrorKind, Read, Write};
use std::net::{self, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::thread::CapabilitySet;
use transom_device::memory::{MemoryConfig, pair};
use transom_device::namespace::Namespace;
use transom_net::{
    ConnectOptions, KernelPorts, PortRegistrar, PortSource, Stack, TcpListener, TcpStream,
};
use transom_stack::ListenConfig;

/// A stack at the loopback addresses of wherever its threads are. It talks to itself.
fn stack(ports: KernelPorts) -> Stack {
    let (device, _) = pair(&MemoryConfig::default()).unwrap();
    Stack::builder()
        .address([127, 0, 0, 1].into(), 8)
        .address("::1".parse().unwrap(), 128)
        .ports(PortSource::Kernel(ports))
        .start(device)
        .unwrap()
}

fn accept(listener: &TcpListener, stack: &Stack) -> (TcpStream, TcpStream) {
    let client = stack.connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Whether a program of the kernel's can listen there. Its sockets have SO_REUSEADDR, as std sets it.
fn is_free(at: SocketAddr) -> bool {
    match net::TcpListener::bind(at) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::AddrInUse => false,
        Err(error) => panic!("{error}"),
    }
}

/// Connections end by themselves, in a moment.
fn becomes_free(at: SocketAddr) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if is_free(at) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_port_is_the_kernels_or_ours() {
    let stack = stack(KernelPorts::default());
    for any in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
        let ours = stack.listen(any).unwrap();
        let at = ours.local_addr().unwrap();
        assert_ne!(at.port(), 0);
        assert!(!is_free(at), "{at}");
        drop(ours);
        assert!(is_free(at), "{at}");

        let kernels = net::TcpListener::bind(any).unwrap();
        let error = stack.listen(kernels.local_addr().unwrap()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::ADDRINUSE.raw_os_error()));
    }
    // The kernel also decides which addresses are local.
    let error = stack.listen("192.0.2.200:0").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
}

#[test]
fn a_dual_stack_listener_has_the_port_of_both_versions_and_v6_only_one() {
    let stack = stack(KernelPorts::default());
    for v6_only in [false, true] {
        let config = ListenConfig::default().with_v6_only(v6_only);
        let any = "[::]:0".parse().unwrap();
        let ours = TcpListener::bind_with(&stack, any, config).unwrap();
        let port = ours.local_addr().unwrap().port();
        assert_eq!(is_free(SocketAddr::from(([127, 0, 0, 1], port))), v6_only);
        assert!(!is_free(SocketAddr::new("::1".parse().unwrap(), port)));
    }
}

#[test]
fn the_port_stays_until_the_last_connection_has_gone() {
    let stack = stack(KernelPorts::default());
    let listener = stack.listen("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (mut client, mut server) = accept(&listener, &stack);
    let from = client.local_addr().unwrap();
    assert!(!is_free(from), "a connection's own port");
    drop(listener);
    assert!(!is_free(at), "there is a connection left");
    // The port is this host's: it may listen there again, beside the connection that is left.
    let again = stack.listen(at).unwrap();
    assert_eq!(stack.listen(at).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(again);
    assert!(!is_free(at));
    client.write_all(b"still there").unwrap();
    let mut buffer = [0; 11];
    server.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"still there");
    // The end that closes first is in TIME-WAIT, and keeps its port.
    drop(server);
    assert_eq!(client.read(&mut buffer).unwrap(), 0);
    drop(client);
    assert!(becomes_free(from));
    assert!(!is_free(at), "TIME-WAIT");
    drop(stack);
    assert!(becomes_free(at), "the stack has gone");
}

#[test]
fn a_refused_connection_keeps_nothing() {
    let stack = stack(KernelPorts::default());
    let from: SocketAddr = {
        let probe = net::TcpListener::bind("127.0.0.1:0").unwrap();
        probe.local_addr().unwrap()
    };
    for _ in 0..2 {
        let to: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let error =
            TcpStream::connect_with(&stack, to, &ConnectOptions::default().with_local(Some(from)))
                .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(becomes_free(from));
    }
    let busy = net::TcpListener::bind(from).unwrap();
    let to = busy.local_addr().unwrap();
    let error =
        TcpStream::connect_with(&stack, to, &ConnectOptions::default().with_local(Some(from)))
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}

#[test]
fn privileged_ports_need_the_privilege() {
    let stack = stack(KernelPorts::default());
    // Capabilities are a thread's own.
    let outcome = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = rustix::thread::capabilities(None).unwrap();
            sets.effective -= CapabilitySet::NET_BIND_SERVICE;
            rustix::thread::set_capabilities(None, sets).unwrap();
            (stack.listen("127.0.0.1:81"), net::TcpListener::bind("127.0.0.1:81"))
        });
        thread.join().unwrap()
    });
    let (ours, kernels) = (outcome.0.map(drop), outcome.1.map(drop));
    let Err(expected) = kernels else {
        eprintln!("SKIPPED: this system gives every port to everybody");
        return;
    };
    assert_eq!(ours.unwrap_err().raw_os_error(), expected.raw_os_error());
    assert_eq!(expected.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn so_reuseport_is_the_kernels() {
    let (one, other) =
        (stack(KernelPorts::default().with_reuse_port(true)), stack(KernelPorts::default()));
    let first = one.listen("127.0.0.1:0").unwrap();
    let at = first.local_addr().unwrap();
    let twin = stack(KernelPorts::default().with_reuse_port(true));
    let second = twin.listen(at).expect("both have the option, and the user is the same");
    assert_eq!(other.listen(at).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop((first, second));
    other.listen(at).unwrap();
}

#[test]
fn when_no_port_is_free_one_of_ours_serves_another_connection() {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => {
            eprintln!("SKIPPED: no network namespace here: {error:?}");
            return;
        }
    };
    namespace.set_sysctl("net.ipv4.ip_local_port_range", "40000 40001").unwrap();
    let stack = stack(KernelPorts::default());
    let connect = |at: SocketAddr| namespace.run(|| stack.connect(at)).unwrap();
    let listen = |port| {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        namespace.run(|| stack.listen(at)).unwrap().unwrap()
    };
    let listeners: Vec<_> = (1..=3).map(|nth| listen(2000 + nth)).collect();
    let places: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
    let streams: Vec<_> = [0, 0, 1, 1, 2, 2].map(|nth| connect(places[nth]).unwrap()).into();
    let mut ports: Vec<_> = streams.iter().map(|s| s.local_addr().unwrap().port()).collect();
    ports.sort_unstable();
    assert_eq!(ports, [40000, 40000, 40000, 40001, 40001, 40001]);
    let error = connect(places[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    // The port is free when the last of them has gone, and not before.
    for mut stream in streams {
        stream.set_linger(Some(Duration::ZERO)).unwrap();
        stream.write_all(b"x").unwrap();
        assert!(
            !namespace.run(|| is_free("127.0.0.1:40000".parse().unwrap())).unwrap()
                || !namespace.run(|| is_free("127.0.0.1:40001".parse().unwrap())).unwrap()
        );
    }
    for port in [40000, 40001] {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        assert!(namespace.run(|| becomes_free(at)).unwrap());
    }
}

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Registrar {
    told: Mutex<Vec<(bool, SocketAddr)>>,
    refuses: std::sync::atomic::AtomicBool,
}

impl PortRegistrar for Registrar {
    fn add(&self, socket: &OwnedFd, address: SocketAddr) -> std::io::Result<()> {
        let bound = SocketAddr::try_from(rustix::net::getsockname(socket)?).unwrap();
        assert_eq!(bound, address, "the socket is bound already");
        if self.refuses.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(std::io::Error::new(ErrorKind::PermissionDenied, "the policy says no"));
        }
        self.told.lock().unwrap().push((true, address));
        Ok(())
    }

    fn remove(&self, address: SocketAddr) {
        self.told.lock().unwrap().push((false, address));
    }
}

#[test]
fn a_registrar_is_told_once_of_each_port_and_may_refuse() {
    let registrar = Arc::new(Registrar::default());
    let stack = stack(KernelPorts::default().with_registrar(Some(registrar.clone())));
    let listener = stack.listen("0.0.0.0:0").unwrap();
    let at = listener.local_addr().unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], at.port()));
    let clients: Vec<_> = (0..3).map(|_| stack.connect(to).unwrap()).collect();
    let froms: Vec<_> = clients.iter().map(|client| client.local_addr().unwrap()).collect();
    let servers: Vec<_> = (0..3).map(|_| listener.accept().unwrap().0).collect();
    let added: Vec<_> = std::iter::once(at).chain(froms).map(|at| (true, at)).collect();
    assert_eq!(*registrar.told.lock().unwrap(), added);
    for stream in clients.iter().chain(&servers) {
        stream.set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop((listener, clients));
    drop(servers);
    drop(stack);
    let mut told = registrar.told.lock().unwrap().split_off(4);
    told.sort_unstable();
    let mut removed: Vec<_> = added.iter().map(|&(_, at)| (false, at)).collect();
    removed.sort_unstable();
    assert_eq!(told, removed);

    registrar.refuses.store(true, std::sync::atomic::Ordering::Relaxed);
    let stack = self::stack(KernelPorts::default().with_registrar(Some(registrar)));
    let error = stack.listen(at).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(is_free(at), "a port that was refused is given back");
}

//! Two stacks over tunnels in UDP: transfers whose every byte is accounted for, a path that takes less all of a sudden, congestion marks.

use std::net::Shutdown;
use std::sync::Arc;
use std::thread;

use crate::support::{PATIENCE, receive, send};
use transom_device::namespace::Namespace;
use transom_net::{Stack, TcpStream};

/// A stack on a device, opened in a namespace if there is one.
fn stack(namespace: Option<&Namespace>, word: &str) -> Stack {
    let open = || Stack::builder().device(word);
    match namespace {
        Some(namespace) => namespace.run(open).unwrap(),
        None => open(),
    }
    .unwrap_or_else(|error| panic!("{word}: {error}: {:?}", error.get_ref()))
}

fn pair(client: &Stack, server: &Stack, address: &str) -> (TcpStream, TcpStream) {
    let listener = server.listen(address).unwrap();
    let near = client.connect(address).unwrap();
    let far = listener.accept().unwrap().0;
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (near, far)
}

/// Sends so much both ways at once.
fn exchange(near: &TcpStream, far: &TcpStream, bytes: u64, seed: u64) {
    thread::scope(|scope| {
        let up = scope.spawn(|| {
            let sent = send(near, seed, bytes).unwrap();
            near.shutdown(Shutdown::Write).unwrap();
            sent
        });
        let down = scope.spawn(|| {
            let sent = send(far, !seed, bytes).unwrap();
            far.shutdown(Shutdown::Write).unwrap();
            sent
        });
        let arrived_there = scope.spawn(|| receive(far).unwrap());
        assert_eq!(receive(near).unwrap(), down.join().unwrap());
        assert_eq!(arrived_there.join().unwrap(), up.join().unwrap());
    });
}

#[test]
fn transfers_over_the_loopback_interface_take_no_privileges() {
    // A port that was free a moment ago.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = stack(None, &format!("udp:listen:127.0.0.1:{port}"));
    let clients: Vec<Stack> =
        (0..3).map(|_| stack(None, &format!("udp:127.0.0.1:{port}"))).collect();
    thread::scope(|scope| {
        for (nth, client) in clients.iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                let (near, far) = pair(client, server, &format!("10.9.0.1:{}", 8000 + nth));
                exchange(&near, &far, 5_000_000, nth as u64);
            });
        }
    });
    let counters = server.counters();
    assert_eq!((counters.bad_checksum, counters.malformed, counters.bad_tcp), (0, 0, 0));
}

/// Two ends with a router between them.
struct Path {
    near: Namespace,
    router: Namespace,
    far: Namespace,
}

impl Path {
    fn new() -> Option<Path> {
        let namespaces = (Namespace::new(), Namespace::new(), Namespace::new());
        let (Ok(near), Ok(router), Ok(far)) = namespaces else {
            eprintln!("SKIPPED: no network namespaces here");
            return None;
        };
        router.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
        near.add_veth("up", &router, "left").unwrap();
        far.add_veth("up", &router, "right").unwrap();
        for (namespace, name, address) in [
            (&near, "up", "192.0.2.1/25"),
            (&router, "left", "192.0.2.2/25"),
            (&far, "up", "192.0.2.129/25"),
            (&router, "right", "192.0.2.130/25"),
        ] {
            let mut interfaces = namespace.interfaces();
            interfaces.set_up(name, true).unwrap();
            interfaces.add_address(name, address.parse().unwrap()).unwrap();
        }
        let default = || "0.0.0.0/0".parse().unwrap();
        near.interfaces().add_route("up", default(), Some([192, 0, 2, 2].into())).unwrap();
        far.interfaces().add_route("up", default(), Some([192, 0, 2, 130].into())).unwrap();
        Some(Path { near, router, far })
    }

    /// The far link takes no more than this from now on.
    fn narrow(&self, mtu: u32) {
        self.router.interfaces().set_mtu("right", mtu).unwrap();
        self.far.interfaces().set_mtu("up", mtu).unwrap();
    }
}

#[test]
fn a_path_that_takes_less_all_of_a_sudden_is_found_out() {
    let Some(path) = Path::new() else { return };
    let path = Arc::new(path);
    let server = stack(Some(&path.far), "udp:listen:192.0.2.129:4000");
    let client = stack(Some(&path.near), "udp:192.0.2.129:4000");
    let (near, far) = pair(&client, &server, "10.9.0.1:8000");
    let before = near.info().unwrap().mss;
    thread::scope(|scope| {
        let narrowing = Arc::clone(&path);
        let exchanging = scope.spawn(|| exchange(&near, &far, 20_000_000, 7));
        // In the middle, wherever that is: the bytes arrive all the same.
        thread::sleep(std::time::Duration::from_millis(30));
        narrowing.narrow(1300);
        exchanging.join().unwrap();
    });
    // With connections that begin when the path is narrow already, and in the direction from the listener.
    let (near, far) = pair(&client, &server, "10.9.0.1:8001");
    exchange(&near, &far, 3_000_000, 8);
    // 1300 less outer headers (20 + 8), the tunnel's (8), and the packet's own (20 + 20 + 12 of options).
    for end in [&near, &far] {
        let mss = end.info().unwrap().mss;
        assert!(mss <= 1300 - 28 - 8 - 40 && mss < before, "{mss} of {before}");
    }
}

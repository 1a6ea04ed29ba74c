//! The same streams over other devices than memory and TUN. `xdp` and `shared` need what only the tests of the command have: see
//! `crates/cli/tests/exec/devices.rs`.

use crate::support::run;
use std::net::{SocketAddr, UdpSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_device::namespace::Namespace;
use transom_net::Stack;
use transom_net::tokio::{TcpListener, TcpStream};

/// A megabyte there and back.
async fn echoes(client: &Stack, server: &Stack, at: SocketAddr) {
    let listener = TcpListener::bind(server, at).await.unwrap();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut input, mut output) = stream.split();
        tokio::io::copy(&mut input, &mut output).await.unwrap();
    });
    let mut stream = TcpStream::connect(client, at).await.unwrap();
    let data: Vec<u8> = (0..1 << 20).map(|n| (n % 251) as u8).collect();
    let (mut input, mut output) = stream.split();
    let mut heard = Vec::new();
    let send = async {
        output.write_all(&data).await.unwrap();
        output.shutdown().await.unwrap();
    };
    let (_, read) = tokio::join!(send, input.read_to_end(&mut heard));
    read.unwrap();
    assert_eq!(heard, data);
    echo.await.unwrap();
}

#[test]
fn datagrams() {
    // A port that was free a moment ago.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Stack::builder().device(&format!("udp:listen:127.0.0.1:{port}")).unwrap();
    let client = Stack::builder().device(&format!("udp:127.0.0.1:{port}")).unwrap();
    run(async { echoes(&client, &server, "10.9.0.1:7".parse().unwrap()).await });
}

#[test]
fn two_stations_on_an_ethernet() {
    let namespaces = (Namespace::new(), Namespace::new());
    let (Ok(here), Ok(there)) = namespaces else {
        eprintln!("SKIPPED: no network namespaces here");
        return;
    };
    if let Err(error) = here.add_veth("left0", &there, "right0") {
        eprintln!("SKIPPED: no pair of Ethernet interfaces here: {error}");
        return;
    }
    let station = |namespace: &Namespace, interface: &str, number: u8| {
        namespace.interfaces().set_up(interface, true).unwrap();
        let builder = Stack::builder().address([192, 0, 2, number].into(), 24);
        namespace.run(|| builder.device(&format!("packet:{interface}"))).unwrap().unwrap()
    };
    let (client, server) = (station(&here, "left0", 1), station(&there, "right0", 2));
    run(async { echoes(&client, &server, "192.0.2.2:7".parse().unwrap()).await });
}

//! A transparent proxy between two networks of our own: the kernel's TCP is the client in one of them, and the server in the other.
//!
//! The proxy itself is `proxy.rs`. Here its two stacks get their networks.

mod proxy;

use anyhow::Context;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use transom::Stack;
use transom::device::namespace::Namespace;
use transom::device::tun::Tun;
use transom_examples::private_network;

fn main() -> anyhow::Result<()> {
    // The servers' network, in which the kernel is 10.9.0.1.
    let Some((servers, outer)) = private_network() else { return Ok(()) };
    // The clients', in which the kernel is 10.7.0.1. Everything else in 10.0.0.0/8 goes to the proxy.
    let clients = Namespace::new()?;
    let builder = Tun::builder().address("10.7.0.1/8".parse()?);
    let inner = clients.run(|| builder.open())??;

    let inside = Stack::builder().every_address().start(inner)?;
    let outside = Stack::builder().address("10.9.0.2".parse()?, 24).start(outer)?;
    std::thread::spawn(move || proxy::run(&inside, &outside));

    // A server of the kernel's, and a client that knows nothing of the proxy.
    let listener = servers.run(|| TcpListener::bind("10.9.0.1:80"))??;
    let server = std::thread::spawn(move || {
        let (mut stream, from) = listener.accept()?;
        println!("server: a connection from {from}");
        let mut question = String::new();
        stream.read_to_string(&mut question)?;
        stream.write_all(format!("you said {question:?}").as_bytes())
    });
    let mut client = clients.run(|| TcpStream::connect("10.9.0.1:80"))??;
    println!("client: connected to {}", client.peer_addr()?);
    client.write_all(b"hello")?;
    client.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    println!("client: heard {answer:?}");
    server.join().ok().context("the server panicked")??;

    // Nobody listens there, and the client hears just that.
    let refused = clients.run(|| TcpStream::connect("10.9.0.1:81"))?;
    println!("client: port 81: {}", refused.err().context("somebody answered")?);
    Ok(())
}

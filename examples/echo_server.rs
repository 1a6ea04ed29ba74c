//! An echo server on a user-level TCP, and the kernel's TCP as its client.
//!
//! The server side is what a program with `std::net` would look like, but for the first lines of `main`, which say where packets
//! go: a TUN device in a network namespace of our own.

use std::error::Error;
use std::io::{Read, Write};
use std::net::Shutdown;
use transom::{Stack, TcpListener};
use transom_examples::private_network;

fn serve(listener: TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        std::thread::spawn(move || {
            let mut reader = stream.try_clone()?;
            let copied = std::io::copy(&mut reader, &mut stream)?;
            println!("server: echoed {copied} bytes to {}", stream.peer_addr()?);
            stream.shutdown(Shutdown::Write)
        });
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // A network of our own, in which the kernel is 10.9.0.1. It takes no privileges, but must be made before there are threads.
    let Some((namespace, tun)) = private_network() else { return Ok(()) };

    let stack = Stack::builder().address("10.9.0.2".parse()?, 24).start(tun)?;
    let listener = stack.listen("10.9.0.2:7")?;
    std::thread::spawn(move || serve(listener));

    // From here on it is the kernel's TCP that talks.
    let mut client = namespace.run(|| std::net::TcpStream::connect("10.9.0.2:7"))??;
    client.write_all(b"Does anybody hear me?")?;
    client.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    println!("client: heard {answer:?}");
    assert_eq!(answer, "Does anybody hear me?");
    Ok(())
}

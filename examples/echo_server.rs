//! An echo server on a user-level TCP, and the kernel's TCP as its client.
//!
//! The server side is what a program with `std::net` would look like, but for the first lines of `main`, which say where packets
//! go: a TUN device in a network namespace of our own.

use std::error::Error;
use std::io::{Read, Write};
use std::net::Shutdown;
use transom_device::namespace::{Namespace, enter_user_namespace};
use transom_device::tun::Tun;
use transom_net::{Stack, TcpListener};

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
    // An ordinary user gets a user namespace first, which has to happen before there are threads.
    let network = enter_user_namespace().map_err(|error| error.to_string()).and_then(|_| {
        let namespace = Namespace::new().map_err(|error| error.to_string())?;
        let tun = namespace
            .run(|| Tun::builder().address("10.9.0.1/24".parse().unwrap()).open())
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        Ok((namespace, tun))
    });
    let (namespace, tun) = match network {
        Ok(network) => network,
        Err(reason) => {
            println!("SKIPPED: no network of our own: {reason}");
            return Ok(());
        }
    };

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

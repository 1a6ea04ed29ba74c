//! axum over a user-level TCP, and a client of the kernel's.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use std::error::Error;
use std::io::{Read, Write};
use std::net::SocketAddr;
use transom::Stack;
use transom::tokio::{TcpListener, TcpStream};
use transom_examples::private_network;

/// What `axum::serve` needs of a listener: the trait is axum's and the listener Transom's, so a program has these lines.
struct Served(TcpListener);

impl axum::serve::Listener for Served {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.0.accept().await {
                Ok(accepted) => return accepted,
                // A connection that ended before it was accepted, for example.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

async fn greet(Path(name): Path<String>) -> String {
    format!("Hello, {name}!")
}

fn main() -> Result<(), Box<dyn Error>> {
    // A network of our own, in which the kernel is 10.9.0.1. It must be made before there are threads.
    let Some((namespace, tun)) = private_network() else { return Ok(()) };
    let stack = Stack::builder().address("10.9.0.2".parse()?, 24).start(tun)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let listener = Served(runtime.block_on(TcpListener::bind(&stack, "10.9.0.2:80"))?);
    std::thread::spawn(move || {
        let pages = Router::new().route("/{name}", get(greet));
        runtime.block_on(async { axum::serve(listener, pages).await })
    });

    // From here on it is the kernel's TCP that talks.
    let mut client = namespace.run(|| std::net::TcpStream::connect("10.9.0.2:80"))??;
    client.write_all(b"GET /kernel HTTP/1.1\r\nHost: transom\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP header")?;
    println!("{body}");
    assert_eq!(body, "Hello, kernel!");
    Ok(())
}

//! Fetching a page with a user-level TCP from a server that uses the kernel's.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpListener;
use transom::Stack;
use transom_examples::private_network;

/// A web server of one page.
fn serve(listener: TcpListener) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        request.push(byte[0]);
    }
    let page = "<p>Hello from the kernel's TCP</p>\n".repeat(1000);
    write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len())
}

fn main() -> Result<(), Box<dyn Error>> {
    // A network of our own, in which the kernel is 10.9.0.1 and Transom will be 10.9.0.2.
    let Some((namespace, tun)) = private_network() else { return Ok(()) };
    let listener = namespace.run(|| TcpListener::bind("10.9.0.1:80"))??;
    std::thread::spawn(move || serve(listener));

    let stack = Stack::builder().address("10.9.0.2".parse()?, 24).start(tun)?;
    let mut stream = stack.connect("10.9.0.1:80")?;
    stream.write_all(b"GET / HTTP/1.0\r\nHost: 10.9.0.1\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP header")?;
    println!("{}", head.lines().next().unwrap_or_default());
    println!("{} bytes of page, round-trip time {:?}", body.len(), stream.info()?.min_rtt);
    assert_eq!(body.lines().count(), 1000);
    Ok(())
}

//! An HTTP client with a pool of connections, over a user-level TCP, and a server of the kernel's.

mod connector;

use connector::Connector;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use transom::Stack;
use transom_examples::private_network;

/// A web server of one page, which keeps connections open. It counts them.
fn serve(listener: &TcpListener, count: &AtomicUsize) {
    for stream in listener.incoming().flatten() {
        count.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || {
            let mut lines = BufReader::new(&stream).lines();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")?;
                }
            }
            std::io::Result::Ok(())
        });
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // A network of our own, in which the kernel is 10.9.0.1. It must be made before there are threads.
    let Some((namespace, tun)) = private_network() else { return Ok(()) };
    let listener = namespace.run(|| TcpListener::bind("10.9.0.1:80"))??;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || serve(&listener, &counted));

    let stack = Stack::builder().address("10.9.0.2".parse()?, 24).start(tun)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let connector = Connector::new(stack, None, None);
        let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
        for _ in 0..20 {
            let response = client.get("http://10.9.0.1/".parse()?).await?;
            assert_eq!(response.status(), 200);
            assert_eq!(response.into_body().collect().await?.to_bytes(), "hello\n");
        }
        println!("20 answers over {} connection(s)", count.load(Ordering::Relaxed));
        Ok(())
    })
}

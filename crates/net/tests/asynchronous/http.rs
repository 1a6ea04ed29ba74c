//! HTTP by hyper and axum: a server for curl, and a client and a server among themselves.

use crate::support::{Kernel, hosts, run};
use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Empty, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use tokio::io::{AsyncRead, AsyncWrite};
use transom_net::tokio::{TcpListener, TcpStream};

/// What `axum::serve` needs of a listener.
pub(crate) struct Served(pub(crate) TcpListener);

/// The address of a client, for `ConnectInfo`.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl axum::extract::connect_info::Connected<axum::serve::IncomingStream<'_, Served>> for Peer {
    fn connect_info(stream: axum::serve::IncomingStream<'_, Served>) -> Self {
        Peer(*stream.remote_addr())
    }
}

impl axum::serve::Listener for Served {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if let Ok(accepted) = self.0.accept().await {
                return accepted;
            }
            tokio::task::yield_now().await;
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

const LARGE: usize = 5_000_000;

fn pages() -> Router {
    let large = || async { Bytes::from((0..LARGE).map(|n| n as u8).collect::<Vec<_>>()) };
    let sum = |body: Bytes| async move {
        body.iter().map(|&byte| u64::from(byte)).sum::<u64>().to_string()
    };
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/large", get(large))
        .route("/sum", post(sum).layer(axum::extract::DefaultBodyLimit::disable()))
}

/// One request over a connection of its own.
pub(crate) async fn request<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> (hyper::StatusCode, Bytes)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    drop(sender);
    driver.abort();
    (status, body)
}

#[test]
fn hyper_asks_axum() {
    run(async {
        let (a, b) = hosts();
        let at = "10.0.0.2:80";
        let listener = Served(TcpListener::bind(&b, at).await.unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, pages()).await });
        let build = |path: &str| Request::builder().uri(path).header("host", "transom");
        let page = build("/").body(Full::default()).unwrap();
        let stream = TcpStream::connect(&a, at).await.unwrap();
        assert_eq!(request(stream, page).await, (hyper::StatusCode::OK, Bytes::from("hello")));
        let body = Bytes::from(vec![2; LARGE]);
        let sum = build("/sum").method("POST").body(Full::new(body)).unwrap();
        let stream = TcpStream::connect(&a, at).await.unwrap();
        assert_eq!(request(stream, sum).await.1, (2 * LARGE).to_string());

        // Many requests on one connection, one after the other.
        let stream = TcpStream::connect(&a, at).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..200 {
            sender.ready().await.unwrap();
            let page = build("/").body(Empty::<Bytes>::new()).unwrap();
            let response = sender.send_request(page).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
        }
        server.abort();
    });
}

#[test]
fn curl_asks_axum() {
    let Some(kernel) = Kernel::beside() else { return };
    run(async {
        let listener = TcpListener::bind(&kernel.stack, Kernel::ours(80)).await.unwrap();
        let server = tokio::spawn(async move { axum::serve(Served(listener), pages()).await });
        for (path, length) in [("", 5), ("large", LARGE)] {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--show-error", "--fail", "--max-time", "20"]);
            curl.arg(format!("http://{}/{path}", Kernel::ours(80))).stdout(Stdio::piped());
            let Some(mut child) = kernel.spawn(&mut curl) else { return };
            let mut out = child.0.stdout.take().unwrap();
            let read = tokio::task::spawn_blocking(move || {
                let mut body = Vec::new();
                std::io::Read::read_to_end(&mut out, &mut body).map(|_| body)
            });
            let body = read.await.unwrap().unwrap();
            assert_eq!(body.len(), length);
            assert!(path.is_empty() || body.iter().zip(0..).all(|(&byte, n)| byte == n as u8));
        }
        server.abort();
    });
}

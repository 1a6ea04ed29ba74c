//! How an HTTP client with a pool of connections, such as that of hyper-util or one built on it, gets its connections from Transom.

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use transom::Stack;
use transom::tokio::TcpStream;

/// Connects to a URI over a stack: to the address in it, or for a name to a fixed address. With `https` it makes a handshake of TLS too.
#[derive(Clone)]
pub(crate) struct Connector {
    stack: Stack,
    named: Option<IpAddr>,
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Connector {
    /// `named`: where servers with a name are. A program would ask DNS.
    pub(crate) fn new(
        stack: Stack,
        named: Option<IpAddr>,
        tls: Option<Arc<rustls::ClientConfig>>,
    ) -> Self {
        Connector { stack, named, tls }
    }

    async fn connect(self, uri: Uri) -> io::Result<ClientStream> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let secure = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or_else(|| invalid("the URI has no host"))?;
        let address = host.trim_matches(['[', ']']).parse().ok().or(self.named);
        let address = address.ok_or_else(|| invalid("the host is unknown"))?;
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let stream = TcpStream::connect(&self.stack, SocketAddr::new(address, port)).await?;
        stream.set_nodelay(true)?;
        if !secure {
            return Ok(ClientStream(TokioIo::new(Box::new(stream))));
        }
        let tls = self.tls.ok_or_else(|| invalid("there is no TLS"))?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(tls).connect(name, stream).await?;
        Ok(ClientStream(TokioIo::new(Box::new(stream))))
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = ClientStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<ClientStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// With TLS, or without.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// What the client reads from and writes to.
pub(crate) struct ClientStream(TokioIo<Box<dyn Stream>>);

impl Connection for ClientStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

//! Writing as Tokio's traits have it, for a whole stream and for its halves.

use std::io;
use std::net::Shutdown;

/// Ends the stream to the peer. A connection that is over needs no end.
pub(crate) fn shut_down(stream: &transom_net::TcpStream) -> io::Result<()> {
    match stream.shutdown(Shutdown::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        outcome => outcome,
    }
}

/// [`AsyncWrite`](tokio::io::AsyncWrite) for a type whose field `stream` writes as [`TcpStream`](crate::TcpStream) does.
macro_rules! async_write {
    ($kind:ty) => {
        impl tokio::io::AsyncWrite for $kind {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.stream.poll_write(context, bytes)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                buffers: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.stream.poll_write_vectored(context, buffers)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Does nothing: written data is already on its way.
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }

            fn poll_shutdown(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready($crate::output::shut_down(&self.stream))
            }
        }
    };
}

pub(crate) use async_write;

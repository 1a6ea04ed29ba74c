//! Halves of a stream.

use crate::input::Input;
use crate::output::{async_write, shut_down};
use crate::stream::TcpStream;
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use transom_net::TcpStream as Net;

/// The reading half of [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a> {
    stream: &'a Net,
    input: &'a mut Input,
}

/// The writing half of [`TcpStream::split`]. Dropping it changes nothing; `shutdown` ends the stream to the peer.
#[derive(Debug)]
pub struct WriteHalf<'a> {
    stream: &'a Net,
}

/// The reading half of [`TcpStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<Net>,
    input: Input,
}

/// The writing half of [`TcpStream::into_split`]. Dropping it ends the stream to the peer.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<Net>,
    ends_on_drop: bool,
}

/// The halves are not of the same stream.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these halves are not of the same stream")
    }
}

impl std::error::Error for ReuniteError {}

pub(crate) fn split(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    let TcpStream { stream, input } = stream;
    (ReadHalf { stream, input }, WriteHalf { stream })
}

pub(crate) fn into_split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let TcpStream { stream, input } = stream;
    let stream = Arc::new(stream);
    let reading = OwnedReadHalf { stream: Arc::clone(&stream), input };
    (reading, OwnedWriteHalf { stream, ends_on_drop: true })
}

impl OwnedReadHalf {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// [`ReuniteError`], which gives the halves back, if they are not of the same stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.stream, &other.stream) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        let OwnedReadHalf { stream, input } = self;
        match Arc::try_unwrap(stream) {
            Ok(stream) => Ok(TcpStream { stream, input }),
            // There were only two.
            Err(stream) => {
                let writing = OwnedWriteHalf { stream: Arc::clone(&stream), ends_on_drop: true };
                Err(ReuniteError(OwnedReadHalf { stream, input }, writing))
            }
        }
    }
}

impl OwnedWriteHalf {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// As [`OwnedReadHalf::reunite`].
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        other.reunite(self)
    }

    /// Drops the half without an end of the stream.
    pub fn forget(mut self) {
        self.ends_on_drop = false;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.ends_on_drop {
            let _ = shut_down(&self.stream);
        }
    }
}

/// What both reading halves can do.
macro_rules! reading {
    ($half:ty) => {
        impl $half {
            /// Waits until there is something to read. Cancel safe.
            pub async fn readable(&self) -> io::Result<()> {
                if !self.input.has_rest() {
                    self.stream.readable().await;
                }
                Ok(())
            }

            /// Reads what is there.
            ///
            /// # Errors
            /// As [`TcpStream::try_read`].
            pub fn try_read(&self, out: &mut [u8]) -> io::Result<usize> {
                self.input.try_read(&self.stream, out)
            }

            /// Reads without taking the data out of the stream. Cancel safe.
            ///
            /// # Errors
            /// As [`TcpStream::peek`].
            pub async fn peek(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let mut out = ReadBuf::new(out);
                let poll = |context: &mut Context<'_>| {
                    self.input.poll_peek(&self.stream, context, &mut out)
                };
                std::future::poll_fn(poll).await
            }
        }

        impl AsyncRead for $half {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                out: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.input.poll_read(&self.stream, context, out)
            }
        }

        impl AsyncBufRead for $half {
            fn poll_fill_buf(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<&[u8]>> {
                let half = self.get_mut();
                half.input.poll_fill(&half.stream, context)
            }

            fn consume(self: Pin<&mut Self>, bytes: usize) {
                self.get_mut().input.consume(bytes);
            }
        }
    };
}

/// What both writing halves can do.
macro_rules! writing {
    ($half:ty) => {
        impl $half {
            /// Waits until there is room to write. Cancel safe.
            pub async fn writable(&self) -> io::Result<()> {
                self.stream.writable().await;
                Ok(())
            }

            /// Writes what there is room for.
            ///
            /// # Errors
            /// As [`TcpStream::try_write`].
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                (&*self.stream).write(bytes)
            }
        }

        async_write!($half);
    };
}

/// What all halves can do.
macro_rules! addresses {
    ($($half:ty)*) => {$(
        impl $half {
            /// The peer's address.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.stream.peer_addr()
            }

            /// Our own address.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.stream.local_addr()
            }
        }
    )*};
}

reading!(ReadHalf<'_>);
reading!(OwnedReadHalf);
writing!(WriteHalf<'_>);
writing!(OwnedWriteHalf);
addresses!(ReadHalf<'_> WriteHalf<'_> OwnedReadHalf OwnedWriteHalf);

//! Streams and listeners for asynchronous programs, with the names and traits of Tokio.
//!
//! [`TcpStream`] and [`TcpListener`] are used like their namesakes in `tokio::net`, on a [`Stack`](crate::Stack). They need no
//! runtime of Tokio's: they work in any executor. No stream has a descriptor. A task that waits leaves its waker with the
//! stack, and the thread that works for the stack calls it.
//!
//! # Example
//!
//! Two hosts over an in-memory network:
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use transom_device::memory::{MemoryConfig, pair};
//! use transom_net::Stack;
//! use transom_net::tokio::{TcpListener, TcpStream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (left, right) = pair(&MemoryConfig::default())?;
//! let alice = Stack::builder().address("10.0.0.1".parse().unwrap(), 24).start(left)?;
//! let bob = Stack::builder().address("10.0.0.2".parse().unwrap(), 24).start(right)?;
//!
//! let listener = TcpListener::bind(&bob, "10.0.0.2:7").await?;
//! let server = tokio::spawn(async move {
//!     let (mut stream, _) = listener.accept().await?;
//!     let (mut input, mut output) = stream.split();
//!     tokio::io::copy(&mut input, &mut output).await
//! });
//!
//! let mut stream = TcpStream::connect(&alice, "10.0.0.2:7").await?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! let mut echo = String::new();
//! stream.read_to_string(&mut echo).await?;
//! assert_eq!(echo, "hello");
//! assert_eq!(server.await.unwrap()?, 5);
//! # Ok(())
//! # }
//! ```
//!
//! # Cancellation
//!
//! A future that is dropped before it is ready has taken nothing and lost nothing:
//!
//! - [`TcpListener::accept`]: a connection that was not given out stays for the next call.
//! - [`TcpStream::readable`], [`TcpStream::writable`], [`TcpStream::peek`]: they only look.
//! - `read`, `read_buf` and `fill_buf` of Tokio's extension traits: data that was not given out stays in the stream.
//! - `write` and `write_buf`: nothing was written.
//! - [`TcpStream::connect`]: the connection is closed.
//!
//! As with Tokio, `read_exact`, `read_to_end`, `read_line`, `write_all` and `copy` are not of this kind: what they have done so far is done, and nobody
//! says how much it was.
//!
//! # Reading without a copy
//!
//! The reading halves have [`AsyncBufRead`](tokio::io::AsyncBufRead), which lends the memory in which the data arrived. A slice cannot be lent across
//! the stack's lock. So `fill_buf` takes what one packet brought out of the receive queue, with its memory and without a copy, and lends it from the
//! half. The memory goes back to the device when it is consumed. [`TcpStream`] itself does not have the trait: a program that imports
//! `AsyncBufReadExt` could not call [`TcpStream::split`] any more, because the trait has a method of that name.

mod address;
mod blocking;
mod input;
mod listener;
mod split;
mod stream;

pub use address::ToSocketAddrs;
pub use blocking::drain;
pub use listener::TcpListener;
pub use split::{
    OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReadingHalf, ReuniteError, WriteHalf, WritingHalf,
};
pub use stream::TcpStream;

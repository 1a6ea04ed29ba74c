//! The frame of the command's web servers, `transom dash`, `transom lab play` and `--watch`: axum behind the [front](transom_device::serving::front) that all servers of pages have. The front reads the heads of
//! requests, says who may ask, and decides who has to go when there are too many.
//!
//! Each connection carries one request. So the front has a say before every one.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};

use anyhow::Context as _;
use axum::Router;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot};
use transom_device::serving::front::{Front, Guest, MOST_GUESTS};

/// So many complete requests may wait for axum before those are forgotten that have lost their places.
const WAITING: usize = MOST_GUESTS;

/// Listens at an address, and gives what a server there runs on.
pub(crate) fn listen(address: SocketAddr) -> anyhow::Result<(Front, Runtime)> {
    let front = Front::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the server")?;
    Ok((front, runtime))
}

/// No page of another site may show this one in a frame, or load it as something else.
pub(crate) async fn keep_to_itself(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Serves a page at an address until a signal ends it. `said` comes before the address in what the user reads.
pub(crate) fn until_interrupted<F: Future<Output = io::Result<()>>>(
    address: SocketAddr,
    said: &str,
    serve: impl FnOnce(Front, oneshot::Receiver<()>) -> anyhow::Result<F>,
) -> anyhow::Result<ExitCode> {
    let (front, runtime) = listen(address)?;
    let address = front.address();
    let (stop, stopped) = oneshot::channel();
    let stopped_by = crate::interrupt::StoppedBy::signal(move || {
        // It may have ended by itself.
        let _ = stop.send(());
    })?;
    let serving = serve(front, stopped)?;
    crate::output::note(format_args!("{said} http://{address}/"));
    let served = runtime.block_on(serving);
    // A browser that has not taken the last event by now does not get it.
    runtime.shutdown_background();
    served.context("the server has failed")?;
    Ok(stopped_by.status())
}

/// Serves behind `front` until it is stopped. Browsers keep no answer.
pub(crate) async fn serve(
    front: Front,
    router: Router,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let router = router.layer(map_response(for_once));
    let waiting = Arc::new(Waiting::default());
    let requests = Requests { waiting: waiting.clone() };
    let _serving = front.serve("front", move |guest| waiting.add(guest))?;
    let service = router.into_make_service_with_connect_info::<Visitor>();
    tokio::select! {
        served = async { axum::serve(requests, service).await } => served,
        _ = stopped => Ok(()),
    }
}

async fn for_once(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Complete requests that wait for axum. The front bounds them: a request keeps its place until the answer, for a minute at most. One that has lost its place
/// is forgotten.
#[derive(Default)]
struct Waiting {
    guests: Mutex<VecDeque<Guest>>,
    came: Notify,
}

impl Waiting {
    fn guests(&self) -> MutexGuard<'_, VecDeque<Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, guest: Guest) {
        let mut guests = self.guests();
        if guests.len() >= WAITING {
            guests.retain(Guest::has_place);
        }
        guests.push_back(guest);
        drop(guests);
        self.came.notify_one();
    }

    async fn next(&self) -> Guest {
        loop {
            let guest = self.guests().pop_front();
            match guest {
                Some(guest) if guest.has_place() => return guest,
                Some(_) => {}
                // Once the front has ended nobody comes. This server ends when it is told to.
                None => self.came.notified().await,
            }
        }
    }
}

/// The requests that the front lets through.
struct Requests {
    waiting: Arc<Waiting>,
}

/// Who asks; a handler that answers with a live stream says so.
#[derive(Clone, Debug)]
pub(crate) struct Visitor(Option<Arc<Guest>>);

impl Visitor {
    /// Makes the answer a live stream. Nothing, or the refusal if there are too many.
    pub(crate) fn refuses_stream(&self) -> Option<Response> {
        if self.0.as_ref().is_some_and(|guest| guest.becomes_stream()) {
            return None;
        }
        Some((StatusCode::SERVICE_UNAVAILABLE, "too many are watching\n").into_response())
    }
}

/// Who asks, as handlers get it.
pub(crate) type Asking = ConnectInfo<Visitor>;

impl Connected<IncomingStream<'_, Requests>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Requests>) -> Visitor {
        stream.remote_addr().clone()
    }
}

impl Listener for Requests {
    type Io = Conversation;
    type Addr = Visitor;

    async fn accept(&mut self) -> (Conversation, Visitor) {
        loop {
            let guest = self.waiting.next().await;
            // A second descriptor: the front keeps the first, to shut the connection down.
            let socket = guest.socket().try_clone().and_then(TcpStream::from_std);
            if let Ok(socket) = socket {
                let guest = Arc::new(guest);
                let visitor = Visitor(Some(Arc::clone(&guest)));
                return (Conversation { guest, read: 0, socket }, visitor);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Visitor> {
        Ok(Visitor(None))
    }
}

/// A connection whose request the front has read.
pub(crate) struct Conversation {
    guest: Arc<Guest>,
    /// So much of what the front has received has been read.
    read: usize,
    socket: TcpStream,
}

impl AsyncRead for Conversation {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let received = self.guest.received().get(self.read..).unwrap_or_default();
        if !received.is_empty() {
            let length = received.len().min(buffer.remaining());
            buffer.put_slice(received.get(..length).unwrap_or_default());
            self.read += length;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for Conversation {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        match written {
            Poll::Ready(_) => self.guest.wrote(),
            Poll::Pending => self.guest.waits_for_room(),
        }
        written
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;

//! The web server of the command: `transom dash`, `transom lab play` and `--watch` give it their routes and events.
//!
//! It is axum behind the [front](transom_device::serving::serve) that all servers of pages have. The front reads the heads of requests, says who may ask,
//! and decides who has to go when there are too many. Each connection carries one request. So the front has a say before every one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll};
use std::thread::JoinHandle;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use transom_device::serving::{self, Guest, MOST_GUESTS};

use crate::thread::lock;

/// So many complete requests may wait for axum before those are forgotten that have lost their places.
const WAITING: usize = MOST_GUESTS;

/// A server of pages on a thread of its own. It ends when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Its end is how the server learns that it is to end.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to serve at this address; port 0 is any that is free.
    pub(crate) fn start(address: SocketAddr, router: Router) -> anyhow::Result<Server> {
        let waiting = Arc::new(Waiting::default());
        let requests = Requests { waiting: waiting.clone() };
        let front = serving::serve(address, "front", move |guest| waiting.add(guest))
            .with_context(|| format!("cannot listen on {address}"))?;
        let address = front.address;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the server")?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(serve(requests, router, stopped));
            drop(front);
            // A browser that has not taken the last event by now does not get it.
            runtime.shutdown_background();
        };
        let thread = Some(crate::thread::spawn("web", work)?);
        Ok(Server { address, stop: Some(stop), thread })
    }

    /// The URL to open in a browser.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits until it has ended. Only a defect ends it before it is told to, and has been reported by then.
    fn join(&mut self) -> anyhow::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => bail!("the server has failed"),
            _ => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.join();
    }
}

/// Serves pages at an address until a signal ends it. `said` comes before the address in what the user reads.
pub(crate) fn until_interrupted(
    address: SocketAddr,
    said: &str,
    router: Router,
) -> anyhow::Result<ExitCode> {
    let mut server = Server::start(address, router)?;
    let stop = server.stop.take();
    let stopped_by = crate::interrupt::StoppedBy::signal(move || drop(stop))?;
    crate::output::note(format_args!("{said} {}", server.url()));
    server.join()?;
    Ok(stopped_by.status())
}

/// Answers what comes through the front until it is stopped.
async fn serve(requests: Requests, router: Router, stopped: oneshot::Receiver<()>) {
    let router = router.layer(map_response(for_this_page_once));
    let service = router.into_make_service_with_connect_info::<Visitor>();
    // By itself axum does not end (its documentation says so): what goes wrong with a connection ends that connection.
    tokio::select! {
        _ = async { axum::serve(requests, service).await } => {}
        _ = stopped => {}
    }
}

/// Browsers keep no answer. And no page of another site may show one in a frame, or load it as something else.
async fn for_this_page_once(mut response: Response) -> Response {
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONNECTION, "close"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A live stream of server-sent events (WHATWG HTML, section 9.2), or the refusal if there are too many. `begin` is called only if there is no refusal. `next`
/// gives an event, and what it needs for the one after.
pub(crate) fn events<S, T, F>(
    visitor: &Visitor,
    begin: impl FnOnce() -> S,
    mut next: impl FnMut(S) -> F + Send + 'static,
) -> Response
where
    S: Send + 'static,
    T: AsRef<str>,
    F: Future<Output = Option<(T, S)>> + Send + 'static,
{
    if !visitor.0.as_ref().is_some_and(|guest| guest.becomes_stream()) {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many are watching\n").into_response();
    }
    let events = futures_util::stream::unfold(begin(), move |state| {
        let next = next(state);
        async move {
            let (text, state) = next.await?;
            Some((Ok::<Event, Infallible>(Event::default().data(text)), state))
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// Complete requests that wait for axum. The front bounds them: a request keeps its place until the answer, for a minute at most. One that has lost its place
/// is forgotten.
#[derive(Default)]
struct Waiting {
    guests: Mutex<VecDeque<Guest>>,
    came: Notify,
}

impl Waiting {
    fn add(&self, guest: Guest) {
        let mut guests = lock(&self.guests);
        if guests.len() >= WAITING {
            guests.retain(Guest::has_place);
        }
        guests.push_back(guest);
        drop(guests);
        self.came.notify_one();
    }

    async fn next(&self) -> Guest {
        loop {
            let guest = lock(&self.guests).pop_front();
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

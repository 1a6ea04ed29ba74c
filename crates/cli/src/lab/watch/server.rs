//! The HTTP server of the live view.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{oneshot, watch};
use transom_device::serving::front::Front;
use transom_report as report;

use crate::lab::live::{Live, RunView, Stage};
use crate::web::{self, Asking, Visitor};

/// Between two events of a stream.
const INTERVAL: Duration = Duration::from_millis(250);

struct Server {
    live: Arc<Live>,
}

/// Serves until it is stopped.
pub(super) async fn serve(
    front: Front,
    live: Arc<Live>,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let server = Arc::new(Server { live });
    let router = Router::new()
        .route("/", get(first_page))
        .route("/events", get(overview_events))
        .route("/run/{number}", get(run_page))
        .route("/run/{number}/events", get(run_events))
        .with_state(server);
    web::serve(front, router, stopped).await
}

/// The run, if there is only one, or the list of all.
async fn first_page(State(server): State<Arc<Server>>) -> Response {
    if server.live.count() == 1 {
        return page_of(&server.live, 0);
    }
    Html(report::live_page(server.live.title(), "/events")).into_response()
}

async fn run_page(State(server): State<Arc<Server>>, Path(number): Path<usize>) -> Response {
    page_of(&server.live, number)
}

/// The page of a run: the stored one, or a live one.
fn page_of(live: &Live, number: usize) -> Response {
    let Some(run) = live.run(number) else { return nowhere() };
    if let (RunView { stage: Stage::Done(_), picture: None, .. }, Ok(page)) =
        (&run, std::fs::read_to_string(&run.page))
    {
        return Html(page).into_response();
    }
    Html(report::live_page(&run.label, &format!("/run/{number}/events"))).into_response()
}

fn nowhere() -> Response {
    (StatusCode::NOT_FOUND, "there is no such run\n").into_response()
}

/// The next event of a stream: the newest data if it has changed, and whether it is the last event.
enum Newest {
    /// The same as before, or nothing yet.
    Nothing,
    Page {
        text: Arc<str>,
        last: bool,
    },
    /// The stored page replaces the stream.
    Written,
}

async fn run_events(
    State(server): State<Arc<Server>>,
    ConnectInfo(visitor): Asking,
    Path(number): Path<usize>,
) -> Response {
    if server.live.run(number).is_none() {
        return nowhere();
    }
    let mut before: Option<Arc<str>> = None;
    stream(server, &visitor, move |live| {
        let Some(run) = live.run(number) else { return Newest::Nothing };
        match (run.picture, run.stage) {
            (Some(picture), _) => {
                let (text, last) = (picture.message(), picture.is_last());
                if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, &text)) {
                    return Newest::Nothing;
                }
                before = Some(text.clone());
                Newest::Page { text, last }
            }
            (None, Stage::Done(_)) if run.page.is_file() => Newest::Written,
            (None, _) => Newest::Nothing,
        }
    })
}

async fn overview_events(
    State(server): State<Arc<Server>>,
    ConnectInfo(visitor): Asking,
) -> Response {
    let mut before = String::new();
    stream(server, &visitor, move |live| {
        let last = live.has_ended();
        let (data, words) = live.overview();
        let text = report::message(&data, &words, last, 0);
        if text == before {
            return Newest::Nothing;
        }
        before.clone_from(&text);
        Newest::Page { text: text.into(), last }
    })
}

/// A stream that looks for new data after each change, once the last event has been sent.
fn stream(
    server: Arc<Server>,
    visitor: &Visitor,
    newest: impl FnMut(&Live) -> Newest + Send + 'static,
) -> Response {
    // Each stream may hold one page in memory.
    if let Some(refusal) = visitor.refuses_stream() {
        return refusal;
    }
    let changes = server.live.subscribe();
    let start = (server, newest, changes, Phase::First);
    let events = futures_util::stream::unfold(
        start,
        |(server, mut newest, mut changes, phase)| async move {
            if phase == Phase::Over {
                return None;
            }
            let (event, phase) = next(&server.live, &mut newest, &mut changes, phase).await?;
            Some((Ok::<Event, Infallible>(event), (server, newest, changes, phase)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// How far a stream is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    First,
    Later,
    Over,
}

async fn next(
    live: &Live,
    newest: &mut (impl FnMut(&Live) -> Newest + Send),
    changes: &mut watch::Receiver<u64>,
    phase: Phase,
) -> Option<(Event, Phase)> {
    if phase == Phase::Later {
        tokio::time::sleep(INTERVAL).await;
    }
    loop {
        changes.mark_unchanged();
        let ended = live.has_ended();
        match newest(live) {
            Newest::Page { text, last } => {
                let phase = if last { Phase::Over } else { Phase::Later };
                return Some((Event::default().data(&*text), phase));
            }
            Newest::Written => {
                return Some((Event::default().data("{\"written\":true}"), Phase::Over));
            }
            Newest::Nothing if ended => return None,
            Newest::Nothing => changes.changed().await.ok()?,
        }
    }
}

//! The answers of the live view's server.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use transom_report as report;

use crate::lab::live::{Live, RunView, Stage};
use crate::web::{self, Asking, Visitor};

/// Between two events of a stream.
const INTERVAL: Duration = Duration::from_millis(250);

/// The pages and their events.
pub(super) fn router(live: Arc<Live>) -> Router {
    Router::new()
        .route("/", get(first_page))
        .route("/events", get(overview_events))
        .route("/run/{number}", get(run_page))
        .route("/run/{number}/events", get(run_events))
        .with_state(live)
}

/// The run, if there is only one, or the list of all.
async fn first_page(State(live): State<Arc<Live>>) -> Response {
    if live.count() == 1 {
        return page_of(&live, 0);
    }
    Html(report::live_page(live.title(), "/events")).into_response()
}

async fn run_page(State(live): State<Arc<Live>>, Path(number): Path<usize>) -> Response {
    page_of(&live, number)
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
    State(live): State<Arc<Live>>,
    ConnectInfo(visitor): Asking,
    Path(number): Path<usize>,
) -> Response {
    if live.run(number).is_none() {
        return nowhere();
    }
    let mut before: Option<Arc<str>> = None;
    stream(live, &visitor, move |live| {
        let Some(run) = live.run(number) else { return Newest::Nothing };
        match (run.picture, run.stage) {
            (Some(picture), _) => {
                let (text, last) = (picture.message(), picture.done);
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

async fn overview_events(State(live): State<Arc<Live>>, ConnectInfo(visitor): Asking) -> Response {
    let mut before = String::new();
    stream(live, &visitor, move |live| {
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
    live: Arc<Live>,
    visitor: &Visitor,
    newest: impl FnMut(&Live) -> Newest + Send + 'static,
) -> Response {
    // Each stream may hold one page in memory.
    let begin = || (live.subscribe(), live, newest, Phase::First);
    web::events(visitor, begin, |(mut changes, live, mut newest, phase)| async move {
        match phase {
            Phase::First => {}
            Phase::Later => tokio::time::sleep(INTERVAL).await,
            Phase::Over => return None,
        }
        loop {
            changes.mark_unchanged();
            let ended = live.has_ended();
            let (text, phase) = match newest(&live) {
                Newest::Page { text, last: false } => (text, Phase::Later),
                Newest::Page { text, last: true } => (text, Phase::Over),
                Newest::Written => ("{\"written\":true}".into(), Phase::Over),
                Newest::Nothing if ended => return None,
                Newest::Nothing => {
                    changes.changed().await.ok()?;
                    continue;
                }
            };
            return Some((text, (changes, live, newest, phase)));
        }
    })
}

/// How far a stream is.
enum Phase {
    First,
    Later,
    Over,
}

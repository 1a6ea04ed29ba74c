//! The answers of the page's server.
//!
//! A thread looks while anybody watches, and keeps the newest look. Each watcher gets what has changed since the last event that it took, so that a slow
//! browser misses looks and costs no memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use transom_live::{Change, Changes, Collector, Filter, Snapshot};

use crate::web::{self, Asking};

/// How soon the first watcher is noticed.
const NOTICE: Duration = Duration::from_millis(50);

/// A look, and when it was.
#[derive(Debug, Default)]
pub(super) struct Look {
    snapshot: Snapshot,
    /// Seconds since 1970.
    at: f64,
}

/// The newest look.
pub(super) struct Looks {
    newest: watch::Receiver<Arc<Look>>,
    watchers: Arc<AtomicUsize>,
}

/// Looks from now on, while anybody watches.
pub(super) fn looks(mut collector: Collector, interval: Duration) -> anyhow::Result<Looks> {
    let (tell, newest) = watch::channel(Arc::new(Look::default()));
    let watchers = Arc::new(AtomicUsize::new(0));
    let count = watchers.clone();
    let work = move || {
        while !tell.is_closed() {
            if count.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(NOTICE);
                continue;
            }
            let snapshot = collector.look();
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            tell.send_replace(Arc::new(Look { snapshot, at: at.as_secs_f64() }));
            std::thread::sleep(interval);
        }
    };
    crate::thread::spawn("looks", work)?;
    Ok(Looks { newest, watchers })
}

/// The page and its events.
pub(super) fn router(looks: Looks) -> Router {
    Router::new()
        .route("/", get(|| async { Html(transom_report::dash_page()) }))
        .route("/check", get(check))
        .route("/events", get(events))
        .with_state(Arc::new(looks))
}

/// The filter in an address.
#[derive(Deserialize)]
struct Chosen {
    #[serde(default)]
    filter: String,
}

/// Says what is wrong with a filter; nothing if it is one.
async fn check(Query(chosen): Query<Chosen>) -> String {
    chosen.filter.parse::<Filter>().err().map(|error| error.to_string()).unwrap_or_default()
}

/// An event: the news for one watcher.
#[derive(Serialize)]
struct News<'a> {
    /// Whether the watcher is to forget what it knows.
    all: bool,
    at: f64,
    troubles: &'a [String],
    #[serde(flatten)]
    change: Change<'a>,
}

/// Counts a watcher for as long as it exists.
struct Watcher(Arc<AtomicUsize>);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All that is kept for a watcher.
struct Stream {
    _watcher: Watcher,
    newest: watch::Receiver<Arc<Look>>,
    filter: Filter,
    changes: Changes,
    first: bool,
}

async fn events(
    State(looks): State<Arc<Looks>>,
    ConnectInfo(visitor): Asking,
    Query(chosen): Query<Chosen>,
) -> Response {
    let filter = match chosen.filter.parse::<Filter>() {
        Ok(filter) => filter,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    // Each watcher costs a fingerprint of every connection.
    let begin = || {
        looks.watchers.fetch_add(1, Ordering::Relaxed);
        let watcher = Watcher(looks.watchers.clone());
        let mut newest = looks.newest.clone();
        newest.mark_unchanged();
        Stream { _watcher: watcher, newest, filter, changes: Changes::default(), first: true }
    };
    web::events(&visitor, begin, |mut stream| async move { Some((stream.next().await?, stream)) })
}

impl Stream {
    /// The next event, after the next look.
    async fn next(&mut self) -> Option<String> {
        self.newest.changed().await.ok()?;
        let look = self.newest.borrow_and_update().clone();
        let chosen = look.snapshot.rows.iter().filter(|row| self.filter.chooses(row));
        let change = self.changes.of(chosen);
        let all = std::mem::take(&mut self.first);
        let news = News { all, at: look.at, troubles: &look.snapshot.troubles, change };
        serde_json::to_string(&news).ok()
    }
}

#[cfg(test)]
mod tests;

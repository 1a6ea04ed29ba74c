//! The answers of the page's server. It keeps nothing for a browser but which run of it is the newest: the address has everything else.

use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::sync::mpsc;
use transom_lab::play::{self, Moment};
use transom_tcp::compose::{PRESETS, Unit, WORDS};
use transom_tcp::congestion::ALGORITHMS;
use transom_tcp::time::{Duration, Instant};

use super::bases::Bases;
use super::question::{Pairs, Question, value};
use super::work::{self, WhileHeard, Works};
use crate::web::{self, Asking};

/// Around a moment.
const AROUND: Duration = Duration::from_millis(250);
/// Decisions around a moment.
const DECISIONS: usize = 60;

struct Server {
    bases: Bases,
    works: Works,
}

/// The page and what it asks for.
pub(super) fn router(bases: Bases, works: Works) -> Router {
    Router::new()
        .route("/", get(|| async { Html(transom_report::play_page()) }))
        .route("/bases", get(bases_list))
        .route("/base", get(base))
        .route("/words", get(|| async { words() }))
        .route("/run", get(run))
        .route("/moment", get(moment))
        .route("/scenario", get(scenario))
        .route("/page", get(page))
        .layer(from_fn(refuse_others))
        .with_state(Arc::new(Server { bases, works }))
}

/// A page of another site makes no work here (W3C Fetch Metadata). A link to the page itself may be anywhere.
async fn refuse_others(request: Request, next: Next) -> Response {
    let site = request.headers().get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if request.uri().path() != "/" && matches!(site, Some("cross-site" | "same-site")) {
        return (StatusCode::FORBIDDEN, "this is for the page's own requests\n").into_response();
    }
    next.run(request).await
}

fn json(value: &serde_json::Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, value.to_string()).into_response()
}

fn refused(problem: String) -> Response {
    (StatusCode::BAD_REQUEST, problem).into_response()
}

async fn bases_list(State(server): State<Arc<Server>>) -> Response {
    json(&json!(server.bases.all()))
}

/// A scenario as values, with its points and forms.
async fn base(State(server): State<Arc<Server>>, Query(pairs): Query<Pairs>) -> Response {
    let question = match Question::read(&server.bases, &pairs) {
        Ok(question) => question,
        Err(problem) => return refused(problem),
    };
    let tree = match play::tree(&question.text) {
        Ok(tree) => tree,
        Err(error) => return refused(error.to_string()),
    };
    let settings: Vec<String> = question.variant.settings.iter().map(ToString::to_string).collect();
    json(&json!({
        "tree": tree,
        "points": question.points,
        "settings": settings,
        "seed": question.seed,
    }))
}

/// What texts may be made of, and the schema.
fn words() -> Response {
    let schema: serde_json::Value =
        serde_json::from_str(&transom_lab::scenario::schema()).unwrap_or_default();
    let units = Unit::ALL.iter().flat_map(|unit| unit.words()).chain(WORDS.iter().map(|w| w.name));
    let algorithms = ALGORITHMS.iter().map(|entry| entry.name);
    let presets = PRESETS.iter().map(|preset| preset.name);
    let mut units: Vec<&str> = units.chain(algorithms).chain(presets).collect();
    units.sort_unstable();
    units.dedup();
    let extensions: Vec<_> = transom_extensions::CATALOGUE
        .iter()
        .map(|entry| {
            json!({
                "name": entry.name, "summary": entry.summary, "source": entry.source,
                "parameters": entry.parameters.iter().map(|(name, words)| format!("{name}: {words}")).collect::<Vec<_>>(),
            })
        })
        .collect();
    json(&json!({ "schema": schema, "units": units, "extensions": extensions }))
}

/// A run, as a stream of pictures of which the last one is complete.
async fn run(
    State(server): State<Arc<Server>>,
    ConnectInfo(visitor): Asking,
    Query(pairs): Query<Pairs>,
) -> Response {
    let begin = || {
        let (tell, told) = mpsc::channel::<String>(2);
        let side: String = value(&pairs, "side").unwrap_or_default().chars().take(64).collect();
        let wanted = server.works.begin(&side);
        let heard = WhileHeard(wanted.clone());
        tokio::spawn(tell_of(server, pairs, wanted, tell));
        (told, heard)
    };
    web::events(&visitor, begin, |(mut told, heard)| async move {
        Some((told.recv().await?, (told, heard)))
    })
}

/// Makes a run once there is a place for it.
async fn tell_of(
    server: Arc<Server>,
    pairs: Pairs,
    wanted: work::Wanted,
    tell: mpsc::Sender<String>,
) {
    let Ok(place) = server.works.places.clone().acquire_owned().await else { return };
    let work = move || {
        // Between the question and a free place another may have been asked.
        if !wanted.holds() {
            return;
        }
        match Question::read(&server.bases, &pairs) {
            Ok(question) => work::run(&question, &wanted, &tell),
            Err(problem) => drop(tell.blocking_send(work::problem_message(&problem))),
        }
    };
    // A run that panics has a defect; the page then sees the end of its stream.
    let _ = tokio::task::spawn_blocking(work).await;
    drop(place);
}

/// Works on a question on a thread, for an answer in one piece. The work is for nobody once the request is gone.
async fn answer(
    server: Arc<Server>,
    pairs: Pairs,
    work: impl FnOnce(Question, &work::Wanted, &Pairs) -> Response + Send + 'static,
) -> Response {
    let side = format!("{}.once", value(&pairs, "side").unwrap_or_default());
    let wanted = server.works.begin(&side);
    let _heard = WhileHeard(wanted.clone());
    let gone = || (StatusCode::SERVICE_UNAVAILABLE, "nobody wants this any more\n").into_response();
    let Ok(place) = server.works.places.clone().acquire_owned().await else { return gone() };
    let done = tokio::task::spawn_blocking(move || {
        let _place = place;
        match Question::read(&server.bases, &pairs) {
            Ok(question) => work(question, &wanted, &pairs),
            Err(problem) => refused(problem),
        }
    });
    done.await.unwrap_or_else(|_| gone())
}

/// The decisions around a moment.
async fn moment(State(server): State<Arc<Server>>, Query(pairs): Query<Pairs>) -> Response {
    answer(server, pairs, |question, wanted, pairs| {
        let seconds: Option<f64> = value(pairs, "at").and_then(|at| at.parse().ok());
        let Some(seconds) = seconds.filter(|at| (0.0..=1e9).contains(at)) else {
            return refused("at is a time in seconds".into());
        };
        let at = Instant::from_nanos((seconds * 1e9) as u64);
        let moment = Moment { at, around: AROUND, most: DECISIONS };
        let (resolved, seed) = (&question.variant.resolved, question.seed);
        let found = play::decisions(resolved, seed, &question.directory, moment, || wanted.holds());
        match found {
            Ok(found) => json(&json!({ "at": seconds, "decisions": found.unwrap_or_default() })),
            Err(error) => refused(error.to_string()),
        }
    })
    .await
}

/// A file for the browser to keep.
fn file(name: &str, kind: &'static str, content: String) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    ([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], content)
        .into_response()
}

/// The scenario as a file.
async fn scenario(State(server): State<Arc<Server>>, Query(pairs): Query<Pairs>) -> Response {
    match Question::read(&server.bases, &pairs) {
        Ok(question) => {
            let name = &question.variant.resolved.scenario.name;
            file(&format!("{name}.toml"), "application/toml", question.text)
        }
        Err(problem) => refused(problem),
    }
}

/// The run as a page in one file.
async fn page(State(server): State<Arc<Server>>, Query(pairs): Query<Pairs>) -> Response {
    answer(server, pairs, |question, wanted, _| match work::whole(&question, wanted) {
        Ok(Some(data)) => {
            let name = &question.variant.resolved.scenario.name;
            file(&format!("{name}.html"), "text/html", transom_report::render(&data))
        }
        Ok(None) => refused("nobody wants this any more".into()),
        Err(problem) => refused(problem),
    })
    .await
}

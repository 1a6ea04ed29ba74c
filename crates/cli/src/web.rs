//! The frame of the command's web servers, `transom dash` and `--watch`: they run until they are stopped, and a server on the loopback interface
//! answers only requests that name this machine.

use std::io;
use std::net::{SocketAddr, TcpListener};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;

use crate::lab::may_ask;

/// Serves at `address` until it is stopped. Browsers keep no answer.
pub(crate) async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let router = router.layer(from_fn_with_state(address, only_from_here));
    let listener = tokio::net::TcpListener::from_std(listener)?;
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served,
        _ = stopped => Ok(()),
    }
}

async fn only_from_here(
    State(address): State<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if !may_ask(address, host) {
        let words = "this server is for the machine that it runs on\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

//! A client that keeps a pool of connections, as reqwest does: hyper-util's, with the connector of the examples.

use crate::connector::Connector;
use crate::http::{Peer, Served};
use crate::support::{hosts, run};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::collections::HashSet;
use transom_net::tokio::TcpListener;

type Pool = Client<Connector, Empty<Bytes>>;

/// Asks for the client's own address, as the server sees it.
async fn address(client: &Pool, uri: &str) -> String {
    let answer = client.get(uri.parse().unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[test]
fn connections_are_used_again() {
    run(async {
        let (a, b) = hosts();
        let listener = Served(TcpListener::bind(&b, "10.0.0.2:80").await.unwrap());
        let tell = |ConnectInfo(Peer(from)): ConnectInfo<Peer>| async move { from.to_string() };
        let pages = Router::new().route("/", get(tell));
        let pages = pages.into_make_service_with_connect_info::<Peer>();
        let server = tokio::spawn(async move { axum::serve(listener, pages).await });
        let at = Some("10.0.0.2".parse().unwrap());
        let client: Pool =
            Client::builder(TokioExecutor::new()).build(Connector::new(a.clone(), at, None));
        let mut seen = HashSet::new();
        for _ in 0..20 {
            seen.insert(address(&client, "http://transom.test/").await);
        }
        // An answer may be read before its connection is back in the pool; then the next request opens another one.
        assert!(seen.len() < 10, "{seen:?}");
        let several = (0..8).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { address(&client, "http://transom.test/").await })
        });
        for task in several.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        // Nobody listens there, and a name is nothing without an address.
        let nobody = client.get("http://10.0.0.2:81/".parse().unwrap()).await.unwrap_err();
        assert!(nobody.is_connect(), "{nobody:?}");
        let nameless: Pool =
            Client::builder(TokioExecutor::new()).build(Connector::new(a.clone(), None, None));
        nameless.get("http://transom.test/".parse().unwrap()).await.unwrap_err();
        server.abort();
    });
}

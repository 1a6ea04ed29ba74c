//! gRPC by tonic, over HTTP/2 by hyper: an echo whose messages are plain bytes.

use crate::support::{hosts, run};
use bytes::{Buf, BufMut, Bytes};
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Status, client, server};
use tower_service::Service;
use transom_net::tokio::{TcpListener, TcpStream};

/// Messages as they are.
#[derive(Clone, Copy)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, input: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(input.copy_to_bytes(input.remaining())))
    }
}

/// What the server does with a message.
struct Echo;

impl server::UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Ready<Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let message = request.into_inner();
        ready(match message.is_empty() {
            true => Err(Status::invalid_argument("there is nothing to say")),
            false => Ok(tonic::Response::new(message)),
        })
    }
}

/// A client's connection.
#[derive(Clone)]
struct Channel(SendRequest<Body>);

impl Service<Request<Body>> for Channel {
    type Response = Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

#[test]
fn tonic_echoes() {
    run(async {
        let (a, b) = hosts();
        let at = "10.0.0.2:50051";
        let listener = TcpListener::bind(&b, at).await.unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let service =
                hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async {
                    assert_eq!(request.uri().path(), "/test.Echo/Say");
                    Ok::<_, Infallible>(server::Grpc::new(Plain).unary(Echo, request).await)
                });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
        let stream = TcpStream::connect(&a, at).await.unwrap();
        let io = TokioIo::new(stream);
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (sender, connection) = handshake.await.unwrap();
        let driver = tokio::spawn(connection);
        let say = |message: Bytes| {
            let origin = "http://transom.test".parse().unwrap();
            let mut client = client::Grpc::with_origin(Channel(sender.clone()), origin);
            async move {
                client.ready().await.unwrap();
                let path = "/test.Echo/Say".parse().unwrap();
                let said = client.unary(tonic::Request::new(message), path, Plain).await;
                said.map(|response| response.into_inner())
            }
        };
        // Many at once, on one connection, of any size.
        let calls: Vec<_> = (0..50usize)
            .map(|number| {
                let message = Bytes::from(vec![number as u8; 1 + number * 4000]);
                tokio::spawn({
                    let said = say(message.clone());
                    async move { assert_eq!(said.await.unwrap(), message) }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        let refused = say(Bytes::new()).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        driver.abort();
        server.abort();
    });
}

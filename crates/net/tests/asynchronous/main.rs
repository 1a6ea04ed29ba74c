//! Tests of the crate from outside in one program, which is built and linked once.

#[path = "../../../../examples/tokio/connector.rs"]
mod connector;
mod support;

mod cancellation;
mod devices;
mod grpc;
mod http;
mod names;
mod pool;
mod streams;
mod tls;

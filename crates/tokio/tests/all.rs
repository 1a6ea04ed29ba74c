//! Tests of the crate from outside in one program, which is built and linked once.

mod support;

mod cancellation;
mod grpc;
mod http;
mod streams;
mod tls;

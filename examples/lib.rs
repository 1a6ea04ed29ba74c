//! Small programs that show how Transom is used:
//!
//! - `cargo run -p transom-examples --example in_memory`: two hosts in virtual time, no sockets, no threads.
//! - `cargo run -p transom-examples --example echo_server`: an echo server on a TUN device, and the kernel's TCP as its client.
//! - `cargo run -p transom-examples --example http_get`: fetching a page from a server that uses the kernel's TCP.
//!
//! The last two make a network namespace of their own and need no preparation; where the system allows no namespaces they say
//! so and end.

//! Small programs that show how Transom is used:
//!
//! - `cargo run -p transom-examples --example in_memory`: two hosts in virtual time, no sockets, no threads.
//! - `cargo run -p transom-examples --example my_controller`: a congestion control algorithm of one's own, beside Reno, in virtual time.
//! - `cargo run -p transom-examples --example adu`: data units over a path that loses, processed as they arrive, beside a stream.
//! - `cargo run -p transom-examples --example alf_file`, `alf_video`: a file and a video that go on past a lost unit, beside a stream.
//! - `cargo run -p transom-examples --example companion`: datagrams that leave at the rate of a connection beside them.
//! - `cargo run -p transom-examples --example echo_server`: an echo server on a TUN device, and the kernel's TCP as its client.
//! - `cargo run -p transom-examples --example transparent_proxy`: connections to any address, made again and refused as their destination refuses.
//! - `cargo run -p transom-examples --example http_get`: fetching a page from a server that uses the kernel's TCP.
//! - `cargo run -p transom-examples --example tokio_server`: axum over Transom, and a client of the kernel's.
//! - `cargo run -p transom-examples --example tokio_client`: an HTTP client with a pool of connections over Transom, and a server of the kernel's.
//!
//! The directory `classroom` is a crate of its own, with exercises for students: `docs/classroom/README.md`.
//!
//! Those with sockets make a network namespace of their own ([`private_network`]) and need no preparation; where the system allows no
//! namespaces they say so and end.

use transom::device::namespace::{Namespace, enter_user_namespace};
use transom::device::tun::Tun;

/// A network that nothing outside this process can see: a namespace in which the kernel is 10.9.0.1, and a TUN device that gets
/// whatever the kernel sends to the rest of 10.9.0.0/24.
///
/// Call it before there are threads. `None`, with the reason printed, where the system does not allow it.
pub fn private_network() -> Option<(Namespace, Tun)> {
    open().inspect_err(|error| println!("SKIPPED: no network of our own: {error:#}")).ok()
}

fn open() -> anyhow::Result<(Namespace, Tun)> {
    // An ordinary user may make a network in a user namespace, which can be entered only while there is one thread.
    enter_user_namespace()?;
    let namespace = Namespace::new()?;
    let builder = Tun::builder().address("10.9.0.1/24".parse()?);
    let tun = namespace.run(|| builder.open())??;
    Ok((namespace, tun))
}

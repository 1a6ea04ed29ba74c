//! The options with which a connection is opened.

use std::net::SocketAddr;
use std::time::Duration;
use transom_tcp::Profile;

/// How [`TcpStream::connect_with`](crate::TcpStream::connect_with) opens a connection. The default is what `connect` does.
///
/// ```
/// use std::time::Duration;
/// use transom_net::ConnectOptions;
///
/// let options = ConnectOptions::default()
///     .with_local(Some("10.0.0.1:4000".parse().unwrap()))
///     .with_timeout(Some(Duration::from_secs(3)));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Where it connects from. The stack chooses an unspecified address, and port 0.
    pub local: Option<SocketAddr>,
    /// Used instead of the stack's own profile.
    pub profile: Option<Profile>,
    /// When a call that blocks gives up; nothing waits until TCP does.
    pub timeout: Option<Duration>,
}

transom_tcp::setters! {
    ConnectOptions:
    with_local = local: Option<SocketAddr>,
    with_profile = profile: Option<Profile>,
    with_timeout = timeout: Option<Duration>,
}

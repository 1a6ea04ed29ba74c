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
/// let options = ConnectOptions::new()
///     .local("10.0.0.1:4000".parse().unwrap())
///     .timeout(Duration::from_secs(3));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    local: Option<SocketAddr>,
    profile: Option<Profile>,
    timeout: Option<Duration>,
}

impl ConnectOptions {
    /// The stack chooses the address and the port, the profile is the stack's own, and the wait ends when TCP gives up.
    pub fn new() -> Self {
        ConnectOptions::default()
    }

    /// Connects from `local`. The stack chooses an unspecified address, and port 0.
    pub fn local(mut self, local: SocketAddr) -> Self {
        self.local = Some(local);
        self
    }

    /// Uses `profile` instead of the stack's own.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Gives up after `timeout`. A call that does not block takes no notice of it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Where from, and with which profile.
    pub(crate) fn parts(&self) -> (Option<SocketAddr>, Option<Profile>) {
        (self.local, self.profile.clone())
    }

    /// How long a blocking call waits.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.timeout
    }
}

//! The sending end's state, sampled while it sends.

use super::network::PeerStream;
use transom_net::TcpStream;
use transom_tcp::ConnectionState;

/// The sender of a transfer.
pub(crate) enum Sender {
    Transom(TcpStream),
    Peer(PeerStream),
}

impl Sender {
    pub(crate) fn look(&self) -> Option<ConnectionState> {
        match self {
            Sender::Transom(stream) => stream.info().ok(),
            Sender::Peer(peer) => peer.info(),
        }
    }
}

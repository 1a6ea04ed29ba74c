//! `TCP_INFO` from the real connection, as `transom-sockets` shows it. Fields that have no counterpart are zero.

use transom_sockets::info::{TCP_CLOSE, TCP_ESTABLISHED, TCP_SYN_SENT, TCP_TIME_WAIT, TcpInfo};

use crate::socket::{Socket, State};

/// The structure that a socket shows. Programs take the fields they know.
pub(crate) fn bytes_of(socket: &Socket) -> Vec<u8> {
    let only = |state| TcpInfo { tcpi_state: state, ..TcpInfo::default() };
    let info = match (&socket.state, socket.info()) {
        (State::Listening(listening), _) => {
            TcpInfo::listening(listening.queue.len(), listening.backlog)
        }
        (_, Some(info)) => TcpInfo::of(&info),
        // Of a connection of the kernel's only that it is one.
        (State::Connected(_), None) => only(TCP_ESTABLISHED),
        (State::Connecting(_), None) => only(TCP_SYN_SENT),
        (State::New | State::Bound(_), None) => TcpInfo::closed(),
    };
    let state = if info.tcpi_state == TCP_TIME_WAIT { TCP_CLOSE } else { info.tcpi_state };
    TcpInfo { tcpi_state: state, ..info }.bytes()
}

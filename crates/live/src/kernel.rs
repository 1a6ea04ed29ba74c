//! The kernel's connections, by `sock_diag`, and what extensions do to them.

use crate::row::{Process, Row, Source};
use transom_device::TcpSocket;
use transom_tcp::time::Duration;
use transom_tcp::{ConnectionState, LimitedBy, Name, State, Untold};

/// A socket of the kernel's, which these processes have, as a row.
pub(crate) fn row(socket: &TcpSocket, processes: &[Process]) -> Row {
    let told = socket.info.and_then(|info| ConnectionState::of_tcp_info(info.as_bytes()));
    let mut tcp = told.unwrap_or(ConnectionState::unknown());
    let state = State::of_linux(socket.state.into());
    tcp.state = state.unwrap_or(tcp.state);
    tcp.untold.set(Untold::STATE, state.is_none());
    tcp.congestion = Name::cut(socket.congestion.as_deref().unwrap_or_default());
    // Of those in flight: the kernel keeps no total.
    tcp.counters.lost_bytes = tcp.lost;
    if tcp.untold.contains(Untold::BYTES_SENT) {
        tcp.counters.bytes_sent = tcp.snd_una.stream_offset();
    }
    Row {
        key: format!("k{:x}", socket.cookie),
        source: Source::Kernel { user: socket.user, processes: processes.to_vec() },
        local: socket.local,
        remote: socket.remote,
        tcp,
        send_rate: None,
        receive_rate: None,
        layers: Vec::new(),
        departed: Vec::new(),
        limits: Vec::new(),
    }
}

/// The times that the kernel counts for a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    busy: Duration,
    peer_window: Duration,
    send_buffer: Duration,
}

impl Times {
    pub(crate) fn of(state: &ConnectionState) -> Times {
        Times {
            busy: state.busy,
            peer_window: state.limited_peer_window,
            send_buffer: state.limited_send_buffer,
        }
    }
}

/// The limit of a sender, which the kernel does not name. It is where most of the busy time between two looks was spent. The kernel counts that
/// time for the peer's window and for the send buffer. The rest is the congestion window's, if that is full, and otherwise the application's.
pub(crate) fn limited_by(state: &ConnectionState, before: Times) -> LimitedBy {
    let now = Times::of(state);
    let spent = |now: Duration, before: Duration| now.as_nanos().saturating_sub(before.as_nanos());
    let busy = spent(now.busy, before.busy);
    if busy > 0 && spent(now.peer_window, before.peer_window) > busy / 2 {
        LimitedBy::PeerWindow
    } else if busy > 0 && spent(now.send_buffer, before.send_buffer) > busy / 2 {
        LimitedBy::SendBuffer
    } else if state.outstanding > 0 && state.in_flight.saturating_add(state.mss.into()) > state.cwnd
    {
        LimitedBy::CongestionWindow
    } else if state.unsent > 0 && state.outstanding > 0 {
        // There is something to send and room in the window: pacing, or a timer that is about to fire.
        LimitedBy::Pacing
    } else {
        LimitedBy::Application
    }
}

/// Adds what extensions of `transom kernel` ask of the kernel's sockets.
#[cfg(feature = "kernel")]
pub(crate) fn add_extensions(rows: &mut [Row]) {
    use crate::row::Limit;
    use std::collections::HashMap;
    use transom_kernel::status;

    // Without the directory nothing is attached; what cannot be read is not this user's.
    let Ok(reports) = status::reports() else { return };
    let attached = reports.into_iter().flat_map(|report| report.connections);
    let mut attached: HashMap<String, _> =
        attached.map(|connection| (format!("k{:x}", connection.cookie), connection)).collect();
    if attached.is_empty() {
        return;
    }
    for row in rows {
        let Some(connection) = attached.remove(&row.key) else { continue };
        row.tcp.congestion = Name::cut(&connection.grows_by);
        if let Some(phase) = transom_tcp::Phase::named(&connection.phase) {
            row.tcp.phase = phase;
            row.tcp.untold.remove(Untold::PHASE);
        }
        row.layers = connection.layers.into_iter().map(|layer| layer.name).collect();
        row.departed = connection.departed;
        let limits = connection.limits.into_iter().filter(|limit| limit.asked.is_some());
        row.limits = limits
            .map(|limit| Limit {
                variable: limit.variable,
                own: limit.own,
                asked: limit.asked,
                used: limit.used,
                by: limit.by,
            })
            .collect();
        row.clean();
    }
}

#[cfg(not(feature = "kernel"))]
pub(crate) fn add_extensions(_: &mut [Row]) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `struct tcp_info` with these words.
    fn info(words: &[(usize, u32)]) -> ConnectionState {
        let mut bytes = [0u8; 248];
        for (at, value) in words {
            bytes[*at..*at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        ConnectionState::of_tcp_info(&bytes).unwrap()
    }

    #[test]
    fn the_limit_is_where_the_time_went() {
        let (mss, window, busy) = ((16, 1000), (80, 10), (168, 100_000));
        let limit = |more: &[(usize, u32)]| {
            let words = [&[mss, window, busy][..], more].concat();
            limited_by(&info(&words), Times::default()).name()
        };
        assert_eq!(limit(&[(24, 10)]), "cwnd");
        assert_eq!(limit(&[(24, 3)]), "application");
        assert_eq!(limit(&[(24, 3), (144, 5000)]), "pacing");
        assert_eq!(limit(&[(24, 10), (176, 60_000)]), "peer-window");
        assert_eq!(limit(&[(24, 10), (184, 60_000)]), "send-buffer");
        // Time of before the last look does not count.
        let words = [mss, window, busy, (24, 10), (176, 60_000)];
        let before = Times::of(&info(&words));
        assert_eq!(limited_by(&info(&words), before), LimitedBy::CongestionWindow);
    }
}

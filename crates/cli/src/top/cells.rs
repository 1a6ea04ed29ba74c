//! The texts of a table of connections.

use transom_live::{Column, Row};
#[cfg(feature = "tui")]
use transom_tcp::Untold;
use transom_tcp::time::Duration;

use crate::columns::Side;
use crate::units::Bytes;

/// The head of a column, the side on which its cells are, and its least width.
pub(super) const fn head(column: Column) -> (&'static str, Side, u16) {
    match column {
        Column::Process => ("Process", Side::Left, 14),
        Column::Tcp => ("TCP", Side::Left, 7),
        Column::Local => ("Local", Side::Left, 16),
        Column::Remote => ("Remote", Side::Left, 16),
        Column::State => ("State", Side::Left, 12),
        Column::Send => ("Send/s", Side::Right, 11),
        Column::Receive => ("Receive/s", Side::Right, 11),
        Column::Cwnd => ("cwnd", Side::Right, 11),
        Column::Rtt => ("RTT ms", Side::Right, 9),
        Column::Retransmitted => ("Retrans", Side::Right, 9),
        Column::Limit => ("Limited by", Side::Left, 10),
        Column::Extensions => ("Extensions", Side::Left, 10),
    }
}

/// The text of one cell.
pub(super) fn cell(row: &Row, column: Column) -> String {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    match column {
        Column::Process => row.source.name(),
        Column::Tcp => row.source.tcp().to_owned(),
        Column::Local => row.local.to_string(),
        Column::Remote => row.remote.to_string(),
        Column::State => row.state().to_owned(),
        Column::Send => or_dash(row.send_rate.map(|rate| Bytes(rate).to_string())),
        Column::Receive => or_dash(row.receive_rate.map(|rate| Bytes(rate).to_string())),
        // A listener has no congestion window, whatever its kernel says.
        Column::Cwnd if row.state() == "listen" => "-".to_owned(),
        Column::Cwnd => {
            let window = row.window();
            or_dash((window > 0).then(|| Bytes(window).to_string()))
        }
        Column::Rtt => or_dash(row.tcp.srtt.map(milliseconds)),
        Column::Retransmitted => row.tcp.counters.retransmitted_segments.to_string(),
        Column::Limit if row.limit().is_empty() => "-".to_owned(),
        Column::Limit => row.limit().to_owned(),
        Column::Extensions => row.layers.join(" + "),
    }
}

/// A time in milliseconds.
pub(super) fn milliseconds(span: Duration) -> String {
    let micros = span.as_micros();
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// All that is known of a connection, in lines.
#[cfg(feature = "tui")]
pub(super) fn details(row: &Row) -> Vec<String> {
    let tcp = &row.tcp;
    let bytes = |value: Option<u64>| value.map_or_else(|| "-".into(), |n| Bytes(n).to_string());
    let told = |flag, value: u64| bytes((!tcp.untold.contains(flag)).then_some(value));
    let phase = if tcp.untold.contains(Untold::PHASE) { "" } else { tcp.phase.name() };
    let time = |value: Option<Duration>| value.map_or_else(|| "-".into(), milliseconds);
    let mut lines = vec![
        format!("{}, {}  {} → {}", row.source.name(), row.source.tcp(), row.local, row.remote),
        [row.state(), phase, &*tcp.congestion]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(", "),
        format!(
            "cwnd {}, ssthresh {}, in flight {}",
            Bytes(tcp.cwnd),
            bytes(Some(tcp.ssthresh).filter(|&bytes| bytes < u64::MAX)),
            Bytes(tcp.in_flight)
        ),
        format!(
            "peer's window {}, own window {}, segment {} B",
            told(Untold::SND_WND, tcp.snd_wnd),
            told(Untold::RCV_WND, tcp.rcv_wnd),
            tcp.mss
        ),
        format!(
            "RTT {} ms, least {} ms, timeout {} ms",
            time(tcp.srtt),
            time(tcp.min_rtt),
            milliseconds(tcp.effective_rto)
        ),
        format!(
            "{} sent again, {} lost, {} timeouts",
            tcp.counters.retransmitted_segments,
            Bytes(tcp.counters.lost_bytes),
            tcp.counters.timeouts
        ),
        format!(
            "sent {}, received {}",
            Bytes(tcp.counters.bytes_sent),
            Bytes(tcp.counters.bytes_accepted)
        ),
        format!("limited by {} ({})", cell(row, Column::Limit), tcp.limited_because.name()),
    ];
    if !row.layers.is_empty() {
        lines.push(format!("extensions: {}", row.layers.join(" + ")));
    }
    for limit in &row.limits {
        let asked = limit.asked.as_deref().unwrap_or("nothing");
        // The greatest value of a variable stands for none.
        let [own, used] = [limit.own, limit.used].map(|value| match value >> 63 {
            0 => value.to_string(),
            _ => "no limit".to_owned(),
        });
        lines.push(format!(
            "  {}: own {own}, asked {asked}, used {used}, decided by {}",
            limit.variable, limit.by
        ));
    }
    lines.extend(row.departed.iter().map(|departed| format!("  not attached: {departed}")));
    lines
}

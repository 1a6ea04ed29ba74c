//! The texts of a table of connections.

use transom_live::{Column, Row};

use crate::units::Bytes;

/// The head of a column.
pub(super) const fn title(column: Column) -> &'static str {
    match column {
        Column::Process => "Process",
        Column::Tcp => "TCP",
        Column::Local => "Local",
        Column::Remote => "Remote",
        Column::State => "State",
        Column::Send => "Send/s",
        Column::Receive => "Receive/s",
        Column::Cwnd => "cwnd",
        Column::Rtt => "RTT ms",
        Column::Retransmitted => "Retrans",
        Column::Limit => "Limited by",
        Column::Extensions => "Extensions",
    }
}

/// Whether it has numbers, which stand at the right.
pub(super) const fn is_number(column: Column) -> bool {
    matches!(
        column,
        Column::Send | Column::Receive | Column::Cwnd | Column::Rtt | Column::Retransmitted
    )
}

/// The text of one cell.
pub(super) fn cell(row: &Row, column: Column) -> String {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    match column {
        Column::Process => row.source.name(),
        Column::Tcp => row.source.tcp().to_owned(),
        Column::Local => row.local.to_string(),
        Column::Remote => row.remote.to_string(),
        Column::State => row.state.clone(),
        Column::Send => or_dash(row.send_rate.map(|rate| Bytes(rate).to_string())),
        Column::Receive => or_dash(row.receive_rate.map(|rate| Bytes(rate).to_string())),
        // A listener has no congestion window, whatever its kernel says.
        Column::Cwnd if row.state == "listen" => "-".to_owned(),
        Column::Cwnd => {
            let window = row.cwnd_limit().map_or(row.cwnd, |limit| limit.used);
            or_dash((window > 0).then(|| Bytes(window).to_string()))
        }
        Column::Rtt => or_dash(row.rtt_us.map(milliseconds)),
        Column::Retransmitted => row.retransmitted.to_string(),
        Column::Limit if row.limited_by.is_empty() => "-".to_owned(),
        Column::Limit => row.limited_by.clone(),
        Column::Extensions => row.layers.join(" + "),
    }
}

/// Microseconds as milliseconds.
pub(super) fn milliseconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// All that is known of a connection, in lines.
#[cfg(feature = "tui")]
pub(super) fn details(row: &Row) -> Vec<String> {
    let bytes = |value: Option<u64>| value.map_or_else(|| "-".into(), |n| Bytes(n).to_string());
    let time = |value: Option<u64>| value.map_or_else(|| "-".into(), milliseconds);
    let mut lines = vec![
        format!("{}, {}  {} → {}", row.source.name(), row.source.tcp(), row.local, row.remote),
        [&row.state, &row.phase, &row.congestion]
            .into_iter()
            .filter(|word| !word.is_empty())
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
        format!(
            "cwnd {}, ssthresh {}, in flight {}",
            Bytes(row.cwnd),
            bytes(row.ssthresh),
            Bytes(row.in_flight)
        ),
        format!(
            "peer's window {}, own window {}, segment {} B",
            bytes(row.send_window),
            bytes(row.receive_window),
            row.mss
        ),
        format!(
            "RTT {} ms, least {} ms, timeout {} ms",
            time(row.rtt_us),
            time(row.min_rtt_us),
            milliseconds(row.rto_us)
        ),
        format!(
            "{} sent again, {} lost, {} timeouts",
            row.retransmitted,
            Bytes(row.lost),
            row.timeouts
        ),
        format!("sent {}, received {}", Bytes(row.sent), Bytes(row.received)),
        format!("limited by {}", cell(row, Column::Limit)),
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

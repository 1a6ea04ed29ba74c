//! The columns of a table of connections.

use crate::row::Row;
use std::cmp::{Ordering, Reverse};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The process.
    Process,
    /// The TCP: Transom's or the kernel's.
    Tcp,
    /// The own end.
    Local,
    /// The other end.
    Remote,
    /// The state.
    State,
    /// The rate of sending.
    Send,
    /// The rate of receiving.
    Receive,
    /// The congestion window in use.
    Cwnd,
    /// The smoothed round-trip time.
    Rtt,
    /// Segments sent again.
    Retransmitted,
    /// The limit of the sender.
    Limit,
    /// The extensions.
    Extensions,
}

impl Column {
    /// All of them, from the left to the right.
    pub const ALL: [Column; 12] = [
        Column::Process,
        Column::Tcp,
        Column::Local,
        Column::Remote,
        Column::State,
        Column::Send,
        Column::Receive,
        Column::Cwnd,
        Column::Rtt,
        Column::Retransmitted,
        Column::Limit,
        Column::Extensions,
    ];

    /// Its name, as a user writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Column::Process => "process",
            Column::Tcp => "tcp",
            Column::Local => "local",
            Column::Remote => "remote",
            Column::State => "state",
            Column::Send => "send",
            Column::Receive => "receive",
            Column::Cwnd => "cwnd",
            Column::Rtt => "rtt",
            Column::Retransmitted => "retransmitted",
            Column::Limit => "limit",
            Column::Extensions => "extensions",
        }
    }

    /// The order of two connections: the most first for quantities, and by the alphabet for names.
    fn compare(self, a: &Row, b: &Row) -> Ordering {
        match self {
            Column::Process => a.source.name().cmp(&b.source.name()),
            Column::Tcp => a.source.tcp().cmp(b.source.tcp()),
            Column::Local => a.local.cmp(&b.local),
            Column::Remote => a.remote.cmp(&b.remote),
            Column::State => a.state().cmp(b.state()),
            Column::Send => Reverse(a.send_rate).cmp(&Reverse(b.send_rate)),
            Column::Receive => Reverse(a.receive_rate).cmp(&Reverse(b.receive_rate)),
            Column::Cwnd => b.window().cmp(&a.window()),
            Column::Rtt => b.tcp.srtt.cmp(&a.tcp.srtt),
            Column::Retransmitted => {
                let again = |row: &Row| row.tcp.counters.retransmitted_segments;
                again(b).cmp(&again(a))
            }
            Column::Limit => a.limit().cmp(b.limit()),
            Column::Extensions => (b.layers.len(), &a.layers).cmp(&(a.layers.len(), &b.layers)),
        }
    }

    /// Puts connections in order. Those that are equal keep an order of their own, so that they do not jump from one look to the next.
    pub fn sort(self, rows: &mut [&Row], reversed: bool) {
        rows.sort_by(|a, b| {
            let order = self.compare(a, b);
            let order = if reversed { order.reverse() } else { order };
            order.then_with(|| a.key.cmp(&b.key))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    #[test]
    fn the_fastest_come_first_and_equals_keep_their_order() {
        let mut rows: Vec<Row> = (0..4).map(|n| row(1, n, "10.0.0.1:1", "10.0.0.2:2")).collect();
        for (row, rate) in rows.iter_mut().zip([Some(5), None, Some(9), Some(5)]) {
            row.send_rate = rate;
        }
        let order = |reversed| {
            let mut sorted: Vec<&Row> = rows.iter().rev().collect();
            Column::Send.sort(&mut sorted, reversed);
            sorted.into_iter().map(|row| row.key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(order(false), ["1.0.2", "1.0.0", "1.0.3", "1.0.1"]);
        assert_eq!(order(true), ["1.0.1", "1.0.0", "1.0.3", "1.0.2"]);
        for column in Column::ALL {
            assert_eq!(Column::ALL.iter().filter(|one| one.name() == column.name()).count(), 1);
            column.sort(&mut rows.iter().collect::<Vec<_>>(), false);
        }
    }
}

//! The course of a connection that somebody has chosen.

use crate::row::Row;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Instant;

/// The values of a connection at one moment. Sizes are in bytes, and rates in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Point {
    /// Seconds since the course began.
    pub at: f64,
    /// The rate of sending.
    pub send_rate: u64,
    /// The rate of receiving.
    pub receive_rate: u64,
    /// The congestion window in use.
    #[serde(rename = "cwnd")]
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed round-trip time, microseconds; zero before there is one.
    pub rtt_us: u64,
    /// Segments sent again, in all.
    pub retransmitted: u64,
}

/// The last values of one connection.
#[derive(Clone, Debug)]
pub struct Course {
    key: String,
    began: Instant,
    points: VecDeque<Point>,
    most: usize,
}

impl Course {
    /// Of the connection with this key, with this many points at most.
    pub fn new(key: &str, most: usize) -> Course {
        let began = Instant::now();
        Course { key: key.to_owned(), began, points: VecDeque::new(), most: most.max(1) }
    }

    /// The connection's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Adds the connection as it is now.
    pub fn add(&mut self, row: &Row) {
        self.add_at(row, self.began.elapsed().as_secs_f64());
    }

    fn add_at(&mut self, row: &Row, at: f64) {
        while self.points.len() >= self.most {
            self.points.pop_front();
        }
        self.points.push_back(Point {
            at,
            send_rate: row.send_rate.unwrap_or(0),
            receive_rate: row.receive_rate.unwrap_or(0),
            window: row.window(),
            in_flight: row.tcp.in_flight,
            rtt_us: row.tcp.srtt.map_or(0, |srtt| srtt.as_micros()),
            retransmitted: row.tcp.counters.retransmitted_segments,
        });
    }

    /// The points, the oldest first.
    pub fn points(&self) -> impl ExactSizeIterator<Item = &Point> {
        self.points.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Limit, tests::row};

    #[test]
    fn the_oldest_values_go_first() {
        let mut row = row(1, 1, "10.0.0.1:1", "10.0.0.2:2");
        let mut course = Course::new(&row.key, 3);
        for cwnd in 1..=5 {
            row.tcp.cwnd = cwnd;
            course.add_at(&row, cwnd as f64);
        }
        let (by, variable) = ("nice".to_owned(), "cwnd".to_owned());
        row.limits = vec![Limit { variable, own: 5, asked: None, used: 2, by }];
        course.add_at(&row, 6.0);
        let windows: Vec<u64> = course.points().map(|point| point.window).collect();
        assert_eq!(windows, [4, 5, 2]);
    }
}

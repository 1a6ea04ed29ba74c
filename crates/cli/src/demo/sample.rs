//! The sending end's variables, sampled while it sends.

use super::network::PeerStream;
use super::observe::Timeline;
use transom_net::{Info, TcpStream};
use transom_tcp::time::Duration;

/// One look at a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: Option<u64>,
    pub(crate) in_flight: u64,
    pub(crate) srtt: Option<Duration>,
    pub(crate) last_rtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: Option<u64>,
}

/// Who sends.
pub(crate) enum Sender {
    Transom(TcpStream),
    Peer(PeerStream),
}

fn of_transom(info: &Info) -> Sample {
    Sample {
        cwnd: info.cwnd,
        ssthresh: Some(info.ssthresh).filter(|&threshold| threshold != u64::MAX),
        in_flight: info.in_flight,
        srtt: info.srtt,
        last_rtt: info.last_rtt,
        min_rtt: info.min_rtt,
        retransmitted: info.counters.retransmitted_segments,
        timeouts: Some(info.counters.timeouts),
    }
}

impl Sender {
    pub(crate) fn look(&self) -> Option<Sample> {
        match self {
            Sender::Transom(stream) => stream.info().ok().as_ref().map(of_transom),
            Sender::Peer(peer) => match (peer.kernel_info(), peer.transom_info()) {
                (Some(info), _) => Some(Sample {
                    cwnd: info.cwnd,
                    ssthresh: info.ssthresh,
                    in_flight: info.outstanding,
                    srtt: Some(info.srtt),
                    last_rtt: None,
                    min_rtt: None,
                    retransmitted: info.retransmitted_segments,
                    timeouts: None,
                }),
                (None, info) => info.as_ref().map(of_transom),
            },
        }
    }
}

/// The samples of one transfer, as series over seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) cwnd: Vec<(f64, f64)>,
    pub(crate) ssthresh: Vec<(f64, f64)>,
    pub(crate) in_flight: Vec<(f64, f64)>,
    pub(crate) srtt: Vec<(f64, f64)>,
    pub(crate) last_rtt: Vec<(f64, f64)>,
    pub(crate) min_rtt: Vec<(f64, f64)>,
    /// Where retransmission timeouts were noticed, at the height of cwnd.
    pub(crate) timeouts: Vec<(f64, f64)>,
    pub(crate) last: Option<Sample>,
}

impl Trace {
    pub(crate) fn add(&mut self, timeline: &Timeline, sample: Sample) {
        let at = timeline.seconds();
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        self.cwnd.push((at, kib(sample.cwnd)));
        self.ssthresh.push((at, sample.ssthresh.map_or(f64::NAN, kib)));
        self.in_flight.push((at, kib(sample.in_flight)));
        if let Some(srtt) = sample.srtt {
            self.srtt.push((at, ms(srtt)));
        }
        if let Some(rtt) = sample.last_rtt {
            self.last_rtt.push((at, ms(rtt)));
        }
        if let Some(rtt) = sample.min_rtt {
            self.min_rtt.push((at, ms(rtt)));
        }
        let before = self.last.and_then(|last| last.timeouts).unwrap_or(0);
        if sample.timeouts.is_some_and(|count| count > before) {
            self.timeouts.push((at, kib(sample.cwnd)));
        }
        self.last = Some(sample);
    }
}

//! Prometheus is answered behind the [front](super::front).
//!
//! The answer to `GET /metrics` is the metrics. Those who ask while the text is being made get the same text next, so that a crowd costs no more than one
//! text after the other.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread;

use super::front::{self, Guest, MOST_GUESTS, response};

/// What Prometheus calls its text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers Prometheus from now on with what `text` returns, on threads of its own. Where it listens.
///
/// # Errors
/// The system's refusal.
pub fn serve_metrics(
    at: SocketAddr,
    text: impl Fn() -> Result<String, String> + Send + 'static,
) -> io::Result<SocketAddr> {
    let (ask, asked) = sync_channel::<Guest>(MOST_GUESTS);
    let serving = front::serve(at, "metrics", move |guest| match guest.request() {
        request if is_for_metrics(request) => {
            if let Err(TrySendError::Full(guest) | TrySendError::Disconnected(guest)) =
                ask.try_send(guest)
            {
                let words = "too many are asking\n";
                guest.answer(response("503 Service Unavailable", MEDIA_TYPE, words));
            }
        }
        _ => guest.answer(response("404 Not Found", MEDIA_TYPE, "what there is is /metrics\n")),
    })?;
    let at = serving.address;
    let work = move || {
        // The front ends with this thread.
        let _serving = serving;
        while let Ok(first) = asked.recv() {
            let guests: Vec<_> = std::iter::once(first).chain(asked.try_iter()).collect();
            let answer = match text() {
                Ok(text) => response("200 OK", MEDIA_TYPE, &text),
                Err(why) => response("503 Service Unavailable", MEDIA_TYPE, &format!("{why}\n")),
            };
            guests.into_iter().for_each(|guest| guest.answer(answer.clone()));
        }
    };
    thread::Builder::new().name("metrics".into()).spawn(work)?;
    Ok(at)
}

fn is_for_metrics(request: &str) -> bool {
    request.split('?').next() == Some("GET /metrics")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::test_clients::{Crowd, SMALL, ask};

    const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    /// A metric that nobody else may read.
    const METRIC: &str = "transom_secret 7\n";

    fn serve(length: usize) -> SocketAddr {
        let text = METRIC.repeat(length.div_ceil(METRIC.len()));
        serve_metrics("127.0.0.1:0".parse().unwrap(), move || Ok(text.clone())).unwrap()
    }

    #[test]
    fn clients_that_say_nothing_or_little_do_not_silence_the_metrics() {
        let at = serve(1);
        for says in [&b""[..], b"GET /metr", b"GET /metrics HTTP/1.1\r\n"] {
            let crowd = Crowd::come(at, SMALL, |_| says);
            for _ in 0..5 {
                assert!(ask(at, METRICS).ends_with(METRIC), "a crowd that says {says:?}");
            }
            assert!(crowd.first_has_gone());
        }
    }

    /// Each asks, and takes nothing of an answer that is longer than what the system takes for it.
    #[test]
    fn clients_that_take_nothing_do_not_silence_the_metrics() {
        let at = serve(8 << 20);
        let _crowd = Crowd::come(at, SMALL, |n| if n % 64 == 0 { METRICS.as_bytes() } else { b"" });
        // Those that the kernel still had in its queue may come later, and take this client's place before it is read. Then it asks again.
        let mut answers = (0..10).map(|_| ask(at, METRICS));
        assert!(answers.any(|answer| answer.ends_with(METRIC)));
    }

    #[test]
    fn a_foreign_page_reads_no_metrics() {
        let at = serve(1);
        for host in ["evil.example", "evil.example:9090", "localhost.evil.example", ""] {
            for path in ["/metrics", "/metrics?x", "/", "http://localhost/metrics"] {
                let answer = ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
                assert!(answer.starts_with("HTTP/1.1 403 "), "{host} {path}: {answer}");
                assert!(!answer.contains(METRIC), "{host} {path}");
            }
        }
        let none = ask(at, "GET /metrics HTTP/1.0\r\n\r\n");
        assert!(none.starts_with("HTTP/1.1 403 ") && !none.contains(METRIC), "{none}");
        assert!(ask(at, METRICS).ends_with(METRIC));
    }
}

//! As much of HTTP as Prometheus needs.
//!
//! The answer to `GET /metrics` is the metrics, whatever else the request says, and the connection is closed. A request and its answer take two
//! seconds together at most, and a few are answered at the same time. A client can make us store one line at most.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{AfterAccept, Deadline, Slots, after_accept};

/// So long a question and its answer may take together.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest line that is read.
const MAX_LINE: u64 = 4096;
/// So many are answered at the same time; others wait.
pub const MOST_ASKING: usize = 16;

/// Answers all who come, from now on, on threads of this name.
///
/// # Errors
/// When there is no thread to be had.
pub fn answer_all<S: Send + 'static>(
    name: &'static str,
    accept: impl Fn() -> io::Result<S> + Send + 'static,
    answer: impl Fn(S) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let (answer, slots) = (Arc::new(answer), Slots::new(MOST_ASKING));
    let work = move || {
        loop {
            let slot = slots.take();
            let stream = match accept().map_err(|error| after_accept(&error)) {
                Ok(stream) => stream,
                Err(AfterAccept::Next) => continue,
                Err(AfterAccept::Wait(pause)) => {
                    thread::sleep(pause);
                    continue;
                }
                Err(AfterAccept::End) => return,
            };
            let answer = Arc::clone(&answer);
            let attend = move || {
                let _slot = slot;
                // The client may have gone without the answer.
                let _ = answer(stream);
            };
            // Without a thread the connection is closed, which who asks will notice.
            let _ = thread::Builder::new().name(name.into()).spawn(attend);
        }
    };
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Answers Prometheus from now on with what `text` returns, on threads of its own. Where it listens.
///
/// # Errors
/// The system's refusal.
pub fn serve_metrics(
    at: SocketAddr,
    text: impl Fn() -> Result<String, String> + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(at)?;
    let at = listener.local_addr()?;
    let accept = move || listener.accept().map(|(stream, _)| stream);
    answer_all("metrics", accept, move |stream| answer(&stream, &text))?;
    Ok(at)
}

fn answer(stream: &TcpStream, text: &dyn Fn() -> Result<String, String>) -> io::Result<()> {
    let mut stream = Deadline::new(stream, PATIENCE);
    let mut line = String::new();
    let mut reader = BufReader::new(&mut stream).take(MAX_LINE);
    reader.read_line(&mut line)?;
    // The rest of the request, or closing would reset the connection under the answer.
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let (status, body) = match line.starts_with("GET /metrics ").then(text) {
        Some(Ok(text)) => ("200 OK", text),
        Some(Err(why)) => ("503 Service Unavailable", format!("{why}\n")),
        None => ("404 Not Found", "what there is is /metrics\n".to_owned()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

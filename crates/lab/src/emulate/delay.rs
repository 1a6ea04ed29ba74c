//! How long a link takes, as sockets at both ends see it.

use std::net::UdpSocket;
use std::path::Path;
use std::time::Instant as Moment;

use transom_device::namespace::Namespace;
use transom_tcp::time::Duration;

use super::stage::Stage;
use super::{RunError, RunOptions, system};
use crate::scenario::{Resolved, Scenario};

/// How many datagrams are sent, and how far apart. They are never at the same distance from the emulator's own rhythms.
const DATAGRAMS: u32 = 1500;
const INTERVAL: std::time::Duration = std::time::Duration::from_micros(1_137);
const PORT: u16 = 7;

/// Sends datagrams from one kernel to another over a link with this delay, and returns how long each took. Both ends read the same clock.
pub(crate) fn measured_delays(delay: Duration) -> Result<Vec<Duration>, RunError> {
    let scenario = scenario(delay);
    let stage = Stage::set(&scenario, 1, &RunOptions::new(Path::new("")))?;
    let namespaces = stage.namespaces();
    let [from, to] = &namespaces[..] else { return Ok(Vec::new()) };
    std::thread::scope(|scope| {
        let delays = scope.spawn(|| exchange(from, to));
        stage.play(|_, _| !delays.is_finished())?;
        delays.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The sender's and the receiver's part, on two threads.
fn exchange(from: &Namespace, to: &Namespace) -> Result<Vec<Duration>, RunError> {
    const WHAT: &str = "cannot send datagrams";
    let open = |namespace: &Namespace, port| -> Result<UdpSocket, RunError> {
        let socket = namespace.run(|| UdpSocket::bind(("0.0.0.0", port)))?;
        socket.map_err(system(WHAT))
    };
    let (sender, receiver) = (open(from, 0)?, open(to, PORT)?);
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(1))).map_err(system(WHAT))?;
    let begin = Moment::now();
    let nanos = move || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let delays = std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..DATAGRAMS {
                // Lost packets are not received, and do not count.
                let _ = sender.send_to(&nanos().to_be_bytes(), ("10.0.0.2", PORT));
                std::thread::sleep(INTERVAL);
            }
        });
        let mut delays = Vec::new();
        let mut bytes = [0; 8];
        while delays.len() < DATAGRAMS as usize && receiver.recv(&mut bytes).is_ok() {
            let took = nanos().saturating_sub(u64::from_be_bytes(bytes));
            delays.push(Duration::from_nanos(took));
        }
        delays
    });
    Ok(delays)
}

fn scenario(delay: Duration) -> Resolved {
    let nanos = delay.as_nanos();
    let text = format!(
        r#"
[scenario]
name = "delay"
duration = "1000s"
[hosts.a]
kind = "kernel"
[hosts.b]
kind = "kernel"
[[links]]
from = "a"
to = "b"
delay = "{nanos}ns"
[[flows]]
name = "none"
from = "a"
to = "b"
kind = "transfer"
size = "1B"
start = "999s"
"#
    );
    let scenario = Scenario::parse("delay", &text).ok();
    let resolved = scenario.and_then(|scenario| Some(scenario.sweep().next()?.resolved));
    resolved.unwrap_or_else(|| unreachable!("{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_is_one() {
        let scenario = scenario(Duration::from_millis(20));
        assert_eq!(scenario.links[0].back.delay, Duration::from_millis(20));
        assert!(scenario.needs_emulation());
    }
}

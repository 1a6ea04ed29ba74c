//! One peer: one thread reads its messages, another sends it events.

use super::Hub;
use super::rate::Rate;
use crate::protocol::binary::{self, Kind};
use crate::protocol::{Attach, Command, First, Form, LONGEST, ProtocolError, json};
use rustix::net::{RecvFlags, recv};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as Clock};
use transom_device::serving::Deadline;
use transom_net::{Notice, Observer, ObserverOptions, Snapshot};
use transom_tcp::extension::{Capabilities, Fault, Interval, Variable, Wake};
use transom_tcp::time::Instant;

/// A peer that takes nothing for so long does not answer. Nor does one that has not asked to be attached in this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most commands of a peer in a second, and at once.
const RATE: (u32, u32) = (1000, 100);

/// The messages of a peer. Reading has a deadline until it is attached.
type Input = BufReader<Deadline<UnixStream>>;

/// Says why and closes.
pub(super) fn reject(stream: UnixStream, reason: &str) {
    let mut output = Output { stream, form: Form::Json };
    // A peer that does not wait for an answer gets none.
    let _ = output.stream.set_write_timeout(Some(PATIENCE));
    let _ = output.line(&json::error(reason));
}

/// Serves a peer until it disconnects.
pub(super) fn attend(hub: &Hub, stream: UnixStream) {
    // A failure here means that the peer has gone, so nobody can be told.
    let _ = talk(hub, stream);
}

fn talk(hub: &Hub, stream: UnixStream) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut input = BufReader::new(Deadline::new(stream.try_clone()?, PATIENCE));
    let mut output = Output { stream, form: Form::Json };
    let (offers, offered) = hub.offered();
    output.line(&json::hello(offered))?;
    let Some(first) = read_line(&mut input) else {
        // It has gone, or it says nothing. A peer that has gone does not hear why.
        let reason = format!("nothing was asked for in {} s", PATIENCE.as_secs());
        return output.line(&json::error(&reason));
    };
    input.get_mut().lift()?;
    let attach = match first.and_then(|line| json::first(&line)) {
        Ok(First::Attach(attach)) => attach,
        Ok(First::Watch) => return watch(hub, offers, &input, &mut output),
        Err(error) => return output.line(&json::error(&error.to_string())),
    };
    let Attach { connection, name, wake, lists, form } = attach;
    let options = ObserverOptions::default().with_name(name).with_wake(wake).with_requires(lists);
    let present = || is_present(input.get_ref().get_ref());
    let (observer, chosen) = match hub.attach(connection, &options, present) {
        Ok(attached) => attached,
        Err(reason) => return output.line(&json::error(&reason)),
    };
    output.line(&json::attached(chosen, observer.layer().get(), observer.now()))?;
    output.form = form;

    let observer = Arc::new(observer);
    let output = Arc::new(Mutex::new(output));
    let teller = {
        let (observer, output) = (Arc::clone(&observer), Arc::clone(&output));
        // Also without subscriptions: the clock needs none.
        let wake = wake | Wake::TIMER;
        let tell = move || tell(&observer, &output, wake, lists);
        std::thread::Builder::new().name("transom-teller".into()).spawn(tell)
    };
    match &teller {
        Ok(_) => {
            // Its own first: who has to wait for itself does not stand in the way of others.
            let rates = [&Rate::new(RATE.0, RATE.1), &hub.rate];
            Listener { observer: &observer, output: &output, lists, rates, pending: None }
                .listen(&mut input);
        }
        Err(error) => say(&output, |output| output.error(&error.to_string()))?,
    }
    // Unless it is gone already, it goes now. The teller finds that, says so, and closes.
    observer.fail(Fault::Gone);
    if let Ok(teller) = teller {
        let _ = teller.join();
    }
    Ok(())
}

/// Tells of each connection that is offered from now on, until the peer goes or the socket is closed.
fn watch(hub: &Hub, mut offers: u32, input: &Input, output: &mut Output) -> io::Result<()> {
    let present = || is_present(input.get_ref().get_ref());
    loop {
        match hub.offered_since(offers, present) {
            Ok((now, offered)) => {
                offers = now;
                for connection in &offered {
                    output.line(&json::offered(connection))?;
                }
            }
            Err(reason) => return output.line(&json::over(&reason)),
        }
    }
}

/// Whether the peer has not closed its end. Early messages are left for later.
fn is_present(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(recv(stream, &mut [0; 1], flags), Ok((0, _)))
}

/// Tells what happens until nothing more will.
fn tell(observer: &Observer, output: &Mutex<Output>, wake: Wake, lists: Capabilities) {
    let told = loop {
        match observer.wait(wake, None) {
            Ok(Some(notice)) => {
                if let Err(error) = say(output, |output| output.event(&notice, lists)) {
                    break Err(error);
                }
            }
            // Not without a time to wait.
            Ok(None) => {}
            Err(over) => break say(output, |output| output.over(&over.to_string())),
        }
    };
    if told.is_err() {
        observer.fail(Fault::Gone);
    }
    // The other thread, which reads, finds the end.
    let _ = say(output, |output| output.stream.shutdown(Shutdown::Both));
}

/// Requests of a peer that were not forwarded yet.
#[derive(Default)]
struct Pending {
    asked: Vec<(Variable, Interval)>,
    wake_at: Option<Option<Instant>>,
}

impl Pending {
    /// Also asks for this. Of each variable counts what was asked last.
    fn merge(&mut self, asked: Vec<(Variable, Interval)>, wake_at: Option<Option<Instant>>) {
        for (variable, interval) in asked {
            match self.asked.iter_mut().find(|(other, _)| *other == variable) {
                Some((_, old)) => *old = interval,
                None => self.asked.push((variable, interval)),
            }
        }
        self.wake_at = wake_at.or(self.wake_at);
    }
}

/// Listens to a peer that is attached.
struct Listener<'a> {
    observer: &'a Observer,
    output: &'a Mutex<Output>,
    lists: Capabilities,
    /// Of the commands of this peer, and of all.
    rates: [&'a Rate; 2],
    pending: Option<Pending>,
}

impl Listener<'_> {
    /// Executes the peer's messages until it disconnects or breaks the protocol.
    fn listen(mut self, input: &mut Input) {
        let form = say(self.output, |output| output.form);
        loop {
            let message = match form {
                Form::Json => read_line(input).map(|line| json::commands(&line?)),
                Form::Binary => read_frame(input).map(|frame| Ok(vec![binary::command(&frame?)?])),
            };
            let error = match message {
                None => return,
                Some(Err(error)) => error,
                Some(Ok(commands)) => {
                    // Where there is more already, of limits only the last counts.
                    let more = has_message(form, input.buffer());
                    match self.apply(commands, more) {
                        Some(true) => continue,
                        Some(false) => return self.observer.detach(),
                        None => return,
                    }
                }
            };
            let fault = match error {
                ProtocolError::Nonsense(variable) => Fault::Nonsense(variable),
                ProtocolError::TooLong | ProtocolError::Malformed(_) => Fault::Protocol,
            };
            // In one, so that the teller does not close in between. The layer is gone whether the peer hears of it or not.
            let _ = say(self.output, |output| {
                self.observer.fail(fault);
                output.error(&error.to_string())
            });
            return;
        }
    }

    /// Whether the connection continues; `None` if it cannot. `more` if another message has been read already.
    fn apply(&mut self, commands: Vec<Command>, more: bool) -> Option<bool> {
        for command in commands {
            match command {
                Command::Limits(asked, wake_at) => {
                    self.pending.get_or_insert_default().merge(asked, wake_at);
                }
                Command::Look => {
                    self.forward()?;
                    self.take_turns();
                    let snapshot = self.observer.snapshot().ok()?;
                    say(self.output, |output| output.look(&snapshot, self.lists)).ok()?;
                }
                Command::Detach => return Some(false),
            }
        }
        let are_free = || {
            let now = Clock::now();
            self.rates.iter().all(|rate| rate.is_free(now))
        };
        if self.pending.is_some() && (!more || are_free()) {
            self.forward()?;
        }
        Some(true)
    }

    /// Waits until a command may be done.
    fn take_turns(&self) {
        for rate in self.rates {
            let wait = rate.take(Clock::now());
            if !wait.is_zero() {
                std::thread::sleep(wait);
            }
        }
    }

    /// Forwards the requests, if there are any.
    fn forward(&mut self) -> Option<()> {
        let Some(Pending { asked, wake_at }) = self.pending.take() else { return Some(()) };
        self.take_turns();
        let change = |limits: &mut transom_tcp::extension::Limits| {
            for (variable, interval) in asked {
                limits.set(variable, interval);
            }
            if let Some(at) = wake_at {
                limits.wake_at(at);
            }
        };
        self.observer.limits(change).ok()
    }
}

/// Whether there is a whole message in what has been read.
fn has_message(form: Form, buffer: &[u8]) -> bool {
    match form {
        Form::Json => buffer.contains(&b'\n'),
        Form::Binary => buffer
            .split_first_chunk()
            .is_some_and(|(length, rest)| rest.len() >= u32::from_le_bytes(*length) as usize),
    }
}

fn say<T>(output: &Mutex<Output>, what: impl FnOnce(&mut Output) -> T) -> T {
    what(&mut output.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The next line without its end; `None` at the end of the stream. Data before the end without a line's end is dropped.
fn read_line(input: &mut impl BufRead) -> Option<Result<Vec<u8>, ProtocolError>> {
    let mut line = Vec::new();
    let most = LONGEST as u64 + 1;
    input.take(most).read_until(b'\n', &mut line).ok()?;
    if line.pop_if(|last| *last == b'\n').is_none() {
        return (line.len() as u64 == most).then_some(Err(ProtocolError::TooLong));
    }
    Some(Ok(line))
}

/// The next frame without its length.
fn read_frame(input: &mut impl Read) -> Option<Result<Vec<u8>, ProtocolError>> {
    let mut length = [0; 4];
    input.read_exact(&mut length).ok()?;
    let mut frame = match binary::length(length) {
        Ok(length) => vec![0; length],
        Err(error) => return Some(Err(error)),
    };
    input.read_exact(&mut frame).ok()?;
    Some(Ok(frame))
}

/// The output to the peer.
struct Output {
    stream: UnixStream,
    form: Form,
}

impl Output {
    fn line(&mut self, value: &Value) -> io::Result<()> {
        let mut line = value.to_string();
        line.push('\n');
        self.stream.write_all(line.as_bytes())
    }

    /// In the form that the peer wants.
    fn say(
        &mut self,
        line: impl FnOnce() -> Value,
        frame: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<()> {
        match self.form {
            Form::Json => self.line(&line()),
            Form::Binary => self.stream.write_all(&frame()),
        }
    }

    fn event(&mut self, notice: &Notice, lists: Capabilities) -> io::Result<()> {
        let frame = || binary::event(Some(notice), &notice.snapshot, lists);
        self.say(|| json::event(notice, lists), frame)
    }

    fn look(&mut self, snapshot: &Snapshot, lists: Capabilities) -> io::Result<()> {
        self.say(|| json::look(snapshot, lists), || binary::event(None, snapshot, lists))
    }

    fn error(&mut self, reason: &str) -> io::Result<()> {
        self.say(|| json::error(reason), || binary::text(Kind::Error, reason))
    }

    fn over(&mut self, reason: &str) -> io::Result<()> {
        self.say(|| json::over(reason), || binary::text(Kind::End, reason))
    }
}

//! Programs on hosts with the kernel's TCP.
//!
//! Theory of operation. Servers are started before the run begins, and waited for until they listen. A separate thread starts the clients when
//! their flows start, so that starting a program does not delay packets. Each program leads its own process group, by which it and its
//! children are ended however the run ends. Their output goes to files.

use std::fmt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use transom_device::namespace::Namespace;
use transom_device::{Diag, KernelTcpState, own_file};
use transom_tcp::time::{Duration, Instant};

use super::beside::{Beside, Rest};
use super::clock::Clock;
use super::{RunError, system};
use crate::run::build::Programs as Plan;
use crate::scenario::Name;

/// How long a server may take until it listens.
const TO_LISTEN: std::time::Duration = std::time::Duration::from_secs(10);
/// How long a program may take to end when it is asked to, before it is killed.
const TO_END: std::time::Duration = std::time::Duration::from_secs(2);
/// The longest time between two looks at what the programs do.
const LOOK: Duration = Duration::from_millis(50);
/// The interval between two checks of one that is waited for.
const POLL: std::time::Duration = std::time::Duration::from_millis(5);

/// Which of a flow's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// That at the flow's `from`.
    Client,
    /// That at the flow's `to`.
    Server,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramReport {
    /// The flow.
    pub flow: Name,
    /// Which of its programs.
    pub role: Role,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How it ended.
    pub end: ProgramEnd,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramEnd {
    /// By itself, with this exit status.
    Exited(i32),
    /// By a signal that was not ours.
    Killed(i32),
    /// It was ended when its time had come.
    Stopped,
    /// The run ended before it began.
    NotStarted,
    /// The system could not start it.
    CannotStart,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramEnd::Exited(status) => write!(f, "exit status {status}"),
            ProgramEnd::Killed(signal) => write!(f, "ended by signal {signal}"),
            ProgramEnd::Stopped => f.write_str("stopped when its time was over"),
            ProgramEnd::NotStarted => f.write_str("not started"),
            ProgramEnd::CannotStart => f.write_str("could not be started"),
        }
    }
}

impl ProgramReport {
    /// Whether it did what it was there for, as far as its end tells.
    pub fn succeeded(&self) -> bool {
        match self.end {
            ProgramEnd::Exited(0) | ProgramEnd::Stopped => true,
            ProgramEnd::Exited(_) | ProgramEnd::Killed(_) => false,
            ProgramEnd::NotStarted | ProgramEnd::CannotStart => false,
        }
    }
}

/// Finds the file of each program before anything is run.
pub(super) fn check(plans: &[Plan], directory: &Path) -> Result<(), RunError> {
    for plan in plans {
        let commands = [plan.commands.server.as_ref(), Some(&plan.commands.client)];
        for name in commands.into_iter().flatten().filter_map(|command| command.first()) {
            find(name, directory).ok_or_else(|| no_program(plan, name))?;
        }
    }
    Ok(())
}

fn no_program(plan: &Plan, name: &str) -> RunError {
    RunError::Flow { flow: plan.name.clone(), what: format!("there is no program {name}") }
}

/// The file of a program: a path relative to `directory`, or the first on the search path, with the system's own directories last.
pub(super) fn find(name: &str, directory: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        let path = directory.join(name);
        return is_program(&path).then_some(path);
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&search).chain(system);
    places.find_map(|place| Some(place.join(name)).filter(|path| is_program(path)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// A program and what became of it.
struct Job {
    report: ProgramReport,
    namespace: Arc<Namespace>,
    program: PathBuf,
    arguments: Vec<String>,
    start: Instant,
    stop: Option<Instant>,
    running: Option<Child>,
}

/// The programs of a run. They are ended when this value is dropped.
pub(super) struct Programs(Option<Beside<Vec<ProgramReport>>>);

impl Programs {
    /// Starts the servers, waits until they listen, and has the clients started when their time comes.
    pub(super) fn start(
        plans: &[Plan],
        namespace: impl Fn(&Name) -> Option<Arc<Namespace>>,
        directory: &Path,
        output: Option<&Path>,
        clock: impl FnOnce() -> Clock,
    ) -> Result<(Self, Clock), RunError> {
        // A file without a directory before its name is in this one.
        let directory = std::path::absolute(Path::new(".").join(directory))
            .map_err(system("cannot find the scenario's directory"))?;
        // Ended by their drop if anything below fails.
        let mut jobs = Jobs {
            servers: Vec::new(),
            clients: Vec::new(),
            directory,
            output: output.map(Path::to_owned),
        };
        for plan in plans {
            let job = |role, command: &Vec<String>, host: &Name, stop| {
                let (name, arguments) =
                    command.split_first().ok_or_else(|| no_program(plan, ""))?;
                let program = find(name, &jobs.directory).ok_or_else(|| no_program(plan, name))?;
                let fill = |argument: &String| {
                    let address = plan.server.ip().to_string();
                    let port = plan.server.port().to_string();
                    argument.replace("{address}", &address).replace("{port}", &port)
                };
                let arguments: Vec<String> = arguments.iter().map(fill).collect();
                let shown = std::iter::once(name.clone()).chain(arguments.iter().cloned());
                Ok::<Job, RunError>(Job {
                    report: ProgramReport {
                        flow: plan.name.clone(),
                        role,
                        command: shown.collect(),
                        end: ProgramEnd::NotStarted,
                    },
                    namespace: namespace(host).ok_or_else(|| no_program(plan, ""))?,
                    program,
                    arguments,
                    start: plan.start,
                    stop,
                    running: None,
                })
            };
            let client = job(Role::Client, &plan.commands.client, &plan.from, plan.stop)?;
            if let Some(command) = &plan.commands.server {
                let mut server = job(Role::Server, command, &plan.to, None)?;
                server.launch(&jobs.directory, output)?;
                jobs.servers.push(server);
                if command.iter().any(|argument| argument.contains("{port}"))
                    && let Some(server) = jobs.servers.last_mut()
                {
                    server.wait_until_listening(plan.server.port(), output)?;
                }
            }
            jobs.clients.push(client);
        }
        let clock = clock();
        if plans.is_empty() {
            return Ok((Programs(None), clock));
        }
        let thread = Beside::start("programs", move |rest| jobs.run(clock, &rest))
            .map_err(system("cannot start a thread"))?;
        Ok((Programs(Some(thread)), clock))
    }

    /// Ends all that still run and says what became of each.
    pub(super) fn end(self) -> Vec<ProgramReport> {
        self.0.and_then(Beside::end).unwrap_or_default()
    }
}

/// Programs that are ended when this is dropped.
struct Jobs {
    clients: Vec<Job>,
    servers: Vec<Job>,
    directory: PathBuf,
    output: Option<PathBuf>,
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.end();
    }
}

impl Jobs {
    fn all(&mut self) -> impl Iterator<Item = &mut Job> {
        self.clients.iter_mut().chain(&mut self.servers)
    }

    /// Starts programs that are due, ends those that take too long, and notices those that have ended, until the run has ended.
    fn run(mut self, clock: Clock, rest: &Rest) -> Vec<ProgramReport> {
        let (directory, output) = (self.directory.clone(), self.output.clone());
        loop {
            let now = clock.now();
            let mut next = None::<Instant>;
            for job in self.all() {
                job.poll();
                if now > Instant::ZERO
                    && job.is_due(now)
                    && job.launch(&directory, output.as_deref()).is_err()
                {
                    job.report.end = ProgramEnd::CannotStart;
                }
                if job.running.is_some() && job.stop.is_some_and(|stop| now >= stop) {
                    job.ask_to_end();
                    job.stop = None;
                }
                let ahead = [Some(job.start).filter(|_| job.is_waiting()), job.stop];
                next = ahead.into_iter().flatten().chain(next).min();
            }
            if !rest.sleep(next.map_or(LOOK, |at| clock.until(at)).min(LOOK)) {
                break;
            }
        }
        self.end();
        self.all().map(|job| job.report.clone()).collect()
    }

    /// Asks all to end, and kills those that do not.
    fn end(&mut self) {
        self.all().for_each(Job::poll);
        self.all().for_each(Job::ask_to_end);
        let deadline = std::time::Instant::now() + TO_END;
        while self.all().any(|job| job.running.is_some()) && std::time::Instant::now() < deadline {
            self.all().for_each(Job::poll);
            thread::sleep(POLL);
        }
        self.all().for_each(Job::reap);
    }
}

impl Job {
    fn is_waiting(&self) -> bool {
        self.running.is_none() && self.report.end == ProgramEnd::NotStarted
    }

    fn is_due(&self, now: Instant) -> bool {
        self.is_waiting() && now >= self.start && self.stop.is_none_or(|stop| now < stop)
    }

    /// Starts it in its host.
    fn launch(&mut self, directory: &Path, output: Option<&Path>) -> Result<(), RunError> {
        let file = |stream: &str| {
            let Some(output) = output else { return Ok(Stdio::null()) };
            let path = output.join(self.file_name(stream));
            let made = own_file::output(&path).map(Stdio::from);
            made.map_err(system(format!("cannot write {}", path.display())))
        };
        let (stdout, stderr) = (file("stdout")?, file("stderr")?);
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        let child = self
            .namespace
            .spawn(&mut command)
            .map_err(system(format!("cannot start {}", self.program.display())))?;
        self.running = Some(child);
        Ok(())
    }

    /// The file for its output.
    fn file_name(&self, stream: &str) -> String {
        format!("{}.{}.{stream}", self.report.flow, self.report.role)
    }

    /// Waits until a process in its host listens at `port`.
    fn wait_until_listening(&mut self, port: u16, output: Option<&Path>) -> Result<(), RunError> {
        let deadline = std::time::Instant::now() + TO_LISTEN;
        let silent = |job: &Job, how: &str| {
            // Its output is removed with the run, so it is shown here.
            let written = output.map(|output| output.join(job.file_name("stderr")));
            let written = written.and_then(|path| std::fs::read_to_string(path).ok());
            let last = written.unwrap_or_default().lines().last().unwrap_or_default().to_owned();
            let said = if last.is_empty() { last } else { format!(", and has said: {last}") };
            let program = job.program.display();
            let what = format!("{program} does not listen at port {port}: {how}{said}");
            RunError::Flow { flow: job.report.flow.clone(), what }
        };
        loop {
            let sockets = self
                .namespace
                .run(|| Diag::open().and_then(|mut diag| diag.tcp()))?
                .map_err(system("cannot look for listening sockets"))?;
            let listens = |one: &transom_device::TcpSocket| {
                one.state == KernelTcpState::Listen && one.local.port() == port
            };
            if sockets.iter().any(listens) {
                return Ok(());
            }
            self.poll();
            if self.running.is_none() {
                return Err(silent(self, "it has ended"));
            }
            if std::time::Instant::now() >= deadline {
                return Err(silent(self, "that took too long"));
            }
            thread::sleep(POLL);
        }
    }

    /// Notices if it has ended.
    fn poll(&mut self) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let has_ended = self.group().is_some_and(|number| {
            !matches!(waitid(WaitId::Pid(number), look), Ok(None) | Err(Errno::INTR))
        });
        if has_ended {
            self.reap();
        }
    }

    /// It has ended, or is about to.
    fn reap(&mut self) {
        // Processes that it has started and left behind end with it. Until it has been waited for, the number is its own.
        self.signal(Signal::KILL);
        let Some(mut child) = self.running.take() else { return };
        if let Ok(status) = child.wait() {
            self.ended(status);
        }
    }

    fn ended(&mut self, status: ExitStatus) {
        if self.report.end == ProgramEnd::NotStarted {
            self.report.end = match (status.code(), status.signal()) {
                (Some(code), _) => ProgramEnd::Exited(code),
                (None, signal) => ProgramEnd::Killed(signal.unwrap_or(0)),
            };
        }
    }

    fn ask_to_end(&mut self) {
        if self.running.is_some() {
            self.report.end = ProgramEnd::Stopped;
            self.signal(Signal::TERM);
        }
    }

    /// Sends a signal to it and all that it has started.
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Its number, which is its group's too.
    fn group(&self) -> Option<Pid> {
        let number = self.running.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        number.and_then(Pid::from_raw)
    }
}

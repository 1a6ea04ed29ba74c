//! `transom exec`: an unmodified program over Transom.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{DumpableBehavior, Resource, getrlimit, set_dumpable_behavior, setrlimit};
use transom_broker::client;
use transom_device::intercept::{self, Notifier};
use transom_device::own_file;
use transom_device::passing;
use transom_device::private;
use transom_exec::{
    Destinations, Inner, Ledger, Network as Destination, Setup, Watcher, charge_guard, guard,
    supervise,
};

use crate::interrupt::PassedOn;
use crate::network::{NetworkArgs, cannot_run, exit_code};
use crate::output::{self, note};
use crate::socket::Host;
use crate::thread;
use recorder::Recorder;

mod recorder;

/// How long connections may take to end in order when the program has gone.
const DRAIN: Duration = Duration::from_secs(15);
/// What the helping processes run.
const THIS_PROGRAM: &str = "/proc/self/exe";
const MAKER: (&str, &str) = (THIS_PROGRAM, "exec-maker");

/// Run a program whose TCP connections are Transom's.
///
/// The program and all that it starts are not changed; static ones work too. Their calls for TCP sockets are answered by this command. UDP, DNS and
/// everything else is the kernel's, and so is TCP to this machine's loopback addresses. It is not a sandbox: a program can get around it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom exec -- curl http://10.9.0.1:8000/           over a TUN interface (as root)
  transom exec --extension nice -- rsync -a src/ 10.9.0.1::copy
  transom exec --only 10.9.0.1:8000 -- curl http://10.9.0.1:8000/
  transom exec -- nginx -g 'daemon off;'               served at 10.9.0.2
  transom exec --lab -- sh -c 'busybox httpd -fp 10.9.0.1:80 & sleep 1; curl 10.9.0.1; kill $!'

What works and what cannot is in docs/exec.md. The command ends when the last program has ended.
Exit status: that of the program; 128 and its number for a signal; 127 if there is no such program,
126 if it cannot be run.")]
pub(crate) struct Args {
    /// Only these destinations by Transom, the others by the kernel: ADDRESS, ADDRESS/LENGTH or ADDRESS:PORT; repeat it for more.
    #[arg(long, value_name = "DESTINATION")]
    only: Vec<Destination>,

    /// These destinations by the kernel.
    #[arg(long, value_name = "DESTINATION", conflicts_with = "only")]
    not: Vec<Destination>,

    /// Write a page for a browser at the end: what each connection by Transom carried, with its windows and round-trip times.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Say at the end how many calls and connections there were.
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    network: NetworkArgs,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Runs the program.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // The page is written at the end, when it would be too late.
    args.report.as_deref().map_or(Ok(()), own_file::check_output)?;
    // One thread leads all stacks of the command: more shards would only take room.
    let network = args.network.with_usual_shards(1).open()?;
    let stack = match &network.host {
        Host::Transom(stack) => Some(stack.clone()),
        Host::Kernel { .. } => None,
    };
    let (name, arguments) = args.program.split_first().context("no program is named")?;
    if let Some(namespace) = network.namespace() {
        // For good: the program ends when the thread does that started it.
        namespace.enter()?;
    }
    let mut command = Command::new(name);
    command.args(arguments);
    // Before there is a program, so that none misses a signal.
    let passed_on = PassedOn::from_now_on()?;
    close_to_programs().context("cannot protect the memory of this process")?;
    let destinations = Destinations { only: args.only, not: args.not };
    let lender = || client::network(client::default_path()).map_err(Into::into);
    let inner = Inner::open(&network.prefixes, &destinations, MAKER, lender)
        .context("cannot make a network for the program's sockets")?;
    let (mut child, notifier) =
        intercept::spawn(&mut command).map_err(|error| refused(name, &error))?;
    drop(command);
    let ledger = Ledger::new().context("cannot make the guard's ledger")?;
    let _guard = start_guard(&notifier, &ledger, &inner).context("cannot start the guard")?;
    raise_descriptor_limit();
    passed_on.to(&child);
    let waiter = thread::spawn("program", move || child.wait())?;
    let recorder = args.report.is_some().then(Recorder::start);
    let watcher = recorder.clone().map(|recorder| Box::new(recorder) as Box<dyn Watcher>);
    let background = args.network.profile.extension.is_some();
    let mut setup = Setup {
        stack,
        addresses: network.addresses.clone(),
        profile: args.network.profile.profile()?,
        destinations,
        background,
        watcher,
        opened: None,
        unanswered: None,
    };
    if let Some(offers) = network.cleanup.offers() {
        setup.opened = Some(Box::new(move |stream| offers.offer(stream)));
    }
    if let Some(mut silence) = network.silence.clone() {
        setup.unanswered = Some(Box::new(move |destination| silence.unanswered(destination)));
    }
    let counts =
        supervise(notifier, ledger, inner, setup).context("cannot serve the program's calls")?;
    let status = waiter.join().map_err(|_| anyhow::anyhow!("the waiting thread has panicked"))?;
    let status = status.context("cannot wait for the program")?;
    if args.verbose {
        note(format_args!(
            "{} calls answered; {} connections by Transom, {} by the kernel",
            counts.calls, counts.by_transom, counts.by_kernel
        ));
    }
    if let Host::Transom(stack) = &network.host {
        stack.drain(DRAIN);
    }
    let files = network.finish();
    if let (Some(path), Some(recorder)) = (&args.report, recorder) {
        let program: Vec<_> = args.program.iter().map(|word| word.to_string_lossy()).collect();
        let extensions = args.network.profile.extensions();
        let extensions = extensions.map(|words| format!(", with the extensions {words}"));
        let place = format!("{}{}", network.description, extensions.unwrap_or_default());
        let page = recorder.page(&program.join(" "), &place, counts);
        output::file(path, transom_report::render(&page))?;
    }
    let status = exit_code(status);
    Ok(if status == ExitCode::SUCCESS { files } else { status })
}

/// Says why the program could not be started.
fn refused(name: &OsStr, error: &io::Error) -> anyhow::Error {
    let why = match error.kind() {
        io::ErrorKind::ResourceBusy => {
            "this command runs under a supervisor of the same kind, and they cannot be nested"
        }
        io::ErrorKind::Unsupported => {
            "this system has no seccomp notifications (they came with Linux 5.14)"
        }
        kind => return cannot_run(name, kind, error),
    };
    cannot_run(name, error.kind(), why)
}

/// Starts the process that ends programs should this one be killed. It ends when the returned value is dropped.
fn start_guard(notifier: &Notifier, ledger: &Ledger, inner: &Inner) -> io::Result<OwnedFd> {
    let (ours, theirs) = passing::pair()?;
    Command::new(THIS_PROGRAM)
        .arg("exec-guard")
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A signal of the terminal's is not for it.
        .process_group(0)
        .spawn()?;
    charge_guard(&ours, notifier, ledger, inner)?;
    Ok(ours)
}

/// Ends programs whose supervisor was killed.
pub(crate) fn run_guard() -> anyhow::Result<ExitCode> {
    close_to_programs()?;
    guard(io::stdin())?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the network for programs' sockets in a user namespace, and sockets in it.
pub(crate) fn run_maker() -> anyhow::Result<ExitCode> {
    private::serve(io::stdin())?;
    Ok(ExitCode::SUCCESS)
}

/// Forbids other processes of the same user to read this one's memory, to copy its descriptors and to trace it: the program is such a process. The kernel
/// makes an exception for processes with `CAP_SYS_PTRACE`, which root has. No core file is written any more.
fn close_to_programs() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Each connection of the program takes some descriptors here.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, the program is told when there are no more.
    let _ = setrlimit(Resource::Nofile, limit);
}

//! `transom kernel`: extensions on the kernel's own sockets, of programs that know nothing of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(feature = "kernel")]
mod attach;
#[cfg(feature = "kernel")]
mod log;
#[cfg(feature = "kernel")]
mod shown;

/// Run extensions on the kernel's own TCP sockets
///
/// The programs are not changed, and their sockets stay the kernel's. Each new connection of a control group gets extensions of its own, which only make
/// it less aggressive. The kernel keeps to the safe range by itself. Limits expire in a second when this command is gone, and the sockets go back to
/// the algorithm that they had. Needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom kernel run --extension nice -- rsync -a src/ server.example::copy
      a program whose connections yield to others
  transom kernel attach --cgroup /sys/fs/cgroup/backup.slice --extension 'nice + rate-cap(rate=5MB)'
      all connections of a service, those that it has already and new ones
  transom kernel list
      all connections that have extensions
  transom kernel show 4711
      what one of them asks, gets and why
  transom kernel log --follow
      what all of them ask, get and why, as it happens
  transom kernel check
      which variables this kernel can bound, and which not, with the reasons")]
pub(crate) enum Command {
    /// Run a program in a control group of its own, with extensions on its connections
    ///
    /// The group goes when its last process has ended. Exit status: that of the program; 128 and its number for a signal; 127 if there is no such
    /// program, 126 if it cannot be run.
    Run {
        #[command(flatten)]
        choice: Choice,
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
        program: Vec<OsString>,
    },
    /// Put extensions on the connections of a control group, until interrupted
    Attach {
        #[command(flatten)]
        choice: Choice,
        /// The group's directory
        #[arg(long, value_name = "DIRECTORY")]
        cgroup: PathBuf,
        /// Leave connections alone that are there already
        #[arg(long)]
        only_new: bool,
    },
    /// List the connections that have extensions
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what connections ask, get and why
    Show {
        /// The connection's number, as `list` shows it [default: all]
        connection: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the connections every second
    Watch {
        /// Print JSON, one line each time
        #[arg(long)]
        json: bool,
    },
    /// Show what connections asked and got, and why, as lines of JSON
    ///
    /// A line for each connection that comes under control or leaves it, each round trip, loss and timeout, and each change of what is asked. The last
    /// 16,384 lines of each command are kept. A line says how many are missing.
    Log {
        /// This connection only, by its number, as `list` shows it
        connection: Option<u64>,
        /// Go on with what happens, until interrupted
        #[arg(short, long)]
        follow: bool,
    },
    /// Say which variables this kernel can bound and which not
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Which extensions.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Choice {
    /// The extensions, as in 'nice + rate-cap(rate=2MB)'; `transom ext list` has all
    #[arg(long, value_name = "EXTENSIONS")]
    extension: String,
    /// Let the program in the kernel decide by itself; for `nice` and `policy` only. User space is not woken for each round trip: for very many connections
    #[arg(long)]
    in_kernel: bool,
    /// How many connections can have limits at a time; the others are plain TCP
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    connections: u32,
    /// Say at the end what there was to see
    #[arg(short, long)]
    verbose: bool,
}

/// What `transom kernel run` starts: not for people.
#[derive(clap::Args)]
pub(crate) struct GuardArgs {
    /// The control group to remove
    cgroup: PathBuf,
}

#[cfg(feature = "kernel")]
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run { choice, program } => attach::run(&choice, &program),
        Command::Attach { choice, cgroup, only_new } => attach::attach(&choice, &cgroup, !only_new),
        Command::List { json } => shown::list(json),
        Command::Show { connection, json } => shown::show(connection, json),
        Command::Watch { json } => shown::watch(json),
        Command::Log { connection, follow } => log::show(connection, follow),
        Command::Check { json } => shown::check(json),
    }
}

#[cfg(not(feature = "kernel"))]
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    // Named here, so that a build without this part reads the same arguments.
    match command {
        Command::Run { choice, program } => {
            let _ = (choice.extension, choice.verbose, program);
            let _ = (choice.in_kernel, choice.connections);
        }
        Command::Attach { choice, cgroup, only_new } => {
            let _ = (choice.extension, cgroup, only_new);
        }
        Command::Show { connection, json: flag } | Command::Log { connection, follow: flag } => {
            let _ = (connection, flag);
        }
        Command::List { json } | Command::Watch { json } | Command::Check { json } => {
            let _ = json;
        }
    }
    Err(crate::features::Feature::KERNEL.missing())
}

/// Removes the control group when its last process has ended, whatever became of the command.
#[cfg(feature = "kernel")]
pub(crate) fn run_guard(args: &GuardArgs) -> anyhow::Result<ExitCode> {
    attach::guard(&args.cgroup)
}

#[cfg(not(feature = "kernel"))]
pub(crate) fn run_guard(args: &GuardArgs) -> anyhow::Result<ExitCode> {
    let _ = &args.cgroup;
    Err(crate::features::Feature::KERNEL.missing())
}

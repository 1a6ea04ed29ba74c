//! `transom top`: every TCP connection of this user's Transom processes and of the kernel, in the terminal.

mod cells;
mod everywhere;
#[cfg(feature = "tui")]
mod view;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use serde::Serialize;
use transom_live::{Collector, Column, Filter, Row, Snapshot, Sources};

use crate::columns::lay_out;
use crate::{output, units};
use everywhere::Everywhere;

/// Show every TCP connection, of Transom and of the kernel, as it is now
///
/// The connections of all processes of this user that run Transom and were started with --status or TRANSOM_STATUS=1, and all of the kernel's in this
/// network namespace. For each: its state, rates, windows, round-trip time, losses, what limits it, and its extensions.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom top
      all connections, the fastest first
  transom top sport = :443 and state established and dst 10.0.0.0/8
      some of them, chosen as with ss; in a shell, brackets and < > need quotes
  transom top --source transom --sort retransmitted
      Transom's alone, those with the most retransmissions first
  transom top --once --all-namespaces
      those of containers too, as root
  transom top --once --json
      each connection as a line of JSON, for other programs

Conditions: state NAME, sport OP PORT, dport OP PORT, src HOST, dst HOST, process NAME-OR-PID,
limit NAME, extension [NAME], transom, kernel. Joined by: and, or, not, brackets. docs/live.md
explains all of it.")]
pub(crate) struct Args {
    /// The connections to show [default: not state time-wait]
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Print a table once, and end. Rates are of one interval
    #[arg(long)]
    once: bool,
    /// Print each connection as a line of JSON, again after each interval
    #[arg(long)]
    json: bool,
    /// The column to sort by
    #[arg(long, value_name = "COLUMN", default_value = "send", value_parser = column)]
    sort: Column,
    /// Sort the other way round
    #[arg(long)]
    reverse: bool,
    /// Look into all network namespaces that have a process, as root
    #[arg(long)]
    all_namespaces: bool,
    #[command(flatten)]
    looks: Looks,
}

/// Where to look, and how often: what `top` and `dash` have in common.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Looks {
    /// The connections to look for
    #[arg(long, value_enum, default_value = "all")]
    source: Source,
    /// Between two looks, such as 500ms or 2s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// Those of Transom's processes and of the kernel
    All,
    /// Those of Transom's processes
    Transom,
    /// Those of the kernel
    Kernel,
}

impl Looks {
    pub(crate) fn collector(&self) -> Collector {
        Collector::new(match self.source {
            Source::All => Sources::All,
            Source::Transom => Sources::Transom,
            Source::Kernel => Sources::Kernel,
        })
    }
}

/// The filter where none is written: connections that are over wait in their hundreds.
const USUAL: &str = "not state time-wait";

fn column(name: &str) -> Result<Column, String> {
    Column::ALL.into_iter().find(|column| column.name() == name).ok_or_else(|| {
        let names = output::listed(Column::ALL.map(Column::name), "");
        format!("there is no such column; there are {names}")
    })
}

/// Less than a tenth of a second would be work without any use.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = units::parse_duration(text)?;
    if interval < Duration::from_millis(100) || interval > Duration::from_secs(3600) {
        return Err("write a time from 100ms to one hour".into());
    }
    Ok(interval)
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut args = args;
    if args.filter.is_empty() {
        args.filter.push(USUAL.to_owned());
    }
    let filter = args.filter.join(" ").parse::<Filter>().map_err(|error| output::Failure {
        status: 2,
        message: format!("the filter is not understood: {error}"),
    })?;
    if !args.once && !args.json {
        return watch(args, filter);
    }
    let mut collector = Everywhere::new(args.looks.collector(), args.all_namespaces);
    // Rates are known from the second look on.
    collector.look();
    loop {
        std::thread::sleep(args.looks.interval);
        let snapshot = collector.look();
        for trouble in &snapshot.troubles {
            output::note(format_args!("transom: {trouble}"));
        }
        let rows = chosen(&snapshot, &filter, args.sort, args.reverse);
        if args.json {
            output::raw_lines(&lines(&rows)?)?;
        } else {
            output::line(table(&rows))?;
        }
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

#[cfg(feature = "tui")]
fn watch(args: Args, filter: Filter) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    use std::sync::atomic::AtomicBool;

    if !crate::terminal::is_there() {
        anyhow::bail!("standard output is no terminal; --once prints a table, and --json lines");
    }
    let terminal = crate::terminal::Terminal::enter()?;
    crate::interrupt::handle(|status| crate::interrupt::leave(status.into()))?;
    let everywhere = Everywhere::new(args.looks.collector(), args.all_namespaces);
    let looks = everywhere.looks(args.looks.interval)?;
    let text = args.filter.join(" ");
    let view = view::View::new(filter, &text, args.sort, args.reverse, looks);
    terminal.show(view, &AtomicBool::new(false)).context("cannot draw on the terminal")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "tui"))]
fn watch(_: Args, _: Filter) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    crate::features::Feature::TUI.need().context("--once prints a table, and --json lines")?;
    Ok(ExitCode::SUCCESS)
}

/// The connections to show, in order.
fn chosen<'a>(
    snapshot: &'a Snapshot,
    filter: &Filter,
    sort: Column,
    reverse: bool,
) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = snapshot.rows.iter().filter(|row| filter.chooses(row)).collect();
    sort.sort(&mut rows, reverse);
    rows
}

/// A connection with the time of the look.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970.
    at: f64,
    #[serde(flatten)]
    row: &'a Row,
}

fn lines(rows: &[&Row]) -> anyhow::Result<String> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{}", serde_json::to_string(&Line { at, row })?);
    }
    Ok(text)
}

/// The table, as wide as its contents.
fn table(rows: &[&Row]) -> String {
    if rows.is_empty() {
        return "no connections".to_owned();
    }
    let sides = Column::ALL.map(|column| cells::head(column).1);
    let titles = Column::ALL.map(|column| cells::head(column).0.to_owned());
    let cells = rows.iter().map(|row| Column::ALL.map(|column| cells::cell(row, column)));
    let lines: Vec<_> = std::iter::once(titles).chain(cells).collect();
    lay_out(sides, &lines).join("\n")
}

//! The texts of `list`, `show` and `watch`: connections that have extensions.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;
use transom_extensions::CATALOGUE;
use transom_kernel::{ConnectionReport, Form, HostReport, Limit, refusal, status, variable_forms};

use crate::output;

fn reports() -> anyhow::Result<Vec<HostReport>> {
    status::reports().with_context(|| format!("cannot read {}", status::DIRECTORY))
}

/// A line for the end of a command.
pub(super) fn summary(report: &HostReport) -> String {
    let mut text = format!("{} connections, {} events", report.seen, report.events);
    if report.lost_records > 0 {
        let _ = write!(text, ", {} lost", report.lost_records);
    }
    if report.without_slot > 0 {
        let (without, room) = (report.without_slot, report.room);
        let _ = write!(text, "; {without} connections had no limits: there was room for {room}");
    }
    text
}

pub(super) fn list(json: bool) -> anyhow::Result<ExitCode> {
    let reports = reports()?;
    output::shown(json, &reports, || table(&reports))
}

pub(super) fn watch(json: bool) -> anyhow::Result<ExitCode> {
    output::watch(json, reports, |reports| table(reports))
}

fn window(connection: &ConnectionReport) -> Option<&Limit> {
    connection.limits.iter().find(|limit| limit.variable == "cwnd")
}

/// The process that attached the extensions, and the programs in its control group.
fn of_whom(process: u32, group: &str) -> String {
    let listed = std::fs::read_to_string(Path::new(group).join("cgroup.procs"));
    let listed = listed.unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for process in listed.lines() {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        let name: String = name.trim().chars().filter(|sign| !sign.is_control()).collect();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(3);
    if names.is_empty() {
        return format!("process {process}");
    }
    format!("process {process}, {}", names.join(" and "))
}

fn table(reports: &[HostReport]) -> String {
    if reports.is_empty() {
        return "no connection of the kernel's has extensions".to_owned();
    }
    let mut text = String::new();
    for report in reports {
        let _ = writeln!(
            text,
            "{}, {}: {}, {} connections now, {} in all",
            of_whom(report.process, &report.cgroup),
            report.cgroup,
            report.extensions,
            report.connections.len(),
            report.seen
        );
        if report.without_slot > 0 {
            let (without, room) = (report.without_slot, report.room);
            let _ = writeln!(text, "  {without} had no limits: there is room for {room}");
        }
        if report.connections.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "  {:>8}  {:<25} {:<25} {:>9} {:>9}  {:<12} {:>8} {:>10}",
            "number", "local", "remote", "own cwnd", "cwnd", "decided by", "RTT ms", "bytes/s"
        );
        for connection in &report.connections {
            let limit = window(connection);
            let milliseconds = connection
                .srtt_us
                .map_or("-".to_owned(), |us| format!("{}.{:03}", us / 1000, us % 1000));
            let rate = connection.delivery_rate.map_or("-".to_owned(), |rate| rate.to_string());
            let _ = writeln!(
                text,
                "  {:>8}  {:<25} {:<25} {:>9} {:>9}  {:<12} {milliseconds:>8} {rate:>10}",
                connection.cookie,
                connection.local.to_string(),
                connection.remote.to_string(),
                limit.map_or(0, |limit| limit.own),
                limit.map_or(0, |limit| limit.used),
                limit.map_or("tcp", |limit| limit.by.as_str()),
            );
        }
    }
    text.truncate(text.trim_end().len());
    text
}

pub(super) fn show(number: Option<u64>, json: bool) -> anyhow::Result<ExitCode> {
    let reports = reports()?;
    let all = reports.iter().flat_map(|report| &report.connections);
    let chosen: Vec<&ConnectionReport> =
        all.filter(|connection| number.is_none_or(|number| connection.cookie == number)).collect();
    if let (Some(number), true) = (number, chosen.is_empty()) {
        bail!(
            "no connection with the number {number} has extensions; `transom kernel list` has all"
        );
    }
    output::shown(json, &chosen, || match chosen.is_empty() {
        true => "no connection of the kernel's has extensions".into(),
        false => chosen.iter().copied().map(details).collect::<Vec<_>>().join("\n\n"),
    })
}

fn details(connection: &ConnectionReport) -> String {
    let mut text = format!(
        "{} {} -> {}\n  it had {}, and grows by {} now; {} bytes in a segment; {}",
        connection.cookie,
        connection.local,
        connection.remote,
        connection.had,
        connection.grows_by,
        connection.mss,
        connection.phase
    );
    let _ = write!(
        text,
        "\n  {} bytes in flight, {} delivered, {} segments sent again",
        connection.in_flight, connection.delivered, connection.retransmitted
    );
    let _ = write!(
        text,
        "\n  {} events, {} acknowledgements in them that were not reported by themselves",
        connection.events, connection.missed_acks
    );
    for layer in &connection.layers {
        let _ = write!(text, "\n  layer {}: {}", layer.id, layer.name);
    }
    for departed in &connection.departed {
        let _ = write!(text, "\n  not attached: {departed}");
    }
    for limit in &connection.limits {
        let asked = limit.asked.as_deref().unwrap_or("nothing");
        let _ = write!(
            text,
            "\n  {}: own {}, asked {asked}, used {}, decided by {}",
            limit.variable, limit.own, limit.used, limit.by
        );
    }
    for variable in &connection.without_effect {
        let _ = write!(text, "\n  {variable}: asked, without effect: {}", reason(variable));
    }
    text
}

/// Why a variable cannot be bounded.
fn reason(name: &str) -> &'static str {
    let found = variable_forms().find(|(variable, _)| variable.name() == name);
    found.map_or("", |(_, form)| match form {
        Form::Bounded(how) | Form::Unbounded(how) => how,
    })
}

pub(super) fn check(json: bool) -> anyhow::Result<ExitCode> {
    let takes = transom_kernel::check().map_err(anyhow::Error::new);
    let said = takes.as_ref().err().map(|error| format!("{error:#}"));
    if json {
        let variables: serde_json::Map<_, _> = variable_forms()
            .map(|(variable, form)| {
                let (bounded, how) = match form {
                    Form::Bounded(how) => (true, how),
                    Form::Unbounded(reason) => (false, reason),
                };
                (variable.name().into(), json!({ "bounded": bounded, "how": how }))
            })
            .collect();
        let refused: serde_json::Map<_, _> =
            refused().into_iter().map(|(name, why)| (name.into(), json!(why))).collect();
        output::json(&json!({
            "programs": said.is_none(),
            "refusal": said,
            "variables": variables,
            "refused": refused,
        }))?;
    } else {
        let mut text = match &said {
            None => "The kernel takes the controller.\n".to_owned(),
            Some(refusal) => format!("{refusal}\n"),
        };
        for bounded in [true, false] {
            let title = if bounded { "It can bound" } else { "It cannot bound" };
            let _ = write!(text, "\n{title}:");
            for (variable, form) in variable_forms() {
                if let (true, Form::Bounded(how)) | (false, Form::Unbounded(how)) = (bounded, form)
                {
                    let _ = write!(text, "\n  {:<12} {how}", variable.name());
                }
            }
        }
        text += "\n\nThese extensions are refused:";
        for (name, why) in refused() {
            let _ = write!(text, "\n  {name:<12} {why}");
        }
        output::line(text)?;
    }
    Ok(if takes.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The extensions of the catalogue that cannot run here, each with the reason.
fn refused() -> Vec<(&'static str, String)> {
    let refusal = |name: &'static str| {
        // One that needs a parameter cannot be made without; none of them is refused.
        let extension = transom_extensions::stack(name).ok()?.first()?.extension();
        Some((name, refusal(&*extension)?))
    };
    CATALOGUE.iter().filter_map(|entry| refusal(entry.name)).collect()
}

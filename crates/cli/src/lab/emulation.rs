//! What is said of an emulated run beside what was seen: how far it can be believed, and what became of its programs.

use transom_lab::emulate::{ProgramEnd, ProgramReport, Record, Role};

use crate::report::{Block, Cell, ReportData, Table, Verdict};

/// Adds it to the page of a run.
pub(super) fn add(record: &Record, data: &mut ReportData) {
    let Record { fidelity, programs } = record;
    if !programs.is_empty() {
        let mut table = Table::new("Programs", &["flow", "", "command", "", "how it ended"]);
        for one in programs {
            table.rows.push(vec![
                one.flow.to_string().into(),
                role(one.role).into(),
                one.command.join(" ").into(),
                Cell::default().verdict(one.is_well()),
                end(one.end).into(),
            ]);
        }
        data.blocks.insert(0, Block::Table(table));
    }
    data.notes.push(format!("Emulated in real time: {fidelity}."));
    // Who has the same build does not get the same bytes, for real time is never the same.
    data.command_note = "Emulated in real time: another run sees something else.".into();
    if fidelity.is_late() {
        let reasons = fidelity.late.join("; ");
        let text =
            format!("The emulator fell behind, and nothing here is to be believed: {reasons}.");
        data.verdict = Some(Verdict { passed: false, text });
    }
}

/// What is said of it in a terminal, a line each.
pub(super) fn lines(record: &Record) -> Vec<String> {
    let Record { fidelity, programs } = record;
    let mut lines = Vec::new();
    if fidelity.is_late() {
        lines.push("THE EMULATOR FELL BEHIND; nothing here is to be believed:".into());
        lines.extend(fidelity.late.iter().map(|reason| format!("  {reason}")));
    }
    lines.push(format!("emulated: {fidelity}"));
    lines.extend(programs.iter().map(program));
    lines
}

fn program(one: &ProgramReport) -> String {
    let ProgramReport { flow, role: which, command, end: how } = one;
    let (mark, name) = (
        if one.is_well() { "ok    " } else { "FAILED" },
        command.first().map_or("", String::as_str),
    );
    format!("{mark} {} of {flow}, {name}: {}", role(*which), end(*how))
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

fn end(end: ProgramEnd) -> String {
    match end {
        ProgramEnd::Exited(status) => format!("exit status {status}"),
        ProgramEnd::Killed(signal) => format!("ended by signal {signal}"),
        ProgramEnd::Stopped => "stopped when its time was over".into(),
        ProgramEnd::NotStarted => "not started".into(),
        ProgramEnd::CannotStart => "could not be started".into(),
    }
}

//! The terminal output about an emulated run: its accuracy, and how its programs ended.

use transom_lab::emulate::{ProgramReport, Record};

/// A line for each thing.
pub(super) fn lines(record: &Record) -> Vec<String> {
    let Record { fidelity, programs } = record;
    let mut lines = Vec::new();
    if !fidelity.late.is_empty() {
        lines.push("THE EMULATOR FELL BEHIND; nothing here is to be believed:".into());
        lines.extend(fidelity.late.iter().map(|reason| format!("  {reason}")));
    }
    lines.push(format!("emulated: {fidelity}"));
    lines.extend(programs.iter().map(program));
    lines
}

fn program(one: &ProgramReport) -> String {
    let ProgramReport { flow, role, command, end } = one;
    let (mark, name) = (
        if one.succeeded() { "ok    " } else { "FAILED" },
        command.first().map_or("", String::as_str),
    );
    format!("{mark} {role} of {flow}, {name}: {end}")
}

//! The additional part of an emulated run's page: its fidelity, and how its programs ended.

use transom_lab::emulate::Record;

use crate::{Block, Cell, ReportData, Table, Verdict};

/// Adds it to the page of a run.
pub(crate) fn add(record: &Record, data: &mut ReportData) {
    let Record { fidelity, programs } = record;
    if !programs.is_empty() {
        let mut table = Table::new("Programs", &["flow", "", "command", "", "how it ended"]);
        for one in programs {
            table.rows.push(vec![
                one.flow.to_string().into(),
                one.role.to_string().into(),
                one.command.join(" ").into(),
                Cell::default().verdict(one.succeeded()),
                one.end.to_string().into(),
            ]);
        }
        data.blocks.insert(0, Block::Table(table));
    }
    data.notes.push(format!("Emulated in real time: {fidelity}."));
    // The same build does not give the same bytes, because real time never repeats.
    data.command_note = "Emulated in real time: another run sees something else.".into();
    if !fidelity.late.is_empty() {
        let reasons = fidelity.late.join("; ");
        let text =
            format!("The emulator fell behind, and nothing here is to be believed: {reasons}.");
        data.verdict = Some(Verdict { passed: false, text });
    }
}

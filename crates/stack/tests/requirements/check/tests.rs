//! Every rule of the check, broken once.

use std::slice;

use super::{problems, strangers};
use crate::documents::{ALL, Document, Ids};
use crate::scan::Marker;
use crate::table::{Kind, Requirement, Status, parse};

/// The committed table with nothing done, each for a reason, which no check refuses.
fn table() -> Vec<Requirement> {
    let mut table = parse(include_str!("../../../../../docs/conformance/rfc9293.toml")).unwrap();
    for row in &mut table {
        row.status = Status::NotDone;
        row.note = "a reason".to_owned();
    }
    table
}

fn row<'a>(table: &'a mut [Requirement], id: &str) -> &'a mut Requirement {
    table.iter_mut().find(|row| row.id == id).unwrap()
}

fn marker(id: &str, test: bool) -> Marker {
    Marker {
        id: id.to_owned(),
        file: "x/src/a.rs".to_owned(),
        item: Some("f".to_owned()),
        in_fn: true,
        test,
        ignored: false,
        line: 7,
    }
}

fn check(table: &[Requirement], markers: &[Marker]) -> Vec<String> {
    problems(&ALL[0], table, markers)
}

/// A document without labels, and a list of one MUST and one MAY.
const SECTIONS: Document = Document {
    number: 8200,
    order: "",
    ids: Ids::Sections,
    list: Some(("section 9", [1, 0, 0, 0, 1])),
    applications: false,
};

/// Rows of it: id, section, keyword.
fn sections(rows: &[(&str, &str, Kind)]) -> Vec<Requirement> {
    let row = |&(id, section, kind): &(&str, &str, Kind)| Requirement {
        id: id.to_owned(),
        section: section.to_owned(),
        kind,
        ..table()[0].clone()
    };
    rows.iter().map(row).collect()
}

#[test]
fn a_table_with_nothing_done_is_accepted() {
    assert_eq!(check(&table(), &[marker("MUST-1", false), marker("MAY-18", true)]), [""; 0]);
}

#[test]
fn done_needs_code_and_a_test() {
    let mut table = table();
    row(&mut table, "MUST-1").status = Status::Done;
    let code = marker("MUST-1", false);
    let test = marker("MUST-1", true);
    assert_eq!(check(&table, &[code.clone(), test.clone()]), [""; 0]);
    let no_code = ["MUST-1 is done, but no code is marked [MUST-1]"];
    assert_eq!(check(&table, slice::from_ref(&test)), no_code);
    let no_test = ["MUST-1 is done, but no test is marked [MUST-1]"];
    assert_eq!(check(&table, slice::from_ref(&code)), no_test);
    assert_eq!(check(&table, &[code.clone(), marker("MUST-10", true)]), no_test);
    assert_eq!(check(&table, &[code, Marker { ignored: true, ..test }]), no_test);
}

#[test]
fn functions_for_programs_need_a_test_that_calls_them() {
    let mut table = table();
    let row = row(&mut table, "MUST-17");
    (row.status, row.rust, row.c) = (Status::Done, "rust".to_owned(), "c".to_owned());
    let [code, test] = [marker("MUST-17", false), marker("MUST-17", true)];
    let through = |place: &str| Marker { file: format!("{place}/tests/a.rs"), ..test.clone() };
    let missing =
        |place: &str, call| format!("MUST-17: no test below {place}/tests/ is marked for {call}");
    let neither = [missing("net", "rust"), missing("sansio", "c")];
    assert_eq!(check(&table, &[code.clone(), test.clone()]), neither);
    assert_eq!(check(&table, &[code.clone(), through("net")]), neither[1..]);
    assert_eq!(check(&table, &[code, through("net"), through("sansio")]), [""; 0]);
}

#[test]
fn not_done_needs_a_reason() {
    let mut table = table();
    row(&mut table, "MUST-1").note = " ".to_owned();
    assert_eq!(check(&table, &[]), ["MUST-1 is not done and no note says why"]);
    row(&mut table, "MUST-1").status = Status::NotApplicable;
    assert_eq!(check(&table, &[]), ["MUST-1 is not applicable and no note says why"]);
    row(&mut table, "MUST-1").note = "because".to_owned();
    assert_eq!(check(&table, &[]), [""; 0]);
}

#[test]
fn markers_name_ids_of_the_rfc() {
    for id in ["MUST-0", "MUST-70", "MUST-01", "SHLD-32", "MAY-19", "REC-2", "SHOULD-1"] {
        let expected = format!("crates/x/src/a.rs:7: [{id}] is no id of RFC 9293");
        assert_eq!(check(&table(), &[marker(id, false)]), [expected]);
    }
}

#[test]
fn test_markers_are_on_functions() {
    let loose = Marker { in_fn: false, ..marker("MUST-1", true) };
    assert_eq!(
        check(&table(), &[loose]),
        ["crates/x/src/a.rs:7: [MUST-1] is in test code but on no function"]
    );
}

#[test]
fn markers_are_of_documents_with_a_table() {
    let markers =
        [marker("MUST-1", false), marker("RFC8200-4-1", true), marker("RFC826-1-1", true)];
    assert_eq!(
        strangers(&markers),
        ["crates/x/src/a.rs:7: [RFC826-1-1] is of a document that has no table"]
    );
}

#[test]
fn ids_of_sections_count_up_there() {
    let good = [("RFC8200-4.5-1", "4.5", Kind::Must), ("RFC8200-4.5-2", "4.5", Kind::May)];
    assert_eq!(problems(&SECTIONS, &sections(&good), &[]), [""; 0]);
    let bad = [("RFC8200-4.5-2", "4.5", Kind::Must), ("RFC8200-4.5-2", "4.6", Kind::May)];
    assert_eq!(
        problems(&SECTIONS, &sections(&bad), &[]),
        ["RFC8200-4.5-2 is the row of RFC8200-4.5-1", "RFC8200-4.5-2 is the row of RFC8200-4.6-1"]
    );
    assert_eq!(
        problems(&SECTIONS, &sections(&good[..1]), &[]),
        ["0 rows of section 9 are MAY, the RFC has 1"]
    );
    // Markers of another document are not its business.
    let foreign = [marker("RFC8200-4.5-9", false), marker("MUST-99", false)];
    assert_eq!(
        problems(&SECTIONS, &sections(&good), &foreign),
        ["crates/x/src/a.rs:7: [RFC8200-4.5-9] is no id of RFC 8200"]
    );
}

#[test]
fn the_table_has_every_id_once() {
    let mut short = table();
    let gone = short.pop().unwrap();
    assert_eq!(gone.id, "MAY-18");
    assert_eq!(
        check(&short, &[]),
        ["MAY-18 is missing from the table", "14 rows of Appendix B are MAY, the RFC has 15"]
    );

    let mut long = table();
    long.push(gone.clone());
    long.push(Requirement { id: "MAY-19".to_owned(), ..gone });
    assert_eq!(
        check(&long, &[]),
        [
            "MAY-18 is in the table 2 times",
            "MAY-19 is no id of RFC 9293",
            "17 rows of Appendix B are MAY, the RFC has 15"
        ]
    );
}

#[test]
fn rows_are_well_formed() {
    let mut table = table();
    let own = row(&mut table, "MUST-1");
    own.appendix_b = vec![Kind::Must];
    own.kind = Kind::May;
    own.section = "three".to_owned();
    assert_eq!(
        check(&table, &[]),
        ["MUST-1 cannot be a MAY", "MUST-1 needs a topic, a section number and a text"]
    );
}

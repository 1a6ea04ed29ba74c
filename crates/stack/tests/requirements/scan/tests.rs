//! Where markers are found, to what they belong, and what is no marker.

use std::path::PathBuf;

use super::{Found, scan};

fn found(files: &[(&str, &str)]) -> Found {
    let files: Vec<_> =
        files.iter().map(|(path, source)| (PathBuf::from(path), (*source).to_owned())).collect();
    scan(&files)
}

/// Each marker as `id item` or `id item test`, with `-` for no item.
fn markers(path: &str, source: &str) -> Vec<String> {
    let found = found(&[(path, source)]);
    assert_eq!(found.malformed, Vec::<String>::new());
    found
        .markers
        .iter()
        .map(|marker| {
            let item = marker.item.as_deref().unwrap_or("-");
            let test = if marker.test { " test" } else { "" };
            format!("{} {item}{test}", marker.id)
        })
        .collect()
}

fn code(source: &str) -> Vec<String> {
    markers("x/src/lib.rs", source)
}

#[test]
fn a_marker_is_in_a_comment() {
    assert_eq!(code("// does [MUST-1] and [SHLD-2]\nfn f() {}"), ["MUST-1 f", "SHLD-2 f"]);
    assert_eq!(code("/* a /* nested [MAY-3] */ comment */ fn f() {}"), ["MAY-3 f"]);
    assert_eq!(code("fn f() { g(\"// [MUST-1]\"); }"), [""; 0]);
    assert_eq!(code("fn f() { g(r#\"a \" // [MUST-1]\"#, b\"\\\" // [MUST-2]\"); }"), [""; 0]);
    assert_eq!(code("fn f() { g('\"'); } // [MUST-1] \"\nfn h<'a>() {}"), ["MUST-1 f"]);
    assert_eq!(code("fn f() { g('\\'', b'\"'); // [MUST-1]\n}"), ["MUST-1 f"]);
}

#[test]
fn a_mention_without_brackets_is_no_marker() {
    assert_eq!(code("// MUST-1, (MUST-2), [MUST-n], [must-3], [MUSTARD-4]\nfn f() {}"), [""; 0]);
}

#[test]
fn sections_name_requirements_too() {
    assert_eq!(
        code("// [RFC8200-4.5-12] [RFC792-6-2] and [RFC1122-3.2.2.6-3]\nfn f() {}"),
        ["RFC8200-4.5-12 f", "RFC792-6-2 f", "RFC1122-3.2.2.6-3 f"]
    );
    assert_eq!(
        code("// [RFC8200], [RFC-4-1], [RFC8200-4.5], [RFC8200--1], [RFC8200-4.5-n]\nfn f() {}"),
        [""; 0]
    );
    let found = found(&[("x/src/a.rs", "// [RFC8200-4.5-1, 2]\nfn f() {}")]);
    assert_eq!((found.malformed.len(), found.markers.len()), (1, 0));
}

#[test]
fn two_ids_in_one_pair_of_brackets_are_malformed() {
    let found = found(&[("x/src/a.rs", "\n// [MUST-1, MUST-2] [MUST-3]\nfn f() {}")]);
    assert_eq!(found.malformed.len(), 1);
    assert!(found.malformed[0].starts_with("crates/x/src/a.rs:2: `[MUST-1`"));
    assert_eq!(found.markers.len(), 1);
}

#[test]
fn ids_are_taken_as_written() {
    assert_eq!(code("// [SHOULD-1] [MUST-012] [MUST-999]\nfn f() {}").len(), 3);
}

#[test]
fn a_comment_belongs_to_what_it_stands_in() {
    let source = "
        //! [MUST-1]
        use a::b;
        struct Sender { /// [MUST-2]
            window: u32 }
        impl<T: Fn(u8) -> u8> Sender<T> {
            fn poll(&self) {
                // [MUST-3]
                let x = if self.window == 0 { /* [MUST-4] */ 1 } else { 2 };
                // [MUST-5]
            }
            // [MUST-6]
        }
        impl<T> fmt::Display for Window<T> where T: Copy { fn fmt(&self) { /* [MUST-7] */ } }
        mod inner { //! [MUST-8]
            fn g() { fn h() { /* [MUST-9] */ } }
            impl Wire for [Word<{ N + 1 }>; 4] { fn put(&self) { /* [MUST-10] */ } }
            impl Wire for Words<[u8; 4]> { fn put(&self) { /* [MUST-11] */ } }
        }
        // [MUST-12]
    ";
    let expected = [
        "MUST-1 -",
        "MUST-2 Sender",
        "MUST-3 Sender::poll",
        "MUST-4 Sender::poll",
        "MUST-5 Sender::poll",
        "MUST-6 Sender",
        "MUST-7 Window::fmt",
        "MUST-8 -",
        "MUST-9 g::h",
        "MUST-10 put",
        "MUST-11 Words::put",
        "MUST-12 -",
    ];
    assert_eq!(code(source), expected);
}

#[test]
fn a_comment_in_front_of_an_item_belongs_to_it() {
    let source = "
        fn before() {}
        /// [MUST-1]
        #[must_use]
        // [MUST-2]
        pub(crate) const unsafe extern \"C\" fn f() {}
        // [MUST-3]
        pub struct Pair(u8, [u8; 2]);
        // [MUST-4]
        const TABLE: [Row; 1] = [Row { a: { 1 } }];
        // [MUST-5]
        trait Recovery { /// [MUST-6]
            fn next(&self) -> Option<u8>; /// [MUST-7]
            fn lost(&self) {} }
        // [MUST-8]
        macro_rules! m { ($x:expr) => { $x }; }
        // [MUST-9]
        let y = 1;
    ";
    let expected = [
        "MUST-1 f",
        "MUST-2 f",
        "MUST-3 Pair",
        "MUST-4 TABLE",
        "MUST-5 Recovery",
        "MUST-6 Recovery::next",
        "MUST-7 Recovery::lost",
        "MUST-8 m",
        "MUST-9 -",
    ];
    assert_eq!(code(source), expected);
}

#[test]
fn a_comment_behind_code_belongs_to_that_code() {
    let source = "
        const MSS_V4: u16 = 536; // [MUST-1]
        const MSS_V6: u16 = 1220; // [MUST-2]
        fn f() { // [MUST-3]
            g(); // [MUST-4]
        } // [MUST-5]
        fn h() {}
    ";
    let expected = ["MUST-1 MSS_V4", "MUST-2 MSS_V6", "MUST-3 f", "MUST-4 f", "MUST-5 f"];
    assert_eq!(code(source), expected);
}

#[test]
fn test_modules_and_test_functions_are_tests() {
    let source = "
        fn f() { /* [MUST-1] */ }
        #[cfg(test)]
        mod tests {
            fn helper() { /* [MUST-2] */ }
            #[test]
            fn t() { /* [MUST-3] */ }
        }
        #[cfg(not(test))]
        fn g() { /* [MUST-4] */ }
        #[test]
        fn t() { /* [MUST-5] */ }
        #[cfg(any(test, feature = \"x\"))]
        fn h() { /* [MUST-6] */ }
    ";
    let expected = [
        "MUST-1 f",
        "MUST-2 helper test",
        "MUST-3 t test",
        "MUST-4 g",
        "MUST-5 t test",
        "MUST-6 h",
    ];
    assert_eq!(code(source), expected);
}

#[test]
fn functions_within_a_macro_are_found() {
    let source = "
        #[cfg(test)]
        mod tests {
            proptest! {
                // [MUST-1]
                #[test]
                fn holds(x in 0..5_u8) { prop_assert!(x < 5); }
            }
        }
    ";
    assert_eq!(code(source), ["MUST-1 holds test"]);
}

#[test]
fn files_of_tests_are_tests() {
    let source = "fn f() { /* [MUST-1] */ }";
    for path in ["x/tests/a.rs", "x/tests/a/b.rs", "x/src/a/tests.rs", "x/src/a/tests/b.rs"] {
        assert_eq!(markers(path, source), ["MUST-1 f test"], "{path}");
    }
    for path in ["x/src/a.rs", "x/src/mytests.rs", "tests_of/src/a.rs"] {
        assert_eq!(markers(path, source), ["MUST-1 f"], "{path}");
    }
    assert_eq!(code("#![cfg(test)]\nfn f() { /* [MUST-1] */ }"), ["MUST-1 f test"]);
}

#[test]
fn modules_declared_for_tests_take_their_files_along() {
    let source = "fn f() { /* [MUST-1] */ }";
    let found = found(&[
        ("x/src/lib.rs", "#[cfg(test)] mod oracle; mod a;"),
        ("x/src/a.rs", "#[cfg(test)]\npub(crate) mod props;\nmod plain;"),
        ("x/src/oracle.rs", source),
        ("x/src/oracle/deep.rs", source),
        ("x/src/a/props.rs", source),
        ("x/src/a/plain.rs", source),
        ("x/src/props.rs", source),
    ]);
    let tests: Vec<_> =
        found.markers.iter().filter(|marker| marker.test).map(|marker| &*marker.file).collect();
    assert_eq!(tests, ["x/src/oracle.rs", "x/src/oracle/deep.rs", "x/src/a/props.rs"]);
    assert_eq!(found.markers.len(), 5);
}

#[test]
fn ignored_tests_and_markers_outside_functions_are_told_apart() {
    let found = found(&[(
        "x/tests/a.rs",
        "//! [MUST-1]\n// [MUST-2]\n#[test]\n#[ignore = \"slow\"]\nfn t() {}\n// [MUST-3]\n#[test] fn u() {}",
    )]);
    let seen: Vec<_> =
        found.markers.iter().map(|marker| (marker.in_fn, marker.ignored, marker.line)).collect();
    assert_eq!(seen, [(false, false, 1), (true, true, 2), (true, false, 6)]);
}

#[test]
fn broken_source_is_no_panic() {
    for source in [
        "",
        "'",
        "\"",
        "r#\"",
        "/*",
        "/* [MUST-1]",
        "fn",
        "pub(",
        "#[",
        "#",
        "impl",
        "}",
        "fn f() {",
    ] {
        let _ = code(source);
        let _ = code(&format!("mod m {{ {source}"));
    }
}

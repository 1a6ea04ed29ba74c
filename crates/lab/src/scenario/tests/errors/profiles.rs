//! Mistakes about hosts of either kind, and about what their TCP is composed of.

use super::*;

#[test]
fn programs_need_the_kernels_tcp_and_a_name() {
    let text = minimal("").replacen("[hosts.b]", "[hosts.b]\nkind = \"kernel\"", 1);
    let program =
        "kind = \"program\"\nserver = []\nclient = [\"curl\", \"http://{address}:{port}/\"]";
    let said = refused(&text.replacen("kind = \"bulk\"", program, 1));
    let expected = r#"
error: `a` has Transom's TCP, and programs need a host of kind "kernel"
  --> test.toml:14:8
   |
14 | from = "a"
   |        ^^^

error: `server` begins with the name of a program
  --> test.toml:17:10
   |
17 | server = []
   |          ^^

2 problems in test.toml; nothing was run"#;
    assert_eq!(said, expected.trim_start_matches('\n'), "\n{said}");
}

#[test]
fn units_that_do_not_go_together_are_refused() {
    changed(
        "[hosts.b]",
        "[hosts.b]\ncongestion = \"cubic\"",
        r#"
error: `congestion` is for a host of kind "kernel"; for Transom's TCP, write profile.tcp
 --> test.toml:6:14
  |
6 | congestion = "cubic"
  |              ^^^^^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\necn = true",
        r#"
error: `ecn` is for a host of kind "kernel"
 --> test.toml:6:7
  |
6 | ecn = true
  |       ^^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\nkind = \"kernel\"\nprofile = { tcp = \"no-sack\" }",
        r#"
error: `profile` is for Transom's TCP, and this host has the kernel's
 --> test.toml:7:11
  |
7 | profile = { tcp = "no-sack" }
  |           ^^^^^^^^^^^^^^^^^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[hosts.b]\nprofile = { tcp = \"no-window-scale\", recv-buffer = \"1MiB\" }",
        r#"
error: a receive buffer of 1048576 bytes needs the window scale option
 --> test.toml:6:11
  |
6 | profile = { tcp = "no-window-scale", recv-buffer = "1MiB" }
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    );
}

/// The minimal scenario with a profile for one host.
#[track_caller]
fn profile(text: &str, expected: &str) {
    changed("[hosts.b]", &format!("[hosts.b]\nprofile = {text}"), expected);
}

#[test]
fn units_as_a_text() {
    profile(
        r#"{ tcp = "sack + cubik" }"#,
        r#"
error: there is no unit called `cubik`; did you mean cubic?
 --> test.toml:6:19
  |
6 | profile = { tcp = "sack + cubik" }
  |                   ^^^^^^^^^^^^^^
"#,
    );
    profile(
        r#"{ tcp = "rack-tlp + no-sack" }"#,
        r#"
error: SACK and RACK-TLP recovery need the SACK option; offer it, or choose NewReno or go-back-N
 --> test.toml:6:19
  |
6 | profile = { tcp = "rack-tlp + no-sack" }
  |                   ^^^^^^^^^^^^^^^^^^^^
"#,
    );
    profile(
        r#"{ tcp = 3 }"#,
        r#"
error: expected units such as "sack + ltcp", or a table with a key for each, found the number 3
 --> test.toml:6:19
  |
6 | profile = { tcp = 3 }
  |                   ^
"#,
    );
    profile(
        r#"{ tcp = "adu" }"#,
        r#"
error: adu is for programs that call send_adu and recv_adu, but this one writes bytes; leave out adu, so that data is in order
 --> test.toml:6:11
  |
6 | profile = { tcp = "adu" }
  |           ^^^^^^^^^^^^^^^
"#,
    );
}

#[test]
fn units_as_a_table() {
    profile(
        r#"{ tcp = { congestoin = "cubic" } }"#,
        r#"
error: there is no `congestoin` here
 --> test.toml:6:21
  |
6 | profile = { tcp = { congestoin = "cubic" } }
  |                     ^^^^^^^^^^
  = hint: did you mean `congestion`?
"#,
    );
    profile(
        r#"{ tcp = { congestion = "cubik" } }"#,
        r#"
error: there is no `cubik` to choose
 --> test.toml:6:34
  |
6 | profile = { tcp = { congestion = "cubik" } }
  |                                  ^^^^^^^
  = hint: did you mean `cubic`?
"#,
    );
    profile(
        r#"{ tcp = { pacing = "pace" } }"#,
        r#"
error: there is no `pace` to choose
 --> test.toml:6:30
  |
6 | profile = { tcp = { pacing = "pace" } }
  |                              ^^^^^^
  = hint: there is no-pacing, pacing
"#,
    );
    profile(
        r#"{ tcp = { congestion = "sack" } }"#,
        r#"
error: `sack` is loss recovery, not congestion control
 --> test.toml:6:34
  |
6 | profile = { tcp = { congestion = "sack" } }
  |                                  ^^^^^^
"#,
    );
    profile(
        r#"{ tcp = { congestion = "ltcp(beta=high)" } }"#,
        r#"
error: `high` is not a number for ltcp's `beta`: write it like 0.15 or 15%
 --> test.toml:6:34
  |
6 | profile = { tcp = { congestion = "ltcp(beta=high)" } }
  |                                  ^^^^^^^^^^^^^^^^^
"#,
    );
    profile(
        r#"{ tcp = { recovery = "rack-tlp", sack-option = "no-sack" } }"#,
        r#"
error: SACK and RACK-TLP recovery need the SACK option; offer it, or choose NewReno or go-back-N
 --> test.toml:6:19
  |
6 | profile = { tcp = { recovery = "rack-tlp", sack-option = "no-sack" } }
  |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    );
}

#[test]
fn every_wrong_unit_of_a_table_is_shown() {
    let text = minimal("").replacen(
        "[hosts.b]",
        "[hosts.b.profile.tcp]\npreset = \"modrn\"\nrecovery = \"reno\"",
        1,
    );
    let expected = r#"
error: there is no `modrn` to choose
 --> test.toml:6:10
  |
6 | preset = "modrn"
  |          ^^^^^^^
  = hint: did you mean `modern`?

error: `reno` is congestion control, not loss recovery
 --> test.toml:7:12
  |
7 | recovery = "reno"
  |            ^^^^^^

2 problems in test.toml; nothing was run"#;
    let said = refused(&text);
    assert_eq!(said, expected.trim_start_matches('\n'), "\n{said}");
}

/// Each is right by itself, and they are one profile where the flow ends.
#[test]
fn a_flow_and_its_host_that_contradict_each_other() {
    let text = minimal("").replacen("[hosts.b]", "[hosts.b]\nprofile.recv-buffer = \"1MiB\"", 1);
    says(
        &text.replacen(
            "kind = \"bulk\"",
            "kind = \"bulk\"\nprofile = { tcp = \"no-window-scale\" }",
            1,
        ),
        r#"
error: a receive buffer of 1048576 bytes needs the window scale option
  --> test.toml:17:11
   |
17 | profile = { tcp = "no-window-scale" }
   |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    );
}

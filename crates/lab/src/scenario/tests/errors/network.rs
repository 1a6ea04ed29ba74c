//! Mistakes about hosts, links and what joins them.

use super::*;

#[test]
fn names() {
    changed(
        "[hosts.b]",
        "[hosts.b]\n[hosts.\"2b\"]",
        r#"
error: `2b` cannot be a name
 --> test.toml:6:8
  |
6 | [hosts."2b"]
  |        ^^^^
  = hint: names begin with a letter and go on with letters, digits, `-` and `_`
"#,
    );
    says(
        &minimal("[[flows]]\nname = \"bulk\"\nfrom = \"b\"\nto = \"a\"\nkind = \"bulk\""),
        r#"
error: there are two flows called `bulk`
  --> test.toml:17:8
   |
17 | name = "bulk"
   |        ^^^^^^
"#,
    );
    says(
        &minimal("[routers.a]"),
        r#"
error: there are two nodes called `a`
  --> test.toml:16:10
   |
16 | [routers.a]
   |          ^
"#,
    );
    says(
        &minimal("[[links]]\nfrom = \"a\"\nto = \"b\""),
        r#"
error: there are two links called `a-b`
  --> test.toml:16:1
   |
16 | [[links]]
   | ^^^^^^^^^
   = hint: give one of them a `name`
"#,
    );
}

#[test]
fn ends() {
    changed(
        "to = \"b\"\nkind",
        "to = \"bb\"\nkind",
        r#"
error: there is no host called `bb`
  --> test.toml:14:6
   |
14 | to = "bb"
   |      ^^^^
   = hint: did you mean `b`?
"#,
    );
    changed(
        "from = \"a\"\nto = \"b\"\nrate",
        "from = \"a\"\nto = \"gateway\"\nrate",
        r#"
error: there is no node called `gateway`
 --> test.toml:8:6
  |
8 | to = "gateway"
  |      ^^^^^^^^^
  = hint: there is a, b
"#,
    );
    changed(
        "from = \"a\"\nto = \"b\"\nkind",
        "from = \"b\"\nto = \"b\"\nkind",
        r#"
error: this flow leads from `b` to itself
  --> test.toml:14:6
   |
14 | to = "b"
   |      ^^^
"#,
    );
    changed(
        "[hosts.b]",
        "[routers.b]",
        r#"
error: `b` is a router, and flows begin and end at hosts
  --> test.toml:14:6
   |
14 | to = "b"
   |      ^^^
   = hint: add a host, and a link from it to the router
"#,
    );
    says(
        &minimal("[hosts.c]\ncount = 2\n[hosts.d]\ncount = 3\n[[links]]\nfrom = \"c\"\nto = \"d\""),
        r#"
error: `c` has 2 hosts and `d` has 3: pairs need as many of each
  --> test.toml:22:6
   |
22 | to = "d"
   |      ^^^
   = hint: pair a group with a single node, or with a group of the same size
"#,
    );
}

#[test]
fn ways() {
    says(
        &minimal("[hosts.c]"),
        r#"
error: no link leads to `c`
  --> test.toml:16:8
   |
16 | [hosts.c]
   |        ^
   = hint: join it to the network: [[links]] from = "c", to = …
"#,
    );
    // Over a host there is no way.
    says(
        &minimal(
            "[hosts.c]\n[[links]]\nfrom = \"b\"\nto = \"c\"\n[[flows]]\nname = \"far\"\nfrom = \"a\"\nto = \"c\"\n\
             kind = \"bulk\"",
        ),
        r#"
error: no path leads from `a` to `c`
  --> test.toml:23:6
   |
23 | to = "c"
   |      ^^^
   = hint: ways lead over links and routers; hosts do not forward
"#,
    );
    says(
        &minimal("[hosts.c]\n[hosts.d]\n[[links]]\nfrom = \"c\"\nto = \"d\""),
        r#"
error: no links join `a` and `c`: every two hosts need a path
  --> test.toml:16:8
   |
16 | [hosts.c]
   |        ^
"#,
    );
}

#[test]
fn presets() {
    let star = |options: &str| {
        format!(
            "[scenario]\nname = \"s\"\nduration = \"1s\"\n[topology]\nkind = \"star\"\n{options}\n[[flows]]\nname = \"f\"\n\
             from = \"leaf1\"\nto = \"leaf2\"\nkind = \"bulk\""
        )
    };
    // Hosts that are missing because the topology cannot be read are not reported.
    says(
        &star("leaves = 2"),
        r#"
error: `link` is missing
 --> test.toml:4:1
  |
4 | [topology]
  | ^^^^^^^^^^
"#,
    );
    says(
        &star("leaves = 2\nlink = { rate = \"1Mbit/s\", back = { los = \"1%\" } }"),
        r#"
error: there is no `los` here
 --> test.toml:7:37
  |
7 | link = { rate = "1Mbit/s", back = { los = "1%" } }
  |                                     ^^^
  = hint: did you mean `loss`?
"#,
    );
    says(
        &star("leaves = 2\nlink = {}\n[hosts.leaf]\ncount = 3"),
        r#"
error: the topology has said how many `leaf` there are
 --> test.toml:9:9
  |
9 | count = 3
  |         ^
"#,
    );
    says(
        &star("leaves = 4000000000\nlink = {}"),
        r#"
error: 4000000000 leaves are more than the 100000 that a scenario may have
 --> test.toml:4:1
  |
4 | [topology]
  | ^^^^^^^^^^
"#,
    );
}

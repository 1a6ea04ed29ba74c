//! What is shown of commands.

use super::*;

fn scenario(client: &str) -> Scenario {
    let text = format!(
        "[scenario]\nname = \"test\"\nduration = \"1s\"\n\
         [hosts]\na = {{ kind = \"kernel\", count = 10 }}\nb = {{ kind = \"kernel\" }}\n\
         [[links]]\nfrom = \"a\"\nto = \"r\"\n[[links]]\nfrom = \"r\"\nto = \"b\"\n[routers.r]\n\
         [[flows]]\nname = \"one\"\nfrom = \"a\"\nto = \"b\"\nkind = \"program\"\nclient = {client}\n\
         [[flows]]\nname = \"two\"\nfrom = \"a1\"\nto = \"b\"\nkind = \"program\"\n\
         server = [\"iperf3\", \"-s\", \"-p\", \"{{port}}\"]\nclient = [\"./client\"]\n\
         [sweep]\nflows.two.client = [[\"./client\"], [\"x/other\", \"a b\"]]\n"
    );
    Scenario::parse("test.toml", &text).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_command_is_shown_once_whatever_the_point() {
    let programs = Programs::of(&scenario("[\"sh\", \"-c\", \"echo hi; rm -rf x\"]"));
    assert_eq!(
        programs.to_string(),
        "  on a1, client of two:  ./client\n  \
           on b, server of two:  iperf3 -s -p {port}\n  \
           on a1, a2, a3, a4, a5, a6, a7, a8 and 2 more, client of one1, one2, one3, one4, one5, one6, one7, one8 and 2 more:  \
           sh -c 'echo hi; rm -rf x'\n  \
           on a1, client of two:  x/other 'a b'"
    );
    let own = programs.own_files(Path::new("there"));
    assert_eq!(own, [Path::new("there/./client"), Path::new("there/x/other")]);
}

#[test]
fn nothing_of_a_command_can_hide() {
    let shown = |text: &str| quoted(text);
    assert_eq!(shown(""), "''");
    assert_eq!(shown("it's $HOME"), r"'it'\''s $HOME'");
    assert_eq!(shown("größer"), "'größer'");
    // An escape sequence that deletes the line, a new line, and a change of direction.
    assert_eq!(shown("a\x1b[2K\rb"), r"$'a\x1b[2K\x0db'");
    assert_eq!(shown("a\n'b\\"), r"$'a\n\'b\\'");
    assert_eq!(shown("a\u{202e}b\u{200b}"), r"$'a\U0000202eb\U0000200b'");
    assert_eq!(shown("e\u{301}"), r"$'e\U00000301'");
}

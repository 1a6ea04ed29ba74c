//! Makes a function of each piece of Rust in the documents, for `tests.rs` to compile.
//!
//! A piece is what a reader would copy, so it has its own imports, or the page has said before what it goes on with: `CONTEXTS` has that.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[path = "../../crates/cli/tests/documents/snippets.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need more of it")]
mod snippets;

/// What a page has said before a piece of code: its path, items, and the parameters of the function around.
const CONTEXTS: [(&str, &str, &str); 11] = [
    (
        "docs/howto/transparent-proxy.md",
        "use std::time::Duration; use transom::device::tun::Tun; use transom::{IncomingConnection, ListenConfig, Stack, TcpStream};\
         const PATIENCE: Duration = Duration::from_secs(10);",
        "tun: Tun, inside: Stack, outside: Stack, incoming: IncomingConnection",
    ),
    (
        "docs/sockets.md",
        "use transom::{Manipulation, Setting, SocketOption, Stack, TcpSocket, TcpStream};",
        "stack: Stack, mut stream: TcpStream, data: Vec<u8>",
    ),
    ("docs/sharing.md", "use transom::{Stack, device::tun::Tun};", ""),
    ("docs/live.md", "use transom::Stack;", ""),
    ("docs/devices.md", "use transom::Stack;", ""),
    (
        "docs/units/error-control.md",
        "use transom::{Hole, Received, TcpStream};",
        "mut stream: TcpStream, mut buffer: Vec<u8>, play: impl Fn(&[u8]), conceal: impl Fn(u64, u64)",
    ),
    (
        "docs/units/delivery.md",
        "use std::os::unix::fs::FileExt; use transom::{Piece, TcpStream};",
        "mut stream: TcpStream, mut buffer: Vec<u8>, file: std::fs::File, mut missing: Vec<transom::Hole>",
    ),
    (
        "docs/extensions/congestion-manager.md",
        "use std::time::Duration;",
        "destination: std::net::IpAddr, socket: std::net::UdpSocket, datagram: Vec<u8>",
    ),
    (
        "docs/extensions/writing.md",
        "",
        "stream: transom::TcpStream, shy: impl transom::extension::Extension + 'static",
    ),
    (
        "docs/async.md",
        "use transom::{Stack, TcpListener}; const LISTENER: u64 = 0;",
        "index: usize, listener: TcpListener",
    ),
    ("docs/howto/program.md", "", ""),
];

/// A reader's program depends on `transom` alone. The pages whose pieces need another crate, which they name, and that crate.
const OTHER_CRATES: [(&str, &str); 1] =
    [("docs/extensions/congestion-manager.md", "transom_remote")];

/// What is compiled and run elsewhere: a beginning of the path, a part of the code, and where.
const ELSEWHERE: [(&str, &str, &str); 3] = [
    ("docs/extensions/writing.md", "impl Extension for Shy", "crates/extensions/tests/writing.rs"),
    ("docs/extensions/writing.md", "pub const ENTRY", "crates/extensions/tests/writing.rs"),
    ("docs/extensions/writing.md", "fn shy_by_hand", "crates/extensions/tests/writing.rs"),
];

fn main() {
    let root = Path::new("..").canonicalize().expect("the repository");
    let mut code = String::new();
    let mut count = 0;
    for page in snippets::pages(&root) {
        println!("cargo::rerun-if-changed={}", root.join(&page).display());
        let text = fs::read_to_string(root.join(&page)).expect("a page");
        let name = page.to_str().expect("a path in UTF-8");
        for fence in snippets::fences(&text) {
            let body = fence.lines.join("\n");
            let elsewhere = ELSEWHERE
                .iter()
                .any(|(path, part, _)| name.starts_with(path) && body.contains(part));
            if fence.language != "rust" || fence.reason().is_some() || elsewhere {
                continue;
            }
            let allowed = OTHER_CRATES.iter().find(|(path, _)| *path == name);
            for line in body.lines().filter(|line| line.contains("transom_")) {
                let other = allowed.is_some_and(|(_, other)| line.contains(other));
                assert!(
                    other,
                    "{name}, line {}: a program that depends on `transom` alone cannot have: {line}",
                    fence.line
                );
            }
            count += 1;
            let context = CONTEXTS.iter().find(|(path, ..)| *path == name);
            let (items, parameters) =
                context.map_or(("", ""), |(_, items, parameters)| (*items, *parameters));
            add(&mut code, name, fence.line, &body, items, parameters);
        }
    }
    writeln!(code, "const COUNT: usize = {count};").expect("a string grows");
    let out = std::env::var("OUT_DIR").expect("cargo names a directory");
    fs::write(Path::new(&out).join("documents.rs"), code).expect("the directory of the build");
    println!("cargo::rerun-if-changed=documents/build.rs");
}

/// Adds a piece as a module: it is a program, a method of an extension, or statements.
fn add(code: &mut String, page: &str, line: usize, body: &str, items: &str, parameters: &str) {
    let module: String =
        page.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' }).collect();
    let lints = "#[allow(unused, dead_code, unreachable_code, clippy::all, clippy::pedantic, missing_docs)]";
    let around = if body.contains("fn main()") {
        body.to_owned()
    } else if page.starts_with("docs/extensions/variables/") {
        format!(
            "use transom::time::Duration;\nuse transom::extension::{{Extension, Limits, Occasion, Value, View, Wake}};\n#[derive(Debug)]\nstruct Ours;\n\
             impl Extension for Ours {{\nfn name(&self) -> &str {{ \"ours\" }}\nfn wake_on(&self) -> Wake {{ Wake::ROUND }}\n{}\n{body}\n}}",
            if body.contains("fn on_wake") {
                ""
            } else {
                "fn on_wake(&mut self, _: &Occasion, _: &View<'_>, _: &mut Limits) {}"
            }
        )
    } else {
        let keyword = if body.contains(".await") { "async fn" } else { "fn" };
        // What stands in a loop of the reader's.
        let body = match body.contains("break") && !body.contains("loop") {
            true => format!("loop {{ {body} }}"),
            false => body.to_owned(),
        };
        format!(
            "{items}\n{keyword} piece({parameters}) -> Result<(), Box<dyn std::error::Error>> {{\n{body}\n;\n#[allow(unreachable_code)]\nOk(())\n}}"
        )
    };
    writeln!(code, "// {page}, line {line}\n{lints}\nmod {module}_{line} {{\n{around}\n}}")
        .expect("a string grows");
}

//! What `std::net` can do, and what of it is here: the table in docs/sockets.md. `TRANSOM_BLESS=1 cargo test -p transom-net --test all std_table` writes it.
//!
//! Each line names a method. The compiler checks that it exists in the standard library, unless it is unstable there, and that it exists here, unless the line
//! gives a reason why not. Where the standard library's sources are installed, a test looks for methods that the table lacks.

use std::fs;
use std::path::PathBuf;

/// How it is here.
enum Here {
    Same,
    /// With a difference.
    But(&'static str),
    /// Not at all, for this reason.
    Absent(&'static str),
}

struct Line {
    of: &'static str,
    name: &'static str,
    here: Here,
}

macro_rules! table {
    ($($kind:ident {$($name:ident $state:ident: $how:ident $(($text:literal))?;)*})*) => {
        /// The compiler's part.
        #[allow(deprecated)]
        fn compiled() {
            $($(
                table!(@std $kind $name $state);
                table!(@here $kind $name $how);
            )*)*
        }
        const LINES: &[Line] = &[$($(
            Line { of: stringify!($kind), name: stringify!($name), here: table!(@how $how $($text)?) },
        )*)*];
    };
    (@std $kind:ident $name:ident unstable) => {};
    (@std $kind:ident $name:ident stable) => { let _ = std::net::$kind::$name; };
    (@std $kind:ident $name:ident generic) => { let _ = std::net::$kind::$name::<&str>; };
    (@std $kind:ident $name:ident linux) => {
        let _ = <std::net::$kind as std::os::linux::net::TcpStreamExt>::$name;
    };
    (@here $kind:ident $name:ident absent) => {};
    (@here $kind:ident $name:ident but_generic) => {
        let _ = |stack: &transom_net::Stack| transom_net::$kind::$name(stack, "192.0.2.1:80");
    };
    (@here $kind:ident $name:ident $how:ident) => { let _ = transom_net::$kind::$name; };
    (@how same) => { Here::Same };
    (@how but $text:literal) => { Here::But($text) };
    (@how but_generic $text:literal) => { Here::But($text) };
    (@how absent $text:literal) => { Here::Absent($text) };
}

table! {
    TcpStream {
        connect generic: but_generic("the stack is the first argument");
        connect_timeout stable: but("the stack is the first argument");
        peer_addr stable: same;
        local_addr stable: same;
        shutdown stable: but("what arrives after a shutdown for reading is dropped; on Linux it can be read");
        try_clone stable: same;
        set_read_timeout stable: same;
        set_write_timeout stable: same;
        read_timeout stable: same;
        write_timeout stable: same;
        peek stable: same;
        set_linger unstable: same;
        linger unstable: same;
        set_nodelay stable: same;
        nodelay stable: same;
        set_ttl stable: same;
        ttl stable: same;
        take_error stable: same;
        set_nonblocking stable: same;
        set_quickack linux: same;
        quickack linux: same;
        set_deferaccept unstable: absent("a connection is accepted when its handshake is complete: `TCP_DEFER_ACCEPT` is not implemented");
        deferaccept unstable: absent("as `set_deferaccept`");
    }
    TcpListener {
        bind generic: but_generic("the stack is the first argument");
        local_addr stable: same;
        try_clone stable: same;
        accept stable: same;
        incoming stable: same;
        into_incoming unstable: same;
        set_ttl stable: but("it is that of accepted connections; their SYN-ACKs have the host's own");
        ttl stable: same;
        set_only_v6 stable: absent("it fails after `bind` (and is deprecated); `TcpSocket::only_v6` and `ListenConfig::v6_only` work");
        only_v6 stable: same;
        take_error stable: same;
        set_nonblocking stable: same;
    }
}

/// Traits, in the words of the table. [`traits`] holds the compiler to them.
const TRAITS: &[(&str, &str, Here)] = &[
    ("TcpStream", "`Read`, `Read for &TcpStream`, vectored too", Here::Same),
    ("TcpStream", "`Write`, `Write for &TcpStream`, vectored too", Here::Same),
    ("TcpStream", "`Debug`, `Send`, `Sync`", Here::Same),
    (
        "TcpStream",
        "`AsFd`",
        Here::But("a descriptor to wait with: it is readable and writable when the stream is"),
    ),
    (
        "TcpStream",
        "`AsRawFd`, `IntoRawFd`, `FromRawFd`, `From<OwnedFd>`, `From<TcpStream> for OwnedFd`",
        Here::Absent("the connection is not in a descriptor, so none can stand for it"),
    ),
    ("TcpListener", "`Debug`, `Send`, `Sync`", Here::Same),
    ("TcpListener", "`AsFd`", Here::But("a descriptor to wait with")),
    (
        "TcpListener",
        "`AsRawFd`, `IntoRawFd`, `FromRawFd`, `From<OwnedFd>`, `From<TcpListener> for OwnedFd`",
        Here::Absent("as for `TcpStream`"),
    ),
];

#[test]
fn traits() {
    use std::fmt::Debug;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    fn stream<T: Read + Write + Debug + Send + Sync + AsFd>()
    where
        for<'a> &'a T: Read + Write,
    {
    }
    fn listener<T: Debug + Send + Sync + AsFd>() {}
    stream::<std::net::TcpStream>();
    stream::<transom_net::TcpStream>();
    listener::<std::net::TcpListener>();
    listener::<transom_net::TcpListener>();
}

fn page() -> String {
    let mut page = String::from("| `std::net` | Transom | |\n|---|---|---|\n");
    let mut push = |name: String, here: &Here| {
        let (is, why) = match here {
            Here::Same => ("the same", ""),
            Here::But(why) => ("yes", *why),
            Here::Absent(why) => ("no", *why),
        };
        page.push_str(&format!("| {name} | {is} | {why} |\n"));
    };
    for Line { of, name, here } in LINES {
        push(format!("`{of}::{name}`"), here);
    }
    for (of, name, here) in TRAITS {
        push(format!("`{of}`: {name}"), here);
    }
    page
}

#[test]
fn the_table_in_the_document_is_this_one() {
    compiled();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/sockets.md");
    let document = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- std::net: begin -->\n", "<!-- std::net: end -->\n");
    let from = document.find(begin).expect("the mark where the table begins") + begin.len();
    let upto = document.find(end).expect("the mark where it ends");
    let wanted = format!("{}{}{}", &document[..from], page(), &document[upto..]);
    if std::env::var_os("TRANSOM_BLESS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(
        wanted == fs::read_to_string(&path).unwrap(),
        "run TRANSOM_BLESS=1 cargo test -p transom-net --test all std_table"
    );
}

/// The methods of `impl KIND` in a source of the standard library: public, and not of a trait.
fn methods(source: &str, kind: &str) -> Vec<String> {
    let mut methods = Vec::new();
    let start = format!("impl {kind} {{");
    let mut inside = false;
    for line in source.lines() {
        inside |= line == start;
        inside &= line != "}";
        if let Some(rest) = line.strip_prefix("    pub fn ").filter(|_| inside) {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            methods.extend(name.map(String::from));
        }
    }
    methods
}

#[test]
fn the_standard_library_has_no_method_that_the_table_lacks() {
    let rustc = std::process::Command::new("rustc").args(["--print", "sysroot"]).output();
    let source = rustc.ok().and_then(|output| {
        let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        let path = sysroot.join("lib/rustlib/src/rust/library/std/src/net/tcp.rs");
        fs::read_to_string(path).ok()
    });
    let Some(source) = source else {
        eprintln!(
            "SKIPPED: methods that std::net has and the table lacks (rust-src is not installed)"
        );
        return;
    };
    for kind in ["TcpStream", "TcpListener"] {
        for method in methods(&source, kind) {
            let known = LINES.iter().any(|line| line.of == kind && line.name == method);
            assert!(known, "{kind}::{method} is in std::net; say in the table how it is here");
        }
    }
}

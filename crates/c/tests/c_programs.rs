//! C programs that use the library as other people's programs would.

use crate::support::{KERNEL, Link, Program, STACK, c_source, compiler, finish, namespace, root};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

/// A transfer that makes no progress for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn an_echo_over_memory() {
    let Some(compiler) = compiler() else { return };
    for link in [Link::Shared, Link::Static] {
        let program = Program::build(&compiler, &c_source("echo.c"), link);
        assert_eq!(program.run(&["both"]), "1048576 bytes came back\n", "{link:?}");
    }
}

#[test]
fn a_client_of_a_server_on_the_kernel() {
    let (Some(compiler), Some(namespace)) = (compiler(), namespace()) else { return };
    let program = Program::build(&compiler, &c_source("echo.c"), Link::Static);
    // The address exists once the stack has made the interface.
    let listener = namespace.run(|| TcpListener::bind("0.0.0.0:7007")).unwrap().unwrap();
    let mut command = program.command();
    command.args(["client", &KERNEL.to_string(), "7007"]).env("TRANSOM_DEVICE", "tun:client0");
    let child = namespace.spawn(command.stdout(Stdio::piped())).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(peer.ip(), STACK);
        std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    });
    assert_eq!(finish(child), "1048576 bytes came back\n");
    server.join().unwrap();
}

#[test]
fn a_server_of_a_client_on_the_kernel() {
    let (Some(compiler), Some(namespace)) = (compiler(), namespace()) else { return };
    let program = Program::build(&compiler, &c_source("echo.c"), Link::Static);
    let mut command = program.command();
    command.args(["server", "7007"]).env("TRANSOM_DEVICE", "tun:server0");
    let mut child = namespace.spawn(command.stdout(Stdio::piped())).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "listening\n");
    let mut stream = namespace.run(|| TcpStream::connect((STACK, 7007))).unwrap().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let bytes = sent.clone();
    let writer = std::thread::spawn(move || {
        writer.write_all(&bytes).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    writer.join().unwrap();
    assert!(back == sent, "{} bytes came back", back.len());
    finish(child);
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "served\n");
}

#[test]
fn data_written_before_an_exit_arrives() {
    let (Some(compiler), Some(namespace)) = (compiler(), namespace()) else { return };
    let program = Program::build(&compiler, &c_source("leave.c"), Link::Static);
    let listener = namespace.run(|| TcpListener::bind("0.0.0.0:7008")).unwrap().unwrap();
    let mut command = program.command();
    command.args([&KERNEL.to_string(), "7008"]).env("TRANSOM_DEVICE", "tun:leave0");
    let child = namespace.spawn(&mut command).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert_eq!(got.len(), 500_000);
    finish(child);
}

/// Two processes, without any privilege.
#[test]
fn an_echo_over_udp() {
    let Some(compiler) = compiler() else { return };
    let program = Program::build(&compiler, &c_source("echo.c"), Link::Shared);
    // A port that was free a moment ago.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = program.command();
    server.args(["server", "7"]).env("TRANSOM_DEVICE", format!("udp:listen:127.0.0.1:{port}"));
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "listening\n");
    let mut client = program.command();
    // The end that listens is the first host there.
    client.args(["client", "10.9.0.1", "7"]);
    client.env("TRANSOM_DEVICE", format!("udp:127.0.0.1:{port}")).stdout(Stdio::piped());
    assert_eq!(finish(client.spawn().unwrap()), "1048576 bytes came back\n");
    finish(server);
}

/// Opens a TUN interface, and runs a program that is given the descriptor.
const OPENER: &str = "
import fcntl, os, struct, subprocess, sys
tun = os.open('/dev/net/tun', os.O_RDWR)
# A TUN interface without packet information.
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b'handed0', 0x1001))
subprocess.check_call(['ip', 'addr', 'add', '10.9.0.1/24', 'dev', 'handed0'])
subprocess.check_call(['ip', 'link', 'set', 'handed0', 'up'])
os.set_inheritable(tun, True)
os.environ['TRANSOM_DEVICE'] = f'fd:{tun}'
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn a_client_on_an_inherited_descriptor() {
    let (Some(compiler), Some(namespace)) = (compiler(), namespace()) else { return };
    let program = Program::build(&compiler, &c_source("echo.c"), Link::Static);
    let listener = namespace.run(|| TcpListener::bind("0.0.0.0:7010")).unwrap().unwrap();
    let plain = program.command();
    let mut command = std::process::Command::new("python3");
    command.args(["-c", OPENER]).arg(plain.get_program());
    command.args(plain.get_args()).args(["client", "10.9.0.1", "7010"]);
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = match namespace.spawn(command.stdout(Stdio::piped())) {
        Ok(child) => child,
        Err(error) => {
            eprintln!("SKIPPED: python3 is not installed: {error:?}");
            return;
        }
    };
    let (mut stream, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip().to_string(), "10.9.0.2");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(finish(child), "1048576 bytes came back\n");
}

/// A station of its own on an Ethernet, with units of TCP by their words.
#[test]
fn a_client_on_an_ethernet() {
    echo_on_an_ethernet("packet:left0");
}

/// The same, with frames that pass by the kernel.
#[test]
fn a_client_on_an_ethernet_by_xdp() {
    if cfg!(feature = "xdp") {
        echo_on_an_ethernet("xdp:left0");
    } else {
        eprintln!("SKIPPED: this build has no xdp");
    }
}

fn echo_on_an_ethernet(device: &str) {
    let (Some(compiler), Some(here)) = (compiler(), namespace()) else { return };
    let there = namespace().expect("a second one");
    if let Err(error) = here.add_veth("left0", &there, "right0") {
        eprintln!("SKIPPED: no pair of Ethernet interfaces here: {error}");
        return;
    }
    there.interfaces().add_address("right0", "192.0.2.1/24".parse().unwrap()).unwrap();
    here.interfaces().set_up("left0", true).unwrap();
    there.interfaces().set_up("right0", true).unwrap();
    let program = Program::build(&compiler, &c_source("echo.c"), Link::Static);
    let listener = there.run(|| TcpListener::bind("0.0.0.0:7009")).unwrap().unwrap();
    let mut command = program.command();
    command.args(["client", "192.0.2.1", "7009"]).env("TRANSOM_DEVICE", device);
    command.env("TRANSOM_ADDRESS", "192.0.2.7/24").env("TRANSOM_TCP", "newreno + no-sack");
    let child = here.spawn(command.stdout(Stdio::piped())).unwrap();
    let (mut stream, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip().to_string(), "192.0.2.7");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(finish(child), "1048576 bytes came back\n");
}

/// One of the tests in `behaviour.c`.
fn run_behaviour(name: &str) {
    /// It is built once for all of them.
    static PROGRAM: OnceLock<Option<Program>> = OnceLock::new();
    let program = PROGRAM
        .get_or_init(|| Some(Program::build(&compiler()?, &c_source("behaviour.c"), Link::Static)));
    let Some(program) = program else { return };
    assert_eq!(program.run(&[name]), "as expected\n", "{name}");
}

macro_rules! behaviours {
    ($($name:ident),*) => {
        mod behaviour {
            $(#[test]
            fn $name() {
                super::run_behaviour(stringify!($name));
            })*
        }
    };
}

behaviours!(
    errors,
    nonblocking,
    pieces,
    waiting,
    watching,
    threads,
    forking,
    signals,
    options,
    tcpu
);

#[test]
fn the_program_in_the_documentation_works() {
    let Some(compiler) = compiler() else { return };
    let page = root().join("../../docs/c.md");
    let text = std::fs::read_to_string(page).expect("docs/c.md");
    let program = text.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let source = scratch.path().join("hello.c");
    std::fs::write(&source, program.expect("a C program in docs/c.md")).expect("a file");
    let program = Program::build(&compiler, &source, Link::Shared);
    assert_eq!(program.run(&[]), "hello\n");
}

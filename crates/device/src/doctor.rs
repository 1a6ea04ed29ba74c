//! Which devices work on this machine, by trying: each is opened and closed again, in a way that no other program notices.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use crate::interface::{Interfaces, IpPrefix};
use crate::memory::{MemoryConfig, pair};
use crate::namespace::{Namespace, enter_user_namespace};
use crate::open::{OpenError, OpenOptions, Reason, open, with_causes};
use crate::packet;
use crate::tun::{Tun, TunBuilder};
use crate::udp::UdpTunnel;
use crate::word::DeviceWord;
use crate::{Device, TxPacket};

/// The result of trying one kind of device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The word, with the name of what it was tried on: `packet:eth0`.
    pub word: String,
    /// Whether it works.
    pub works: bool,
    /// The working or the missing part.
    pub what: String,
    /// Advice, if it does not work.
    pub advice: Option<String>,
    /// Whether it reaches anything outside this process.
    pub is_external: bool,
}

impl Finding {
    fn good(word: impl Into<String>, what: impl Into<String>) -> Self {
        let (word, what) = (word.into(), what.into());
        Finding { word, works: true, what, advice: None, is_external: true }
    }

    fn bad(word: impl Into<String>, what: impl Into<String>, advice: Option<String>) -> Self {
        let (word, what) = (word.into(), what.into());
        Finding { word, works: false, what, advice, is_external: true }
    }

    /// An error as a finding.
    fn of(error: &OpenError) -> Self {
        let advice = error.advice().map(str::to_owned);
        Finding::bad(error.word.to_string(), with_causes(&*error.reason), advice)
    }
}

/// Tries them all. The last, a network of one's own, leaves the process in a user namespace, unless it has privileges: this is for a process that does
/// nothing else, and has one thread.
pub fn examine(options: &OpenOptions) -> Vec<Finding> {
    let mut findings = vec![shared(options), tun()];
    findings.extend(ethernets("packet", try_packet));
    findings.extend(ethernets("xdp", try_xdp));
    findings.extend([udp(), inherited(), memory(), own_network()]);
    findings
}

fn shared(options: &OpenOptions) -> Finding {
    match open(&DeviceWord::Shared { socket: None }, options) {
        Ok(opened) => Finding::good("shared", format!("the broker gives {}", opened.place)),
        Err(error) => Finding::of(&error),
    }
}

/// A TUN interface without addresses, with a name of the kernel's choice.
fn nameless() -> TunBuilder {
    Tun::builder().name("transom-dr%d")
}

fn describe(tun: &Tun) -> String {
    let capabilities = tun.capabilities();
    let segmentation =
        if capabilities.segmentation.is_some() { "super-segments" } else { "single packets" };
    let checksums = if capabilities.tx_checksum { "open checksums" } else { "whole checksums" };
    format!("an interface was made and removed; {segmentation}, {checksums}")
}

fn tun() -> Finding {
    match nameless().open() {
        Ok(tun) => Finding::good("tun:NAME", describe(&tun)),
        Err(error) => {
            let word = DeviceWord::Tun { name: "transom0".into() };
            Finding { word: "tun:NAME".into(), ..Finding::of(&OpenError::new(word, error.into())) }
        }
    }
}

/// Tries something on each Ethernet interface that is up.
fn ethernets(kind: &str, attempt: impl Fn(&str, u32) -> Result<String, OpenError>) -> Vec<Finding> {
    let found = match Interfaces::open().and_then(|mut interfaces| interfaces.all()) {
        Ok(found) => found,
        Err(error) => {
            let what = format!("cannot ask the kernel for its interfaces: {error}");
            return vec![Finding::bad(format!("{kind}:INTERFACE"), what, None)];
        }
    };
    let usable = found.iter().filter(|state| state.up && state.hardware == libc::ARPHRD_ETHER);
    let findings: Vec<Finding> = usable
        .map(|state| match attempt(&state.name, state.index) {
            Ok(what) => Finding::good(format!("{kind}:{}", state.name), what),
            Err(error) => Finding::of(&error),
        })
        .collect();
    if findings.is_empty() {
        let advice = Some("`udp:ADDRESS:PORT` needs no interface of its own".into());
        let what = "there is no Ethernet interface that is up";
        return vec![Finding::bad(format!("{kind}:INTERFACE"), what, advice)];
    }
    findings
}

fn try_packet(name: &str, index: u32) -> Result<String, OpenError> {
    let word = DeviceWord::Packet { interface: name.into() };
    packet::try_socket(index).map_err(|error| OpenError::new(word, error.into()))?;
    Ok(format!("a packet socket was opened; {}", on_kernel_address()))
}

/// Whether `packet` needs an address of its own.
#[cfg(feature = "bpf")]
fn on_kernel_address() -> String {
    match packet::try_silence() {
        Ok(()) => "without --addr it is on the kernel's own addresses".into(),
        Err(error) => format!("needs an address of its own (--addr): {}", with_causes(&error)),
    }
}

#[cfg(not(feature = "bpf"))]
fn on_kernel_address() -> String {
    "needs an address of its own (--addr)".into()
}

fn try_xdp(name: &str, _index: u32) -> Result<String, OpenError> {
    let word = DeviceWord::Xdp { interface: name.into() };
    xdp_parts().map_err(|reason| OpenError::new(word, reason))?;
    Ok("its program was loaded and its socket opened, both away from the interface; needs an address of its own (--addr)".into())
}

#[cfg(feature = "xdp")]
fn xdp_parts() -> Result<(), Reason> {
    Ok(crate::xdp::try_parts()?)
}

#[cfg(not(feature = "xdp"))]
fn xdp_parts() -> Result<(), Reason> {
    Err(Reason::NotBuilt)
}

/// A tunnel from the machine to itself.
fn udp() -> Finding {
    let word = "udp:ADDRESS:PORT";
    let failed = |error: &dyn std::error::Error| Finding::bad(word, with_causes(error), None);
    let Some(own) = IpPrefix::new(Ipv4Addr::new(10, 9, 0, 1).into(), 24) else {
        return failed(&io::Error::from(io::ErrorKind::InvalidInput));
    };
    let local = (IpAddr::from(Ipv4Addr::LOCALHOST), 0).into();
    let mut listener = match UdpTunnel::listen(local, &[own], None) {
        Ok(listener) => listener,
        Err(error) => return failed(&error),
    };
    let remote = match listener.local_address() {
        Ok(remote) => remote,
        Err(error) => return failed(&error),
    };
    let outcome = std::thread::scope(|scope| {
        let joining = scope.spawn(|| UdpTunnel::connect(remote, &[], None));
        while !joining.is_finished() {
            if listener.recv().is_err() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        joining.join()
    });
    match outcome {
        Ok(Ok(_)) => Finding::good(
            word,
            "a tunnel to this machine itself was opened; the other end has udp:listen:PORT",
        ),
        Ok(Err(error)) => failed(&error),
        Err(_) => Finding::bad(word, "it ended by a panic, which is a defect", None),
    }
}

/// Descriptors that this process was started with.
fn inherited() -> Finding {
    let numbers = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let tun = numbers.into_iter().find_map(|number: u32| {
        let tun = Tun::builder().inherit(number, None).ok()?;
        Some((number, tun))
    });
    match tun {
        Some((number, tun)) => {
            Finding::good(format!("fd:{number}"), format!("it is of the interface {}", tun.name()))
        }
        None => Finding::bad(
            "fd:NUMBER",
            "this process was started without a descriptor of a TUN interface",
            Some("it is for programs that open one for another".into()),
        ),
    }
}

fn memory() -> Finding {
    let word = "mem:NAME";
    let works = pair(&MemoryConfig::default()).and_then(|(mut near, mut far)| {
        near.send(&TxPacket::whole(b"hello"))?;
        far.recv()
    });
    let finding = match works {
        Ok(_) => {
            Finding::good(word, "for two stacks of one program; the command has no use for it")
        }
        Err(error) => Finding::bad(word, with_causes(&error), None),
    };
    Finding { is_external: false, ..finding }
}

/// The needs of `--lab`.
fn own_network() -> Finding {
    let word = "--lab";
    let attempt = || -> Result<String, Box<dyn std::error::Error>> {
        enter_user_namespace()?;
        let namespace = Namespace::new()?;
        Ok(describe(&namespace.run(|| nameless().open())??))
    };
    let finding = match attempt() {
        Ok(what) => Finding::good(word, format!("a network of one's own: {what}")),
        Err(error) => {
            let advice = "the system must allow user namespaces, and /dev/net/tun to everybody; root has both";
            Finding::bad(word, with_causes(&*error), Some(advice.into()))
        }
    };
    Finding { is_external: false, ..finding }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// But for the last, which changes the process.
    #[test]
    fn devices_without_needs_work_and_the_others_name_the_missing() {
        let findings = [shared(&OpenOptions::default()), udp(), inherited(), memory()];
        let works: Vec<bool> = findings.iter().map(|finding| finding.works).collect();
        assert_eq!(works, [false, true, false, true], "{findings:?}");
        for finding in findings {
            assert!(!finding.what.is_empty());
            assert!(finding.works || finding.advice.is_some(), "{finding:?}");
        }
    }
}

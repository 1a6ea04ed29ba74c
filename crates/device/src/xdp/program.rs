//! The program that gives a station's frames to our socket.

use std::os::fd::OwnedFd;

use transom_bpf::libbpf_rs::{MapCore, MapFlags};
use transom_bpf::{Aligned, BpfError, Loaded, attach_xdp, open, set_constants};

use super::XdpError;
use super::queues::Queues;
use crate::link::Mac;

/// The program, compiled. `bpf/build.sh` makes it.
pub(super) static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../bpf/station.bpf.o"));

/// The program in its place. It leaves with this value, or with the process.
pub(super) struct Redirection {
    _link: OwnedFd,
    native: bool,
}

fn failed(action: &'static str) -> impl FnOnce(BpfError) -> XdpError {
    move |source| XdpError::Program { action, source: Box::new(source) }
}

/// Has the kernel look at the program, and take it away again.
pub(super) fn try_load() -> Result<(), XdpError> {
    load([0; 6]).map(|_| ()).map_err(failed(LOADING))
}

fn load(mac: Mac) -> Result<Loaded, BpfError> {
    let [a, b, c, d, e, f] = mac;
    let station = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let mut object = open(OBJECT)?;
    set_constants(&mut object, &station.to_ne_bytes())?;
    Loaded::load(object, "the kernel does not take the program")
}

const LOADING: &str = "load the program that gives us our frames";

impl Redirection {
    /// Puts the program at the interface with this number; at the driver if it can.
    pub(super) fn attach(index: u32, mac: Mac, queues: &Queues) -> Result<Self, XdpError> {
        let programs = load(mac).map_err(failed(LOADING))?;
        let sockets = programs.map("sockets").map_err(failed(LOADING))?;
        for (queue, rings) in (0u32..).zip(queues.all()) {
            let socket = u32::try_from(rings.raw_fd()).unwrap_or(u32::MAX);
            let given = sockets.update(&queue.to_ne_bytes(), &socket.to_ne_bytes(), MapFlags::ANY);
            let given = given.map_err(BpfError::of("the kernel does not take the socket"));
            given.map_err(failed("give the program our socket"))?;
        }
        let program = programs.program("transom_station").map_err(failed(LOADING))?;
        let (link, native) = attach_xdp(&program, index)
            .map_err(failed("attach the program; another may be in its place"))?;
        Ok(Redirection { _link: link, native })
    }

    pub(super) fn is_native(&self) -> bool {
        self.native
    }
}

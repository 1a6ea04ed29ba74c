//! The program that gives a station's frames to our socket.

use aya::maps::XskMap;
use aya::programs::xdp::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};

use super::XdpError;
use super::rings::Rings;
use crate::link::Mac;

/// The program, compiled. `bpf/build.sh` makes it.
pub(super) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/station.bpf.o"));

/// The program in its place. It leaves with this value, or with the process.
pub(super) struct Redirection {
    _programs: Ebpf,
    native: bool,
}

fn failed<E>(what: &'static str) -> impl FnOnce(E) -> XdpError
where
    E: std::error::Error + Send + Sync + 'static,
{
    move |error| XdpError::Program { what, source: Box::new(error) }
}

/// Has the kernel look at the program, and take it away again.
pub(super) fn try_load() -> Result<(), XdpError> {
    load([0; 6]).map(|_| ())
}

fn load(mac: Mac) -> Result<Ebpf, XdpError> {
    let [a, b, c, d, e, f] = mac;
    let station = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let mut programs = EbpfLoader::new()
        .override_global("station", &station, true)
        .load(OBJECT)
        .map_err(failed(LOADING))?;
    program(&mut programs)?.load().map_err(failed(LOADING))?;
    Ok(programs)
}

fn program(programs: &mut Ebpf) -> Result<&mut Xdp, XdpError> {
    let program = programs.program_mut("transom_station").ok_or_else(missing)?;
    program.try_into().map_err(failed(LOADING))
}

const LOADING: &str = "a program loaded that gives us our frames";

fn missing() -> XdpError {
    failed(LOADING)(std::io::Error::from(std::io::ErrorKind::NotFound))
}

impl Redirection {
    /// Puts the program at the interface with this number; at the driver if it can.
    pub(super) fn attach(index: u32, mac: Mac, rings: &Rings) -> Result<Self, XdpError> {
        let mut programs = load(mac)?;
        let map = programs.map_mut("sockets").ok_or_else(missing)?;
        let mut sockets: XskMap<_> = map.try_into().map_err(failed(LOADING))?;
        sockets.set(0, rings.raw_fd(), 0).map_err(failed("the socket given to the program"))?;
        let program = program(&mut programs)?;
        let native = program.attach_to_if_index(index, XdpMode::Driver).is_ok();
        if !native {
            let attaching = "the program attached: another may be in its place";
            program.attach_to_if_index(index, XdpMode::Skb).map_err(failed(attaching))?;
        }
        Ok(Redirection { _programs: programs, native })
    }

    pub(super) fn is_native(&self) -> bool {
        self.native
    }
}

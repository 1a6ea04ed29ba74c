//! The programs, their maps and their links, all of them pinned.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use transom_bpf::libbpf_rs::{self, MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use transom_bpf::{Aligned, BpfError, Loaded, attach_tcx, attempt, open, update};

use super::DaemonError;
use super::layout::{
    self, DEMUX_COUNTERS, DROP_REASONS, Entry, Flow, Hold, LAYOUT, LeaseEntry, PORT_TAKEN_COUNTER,
    PortEntry, Quarantined, Track,
};
use super::pins::{PinDirectory, mount, tcx_device};
use crate::protocol::Count;

/// The programs, compiled. `bpf/build.sh` makes it.
pub(super) static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../bpf/tcpk.bpf.o"));

/// `struct counts`, in numbers of 64 bits.
const COUNTS: usize = 5 + DROP_REASONS.len();

/// The traffic of a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseCounts {
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    /// Connections that are not in the map of flows.
    pub(super) untracked: u64,
    pub(super) drops: [u64; DROP_REASONS.len()],
}

#[derive(Debug)]
pub(super) struct Kernel {
    programs: Loaded,
    pins: PinDirectory,
    pub(super) ports: Map<SocketAddr, PortEntry>,
    pub(super) leases: Map<u32, LeaseEntry>,
    counts: MapHandle,
    demux_total: MapHandle,
    guard_total: MapHandle,
    locals: MapHandle,
    uplinks: MapHandle,
    peers: MapHandle,
    flows: MapHandle,
    rates: MapHandle,
    pub(super) quarantine: Map<Flow, Quarantined>,
    quarantine_used: MapHandle,
    pub(super) holds: Map<SocketAddr, Hold>,
}

impl Kernel {
    /// Loads the programs. Maps that an earlier broker has left are taken over, and its links get the new programs.
    pub(super) fn load(directory: &Path) -> Result<Self, DaemonError> {
        if cfg!(target_endian = "big") {
            return Err(DaemonError::BigEndian);
        }
        let io = |action: &str| DaemonError::io(format!("{action} {}", directory.display()));
        if let Some(parent) = directory.parent() {
            mount(parent).map_err(io("cannot mount a BPF file system for"))?;
        }
        let pins = PinDirectory::create(directory).map_err(io("cannot make"))?;
        let is_other_layout =
            |name: &String| !name.contains('-') && !name.ends_with(&layout_suffix());
        if pins.names().iter().any(is_other_layout) {
            return Err(DaemonError::OtherLayout { path: directory.to_owned() });
        }
        let mut object = open(OBJECT)?;
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            // Constants belong to the program, not to what goes on.
            if name.contains('.') {
                continue;
            }
            let pin = pins.pin(&pin_name(&name));
            map.set_pin_path(pin).map_err(BpfError::of("cannot name a pin"))?;
        }
        let programs = Loaded::load(object, "the kernel does not take the programs or the maps")?;
        let kernel = Kernel {
            ports: Map::of(programs.map("ports")?),
            leases: Map::of(programs.map("leases")?),
            counts: programs.map("counts_of")?,
            demux_total: programs.map("demux_total")?,
            guard_total: programs.map("guard_total")?,
            locals: programs.map("locals")?,
            uplinks: programs.map("uplinks")?,
            peers: programs.map("peers")?,
            flows: programs.map("flows")?,
            rates: programs.map("rates")?,
            quarantine: Map::of(programs.map("quarantine")?),
            quarantine_used: programs.map("quarantine_used")?,
            holds: Map::of(programs.map("holds")?),
            programs,
            pins,
        };
        kernel.take_over()?;
        Ok(kernel)
    }

    /// Gives the links of an earlier broker the new programs, and sweeps those of interfaces that have gone.
    fn take_over(&self) -> Result<(), DaemonError> {
        for name in self.pins.names() {
            let Some((program, _)) = name.split_once('-') else { continue };
            let Ok(mut link) = self.pins.link(&name) else { continue };
            if tcx_device(&link).unwrap_or(0) == 0 {
                self.unpin(&name);
            } else {
                update(&mut link, &*self.programs.program(program)?)?;
            }
        }
        Ok(())
    }

    /// Attaches a program to an interface and pins the link, unless that has been done.
    pub(super) fn attach(&self, program: &str, device: u32) -> Result<(), DaemonError> {
        let name = format!("{program}-{device}");
        if self.is_attached(program, device) {
            return Ok(());
        }
        self.unpin(&name);
        let mut link = attach_tcx(&*self.programs.program(program)?, device)?;
        Ok(self.pins.pin_link(&mut link, &name)?)
    }

    pub(super) fn is_attached(&self, program: &str, device: u32) -> bool {
        let link = self.pins.link(&format!("{program}-{device}"));
        link.is_ok_and(|link| tcx_device(&link) == Some(device))
    }

    /// Removes a program from an interface.
    pub(super) fn detach(&self, program: &str, device: u32) {
        self.unpin(&format!("{program}-{device}"));
    }

    /// The interfaces to which a program was attached, also those that have gone.
    pub(super) fn attached(&self, program: &str) -> Vec<u32> {
        let names = self.pins.names();
        let numbers = names.iter().filter_map(|name| {
            let (kind, number) = name.split_once('-')?;
            number.parse().ok().filter(|_| kind == program)
        });
        numbers.collect()
    }

    fn unpin(&self, name: &str) {
        // A pin can only be gone already: the directory is ours alone.
        let _ = self.pins.remove(name);
    }

    /// Removes everything from the system.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.pins.clone().remove_all()
    }

    /// Writes the lease and the counters of a device, before the device can be used.
    pub(super) fn set_lease(&self, device: u32, lease: &LeaseEntry) -> Result<(), DaemonError> {
        let processors = attempt("cannot count the processors", libbpf_rs::num_possible_cpus)?;
        let zero = vec![vec![0; COUNTS * 8]; processors];
        let failed = BpfError::of("cannot write into a map");
        let key = device.to_ne_bytes();
        self.counts.update_percpu(&key, &zero, MapFlags::ANY).map_err(failed)?;
        let flows = new_flows()?;
        set(&self.flows, &key, &flows.as_fd().as_raw_fd().to_ne_bytes())?;
        self.change_lease(device, lease)
    }

    /// The entry of a lease that may have another rate than before.
    pub(super) fn change_lease(&self, device: u32, lease: &LeaseEntry) -> Result<(), DaemonError> {
        if let Some(rate) = lease.rate_bytes() {
            let key = lease.user.to_ne_bytes();
            let present = self.rates.lookup(&key, MapFlags::ANY).ok().flatten();
            // Packets that the user has sent already still count.
            if present.is_none_or(|present| present.get(8..) != rate.get(8..)) {
                set(&self.rates, &key, &rate)?;
            }
        }
        self.leases.set(&device, lease)
    }

    /// Forgets the rates of users other than these.
    pub(super) fn retain_rates(&self, users: &BTreeSet<u32>) {
        for key in self.rates.keys().collect::<Vec<_>>() {
            let user = u32::read(&key);
            if user.is_none_or(|user| !users.contains(&user)) {
                clear(&self.rates, &key);
            }
        }
    }

    pub(super) fn clear_lease(&self, device: u32) {
        self.leases.remove(&device);
        clear(&self.counts, &device.to_ne_bytes());
        clear(&self.flows, &device.to_ne_bytes());
    }

    pub(super) fn counts(&self, device: u32) -> Option<LeaseCounts> {
        counts_in(&self.counts, device)
    }

    pub(super) fn demux_counts(&self) -> Vec<Count> {
        let rows = self.demux_total.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let rows = rows.ok().flatten().unwrap_or_default();
        named_counts(&DEMUX_COUNTERS, &layout::sum_rows::<{ DEMUX_COUNTERS.len() }>(&rows))
    }

    pub(super) fn guard_counts(&self) -> Vec<Count> {
        let one = |reason: u32| {
            let rows = self.guard_total.lookup_percpu(&reason.to_ne_bytes(), MapFlags::ANY);
            layout::sum_rows::<1>(&rows.ok().flatten().unwrap_or_default())[0]
        };
        let all: Vec<_> = (0..DROP_REASONS.len() as u32).map(one).collect();
        named_counts(&DROP_REASONS, &all)
    }

    /// The connections of a device.
    pub(super) fn flows(&self, device: u32) -> Vec<(Flow, Track)> {
        flows_of(&self.flows, device).map(|flows| read_flows(&flows)).unwrap_or_default()
    }

    /// Takes connections out of a device's map.
    pub(super) fn forget_flows<'a>(&self, device: u32, gone: impl IntoIterator<Item = &'a Flow>) {
        let Some(flows) = flows_of(&self.flows, device) else { return };
        gone.into_iter().for_each(|flow| clear(&flows, &flow.bytes()));
    }

    /// Whether a device has had connections that its map of flows does not have.
    pub(super) fn has_untracked(&self, device: u32) -> bool {
        // Without counters nothing is known.
        self.counts(device).is_none_or(|counts| counts.untracked > 0)
    }

    /// Says whether there is any connection in quarantine. The programs do not look for one otherwise.
    pub(super) fn use_quarantine(&self, used: bool) -> Result<(), DaemonError> {
        let key = 0u32.to_ne_bytes();
        set(&self.quarantine_used, &key, &u32::from(used).to_ne_bytes())
    }

    /// Makes the keys of a map those that are wanted.
    fn reconcile(map: &MapHandle, wanted: &[Vec<u8>], value: &[u8]) -> Result<(), DaemonError> {
        for key in map.keys().collect::<Vec<_>>() {
            if !wanted.contains(&key) {
                clear(map, &key);
            }
        }
        for key in wanted {
            set(map, key, value)?;
        }
        Ok(())
    }

    pub(super) fn set_locals(&self, addresses: &[IpAddr]) -> Result<(), DaemonError> {
        let keys: Vec<_> =
            addresses.iter().map(|at| layout::endpoint_key(*at, 0).to_vec()).collect();
        Self::reconcile(&self.locals, &keys, &[1])
    }

    pub(super) fn set_uplinks(&self, devices: &[u32]) -> Result<(), DaemonError> {
        let keys: Vec<_> = devices.iter().map(|device| device.to_ne_bytes().to_vec()).collect();
        Self::reconcile(&self.uplinks, &keys, &1u32.to_ne_bytes())
    }

    /// The keys of all lists of peers.
    pub(super) fn peers(&self) -> Vec<Vec<u8>> {
        self.peers.keys().collect()
    }

    pub(super) fn add_peers(&self, keys: &[Vec<u8>]) -> Result<(), DaemonError> {
        keys.iter().try_for_each(|key| set(&self.peers, key, &[1]))
    }

    pub(super) fn clear_peers(&self, keys: &[Vec<u8>]) {
        keys.iter().for_each(|key| clear(&self.peers, key));
    }

    /// How many ports the programs have given back to the kernel.
    pub(super) fn taken_port_count(&self) -> u64 {
        self.demux_counts()
            .iter()
            .filter(|count| count.name == PORT_TAKEN_COUNTER)
            .map(|count| count.count)
            .sum()
    }
}

/// The name of a map's pin.
pub(super) fn pin_name(map: &str) -> String {
    format!("{map}{}", layout_suffix())
}

fn layout_suffix() -> String {
    format!("_{LAYOUT}")
}

fn counts_in(map: &MapHandle, device: u32) -> Option<LeaseCounts> {
    let rows = map.lookup_percpu(&device.to_ne_bytes(), MapFlags::ANY).ok()??;
    let all: [u64; COUNTS] = layout::sum_rows(&rows);
    let mut drops = [0; DROP_REASONS.len()];
    drops.copy_from_slice(&all[COUNTS - DROP_REASONS.len()..]);
    Some(LeaseCounts {
        received_packets: all[0],
        received_bytes: all[1],
        sent_packets: all[2],
        sent_bytes: all[3],
        untracked: all[4],
        drops,
    })
}

/// The connections of a device, in the map of all devices.
fn flows_of(all: &MapHandle, device: u32) -> Option<MapHandle> {
    let number = all.lookup(&device.to_ne_bytes(), MapFlags::ANY).ok()??;
    MapHandle::from_map_id(u32::read(&number)?).ok()
}

fn set(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), DaemonError> {
    let failed = BpfError::of("cannot write into a map");
    Ok(map.update(key, value, MapFlags::ANY).map_err(failed)?)
}

fn clear(map: &MapHandle, key: &[u8]) {
    // Gone already is as good.
    let _ = map.delete(key);
}

/// A map whose keys and values are of these types.
#[derive(Debug)]
pub(super) struct Map<K, V>(MapHandle, PhantomData<(K, V)>);

impl<K: Entry, V: Entry> Map<K, V> {
    fn of(map: MapHandle) -> Self {
        Map(map, PhantomData)
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        V::read(&self.0.lookup(&key.bytes(), MapFlags::ANY).ok()??)
    }

    pub(super) fn set(&self, key: &K, value: &V) -> Result<(), DaemonError> {
        set(&self.0, &key.bytes(), &value.bytes())
    }

    pub(super) fn remove(&self, key: &K) {
        clear(&self.0, &key.bytes());
    }

    pub(super) fn all(&self) -> Vec<(K, V)> {
        let entries = entries(&self.0).into_iter();
        entries.filter_map(|(key, value)| Some((K::read(&key)?, V::read(&value)?))).collect()
    }
}

/// The entries of a map. Only we remove entries of these maps, or the programs do so one by one: then the kernel may begin anew, and repeat some.
fn entries(map: &MapHandle) -> Vec<(Vec<u8>, Vec<u8>)> {
    let most = 2 * map.max_entries() as usize;
    let keys: BTreeSet<_> = map.keys().take(most).collect();
    let entry = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??;
        Some((key, value))
    };
    keys.into_iter().filter_map(entry).collect()
}

fn read_flows(flows: &MapHandle) -> Vec<(Flow, Track)> {
    let read = |(key, value): (Vec<u8>, Vec<u8>)| {
        // Of another layout, nothing is known but that it is there.
        Some((Flow::read(&key)?, Track::read(&value).unwrap_or_default()))
    };
    entries(flows).into_iter().filter_map(read).collect()
}

/// A map for the flows of one device, to be put into the map of all. It takes memory for the entries that it has.
fn new_flows() -> Result<MapHandle, BpfError> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        map_flags: libbpf_sys::BPF_F_NO_PREALLOC,
        ..Default::default()
    };
    let (kind, key, value) = (MapType::Hash, layout::FLOW_LEN as u32, layout::TRACK_LEN as u32);
    attempt("cannot make the map flows", || {
        MapHandle::create(kind, Some("flows"), key, value, layout::MAX_FLOWS, &options)
    })
}

/// The maps that a broker which does not run any more has left, as far as they can be read. Those of another layout have the same keys, or are not read.
#[derive(Debug)]
pub(super) struct Leftovers {
    flows: Option<MapHandle>,
    leases: Option<Map<u32, LeaseEntry>>,
    ports: Option<Map<SocketAddr, u32>>,
    /// These are of this layout only.
    counts: Option<MapHandle>,
    pub(super) quarantine: Option<Map<Flow, Quarantined>>,
    pub(super) holds: Option<Map<SocketAddr, Hold>>,
}

impl Leftovers {
    pub(super) fn open(pins: &PinDirectory) -> Self {
        let names = pins.names();
        let open = |name: &str| MapHandle::from_pinned_path(pins.pin(name)).ok();
        let of_any_layout = |map: &str, key: usize| {
            let is_pin = |name: &&String| {
                let suffix = name.strip_prefix(map).and_then(|rest| rest.strip_prefix('_'));
                suffix.is_some_and(|number| number.parse::<u32>().is_ok())
            };
            let found = names.iter().find(is_pin).and_then(|name| open(name));
            found.filter(|map| map.key_size() as usize == key)
        };
        let of_ours = |map: &str| open(&pin_name(map));
        let quarantine = of_ours("quarantine").filter(|_| {
            let used = of_ours("quarantine_used");
            let (key, one) = (0u32.to_ne_bytes(), 1u32.to_ne_bytes());
            used.is_some_and(|used| used.update(&key, &one, MapFlags::ANY).is_ok())
        });
        let leases = of_any_layout("leases", 4);
        Leftovers {
            flows: of_any_layout("flows", 4),
            leases: leases
                .filter(|map| map.value_size() as usize == layout::LEASE_LEN)
                .map(Map::of),
            ports: of_any_layout("ports", layout::ENDPOINT_LEN).map(Map::of),
            counts: of_ours("counts_of"),
            quarantine: quarantine.map(Map::of),
            holds: of_ours("holds").map(Map::of),
        }
    }

    /// The users of the devices.
    pub(super) fn users(&self) -> BTreeMap<u32, u32> {
        let leases = self.leases.iter().flat_map(Map::all);
        leases.map(|(device, lease)| (device, lease.user)).collect()
    }

    /// The connections of all devices.
    pub(super) fn flows(&self) -> Vec<(u32, Flow, Track)> {
        let Some(all) = &self.flows else { return Vec::new() };
        let devices = all.keys().filter_map(|key| u32::read(&key));
        let of_device = |device: u32| {
            let flows =
                flows_of(all, device).filter(|flows| flows.key_size() as usize == layout::FLOW_LEN);
            let flows = flows.map(|flows| read_flows(&flows)).unwrap_or_default();
            flows.into_iter().map(move |(flow, track)| (device, flow, track))
        };
        devices.flat_map(of_device).collect()
    }

    /// The ports, and the devices that they belong to.
    pub(super) fn ports(&self) -> Vec<(SocketAddr, u32)> {
        self.ports.iter().flat_map(Map::all).collect()
    }

    /// Whether a device may have had connections that its map of flows does not have.
    pub(super) fn has_untracked(&self, device: u32) -> bool {
        let counts = self.counts.as_ref().and_then(|counts| counts_in(counts, device));
        counts.is_none_or(|counts| counts.untracked > 0)
    }
}

/// The devices with a program of this kind that a broker has left.
pub(super) fn leftover_devices(pins: &PinDirectory, program: &str) -> Vec<u32> {
    let names = pins.names();
    let devices = names.iter().filter_map(|name| {
        let number = name.strip_prefix(program)?.strip_prefix('-')?.parse().ok()?;
        // The number may be another interface's by now.
        (tcx_device(&pins.link(name).ok()?) == Some(number)).then_some(number)
    });
    devices.collect()
}

pub(super) fn named_counts(names: &[&str], counts: &[u64]) -> Vec<Count> {
    let pairs = names.iter().zip(counts);
    pairs.map(|(name, count)| Count { name: (*name).to_owned(), count: *count }).collect()
}

#[cfg(test)]
mod tests;

//! Making and unmaking hosts.

use super::{HostNumber, REFUSAL, add, entry, guarded_without_host, memory, remove, status};
use crate::config::{Address, Config, MIN_SIZE};
use crate::host::Host;
use crate::{Errno, Result};
use libc::{E2BIG, EFAULT, EINVAL};
use std::ffi::{c_char, c_void};
use std::sync::PoisonError;

/// The version of this interface. It changes when something that was there changes its meaning.
pub const ABI_VERSION: u32 = 3;

/// Addresses of one host at most.
const MAX_ADDRESSES: usize = 1024;
/// No configuration will ever be as long.
const MAX_CONFIG: usize = 65_536;

/// The version of the interface that the library has, to be compared with `TS_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_abi_version() -> u32 {
    ABI_VERSION
}

/// Fills in a configuration with the defaults, without addresses. `size` is `sizeof *config`.
///
/// Returns 0, `-TS_EFAULT`, or `-TS_EINVAL` if `size` is too small.
///
/// # Safety
/// `config` is null or valid for writing `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_config_init(config: *mut Config, size: usize) -> i32 {
    status(guarded_without_host(|| {
        if !(MIN_SIZE..=MAX_CONFIG).contains(&size) {
            return Err(Errno(EINVAL));
        }
        let defaults = Config { size: size as u32, ..Config::default() };
        let known = size_of::<Config>();
        // SAFETY: a `Config` has no padding (it is asserted beside it), so all its bytes are initialised.
        let bytes = unsafe { memory::bytes((&raw const defaults).cast(), known) }?;
        // SAFETY: what the caller promises.
        unsafe { memory::copy_out(bytes, config.cast(), size) }?;
        if size > known {
            let end = config.cast::<u8>().wrapping_add(known).cast();
            // SAFETY: what the caller promises: `size` bytes from `config` on are its own.
            unsafe { memory::copy_out(&vec![0; size - known], end, size - known) }?;
        }
        Ok(())
    }))
}

/// Reads `"192.0.2.1/24"` or `"2001:db8::1/64"` into `address`; without a prefix the address stands alone.
///
/// Returns 0, `-TS_EFAULT`, or `-TS_EINVAL` if the text is no address.
///
/// # Safety
/// `text` is null or a string that ends; `address` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_parse_address(text: *const c_char, address: *mut Address) -> i32 {
    status(guarded_without_host(|| {
        // SAFETY: what the caller promises.
        let text = unsafe { memory::text(text) }?.ok_or(Errno(EFAULT))?;
        let parsed = Address::parse(text).ok_or(Errno(EINVAL))?;
        // SAFETY: what the caller promises.
        unsafe { memory::write(address, parsed) }
    }))
}

/// Makes a host.
///
/// Returns its number, or `-TS_EFAULT`, `-TS_E2BIG` if `config` is of a later version and uses it, or `-TS_EINVAL` if it does not
/// make sense; `ts_message (0, text, room)` then says why.
///
/// # Safety
/// `config` is null or valid for reading as many bytes as its `size` says (four at least), its `addresses` for reading
/// `address_count` addresses, and its `tcp` is null or a string that ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_create(config: *const Config) -> HostNumber {
    let made = guarded_without_host(|| {
        REFUSAL.set(String::new());
        // SAFETY: what the caller promises.
        let config = unsafe { read_config(config) }?;
        if config.address_count > MAX_ADDRESSES {
            REFUSAL.set(format!("more than {MAX_ADDRESSES} addresses"));
            return Err(Errno(EINVAL));
        }
        // SAFETY: what the caller promises.
        let addresses = unsafe { memory::read_all(config.addresses, config.address_count) }?;
        let refuse = |why: String| {
            REFUSAL.set(why);
            Errno(EINVAL)
        };
        // SAFETY: what the caller promises.
        let tcp = unsafe { memory::text(config.tcp) };
        let tcp = tcp.inspect_err(|_| REFUSAL.set("tcp: the words are not UTF-8".into()))?;
        let (config, start) =
            config.to_stack(&addresses, tcp.unwrap_or_default()).map_err(refuse)?;
        let host = Host::new(config, start).map_err(|error| refuse(error.to_string()))?;
        Ok(add(host))
    });
    made.unwrap_or_else(|error| -HostNumber::from(error.0))
}

/// Reads a configuration that may be shorter or longer than ours.
///
/// # Safety
/// As for [`ts_create`].
unsafe fn read_config(from: *const Config) -> Result<Config> {
    // SAFETY: what the caller promises; the size is what comes first.
    let size = unsafe { memory::read(from.cast::<u32>()) }? as usize;
    if size < MIN_SIZE {
        REFUSAL.set(format!("a configuration of {size} bytes is too short; was it filled in?"));
        return Err(Errno(EINVAL));
    }
    if size > MAX_CONFIG {
        return Err(Errno(E2BIG));
    }
    // SAFETY: what the caller promises.
    let bytes = unsafe { memory::bytes(from.cast::<c_void>(), size) }?;
    let known = size.min(size_of::<Config>());
    if bytes.get(known..).unwrap_or_default().iter().any(|&byte| byte != 0) {
        REFUSAL.set("the configuration uses what a later version has added".into());
        return Err(Errno(E2BIG));
    }
    let mut config = Config::default();
    // SAFETY: what the caller promises; every pattern of bits is a `Config`, and `known` is no more than it has.
    unsafe { memory::overlay(from, &mut config, known) }?;
    Ok(config)
}

/// Unmakes a host with all its sockets.
///
/// Returns 0 or `-TS_EBADF`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_destroy(host: HostNumber) -> i32 {
    status(guarded_without_host(|| remove(host)))
}

/// Copies to `text`, which has room for `room` bytes, why `host` can no longer be used, or, if that is 0, why this thread's last
/// `ts_create` failed. The copy is cut if it has to be, and ends with a zero byte if there is any room.
///
/// Returns the length of the whole without the zero byte (0: nothing to say), `-TS_EFAULT` or `-TS_EBADF`.
///
/// # Safety
/// `text` is null or valid for writing `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_message(host: HostNumber, text: *mut c_char, room: usize) -> i64 {
    super::count(guarded_without_host(|| {
        let message = if host == 0 {
            REFUSAL.with_borrow(String::clone)
        } else {
            let entry = entry(host)?;
            let entry = entry.lock().unwrap_or_else(PoisonError::into_inner);
            entry.broken.clone().unwrap_or_default()
        };
        // SAFETY: what the caller promises.
        unsafe { memory::give_text(&message, text, room) }
    }))
}

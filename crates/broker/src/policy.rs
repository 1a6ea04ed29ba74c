//! The policy file: which users may hold which ports.
//!
//! ```toml
//! uplinks = ["eth0"]
//!
//! [[allow]]
//! user = "alice"                  # or group = "web"; a name or a number
//! ports = "8000-8999, 443"        # besides those that the kernel gives out by itself
//! addresses = ["192.0.2.0/24"]    # of the host's; all if nothing is said
//! peers = ["10.0.0.0/8"]          # with whom its ports may speak; with all if nothing is said
//! devices = 4
//! packets-per-second = 200000
//! ```
//!
//! The first `[[allow]]` of a user decides about the number of devices and the rate. A port may be held if any of them says so.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::unistd::{Group, User};
use serde::Deserialize;
use transom_device::interface::IpPrefix;

#[cfg(any(feature = "daemon", test))]
mod decision;
mod ports;

#[cfg(any(feature = "daemon", test))]
pub(crate) use decision::Caller;
pub use ports::Ports;

/// So many devices a user has unless something else is said.
pub(crate) const DEVICES: u16 = 4;
/// So many ports a user holds unless something else is said.
pub(crate) const PORTS: u32 = 4096;

/// So many devices there are on the host unless something else is said.
pub(crate) const MOST_DEVICES: u32 = 1024;

/// The broker's rules, and its interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The interfaces whose addresses are lent.
    pub uplinks: Vec<String>,
    /// The rules, in the file's order.
    pub rules: Vec<Rule>,
    /// How many devices all users have together at most. Root may have more.
    pub most_devices: u32,
    /// The address that answers Prometheus.
    pub metrics: Option<SocketAddr>,
    /// The file of the audit log; by default the standard error output.
    pub audit: Option<PathBuf>,
}

impl Default for Policy {
    /// Nothing is allowed.
    fn default() -> Self {
        Policy {
            uplinks: Vec::new(),
            rules: Vec::new(),
            most_devices: MOST_DEVICES,
            metrics: None,
            audit: None,
        }
    }
}

/// The permissions of some users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The users.
    pub subject: Subject,
    /// The ports, besides those that the kernel gives out by itself.
    pub ports: Ports,
    /// Whether those too that the kernel gives out by itself.
    pub ephemeral: bool,
    /// The addresses; all if there are none.
    pub addresses: Vec<IpPrefix>,
    /// The addresses with which the ports may speak; all if there are none.
    pub peers: Vec<IpPrefix>,
    /// How many devices one user has at most.
    pub devices: u16,
    /// How many addresses and ports one user holds at most.
    pub most_ports: u32,
    /// How many packets a second a user's devices send together at most.
    pub packets_per_second: Option<u32>,
}

/// The users to whom a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A user's number.
    User(u32),
    /// A group's number.
    Group(u32),
    /// All users.
    Everybody,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// It is not what a policy file looks like.
    #[error("{0}")]
    Syntax(String),
    /// Something in it makes no sense.
    #[error("{0}")]
    Value(String),
}

fn invalid_value(message: impl Into<String>) -> PolicyError {
    PolicyError::Value(message.into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    uplinks: Vec<String>,
    metrics: Option<SocketAddr>,
    audit: Option<PathBuf>,
    most_devices: Option<u32>,
    #[serde(default)]
    allow: Vec<Allow>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Allow {
    user: Option<NameOrNumber>,
    group: Option<NameOrNumber>,
    #[serde(default)]
    everybody: bool,
    #[serde(default)]
    ports: String,
    ephemeral: Option<bool>,
    #[serde(default)]
    addresses: Vec<String>,
    #[serde(default)]
    peers: Vec<String>,
    devices: Option<u16>,
    most_ports: Option<u32>,
    packets_per_second: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NameOrNumber {
    Number(u32),
    Name(String),
}

impl NameOrNumber {
    fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| NameOrNumber::Name(text.to_owned()), NameOrNumber::Number)
    }

    fn user_id(&self) -> Result<u32, PolicyError> {
        match self {
            NameOrNumber::Number(number) => Ok(*number),
            NameOrNumber::Name(name) => match User::from_name(name) {
                Ok(Some(user)) => Ok(user.uid.as_raw()),
                _ => Err(invalid_value(format!("there is no user called {name}"))),
            },
        }
    }

    fn group_id(&self) -> Result<u32, PolicyError> {
        match self {
            NameOrNumber::Number(number) => Ok(*number),
            NameOrNumber::Name(name) => match Group::from_name(name) {
                Ok(Some(group)) => Ok(group.gid.as_raw()),
                _ => Err(invalid_value(format!("there is no group called {name}"))),
            },
        }
    }
}

fn parse_prefixes(texts: &[String]) -> Result<Vec<IpPrefix>, PolicyError> {
    let parse = |text: &String| {
        // An address alone is a network of one.
        let whole = match text.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => format!("{text}/32"),
            Ok(IpAddr::V6(_)) => format!("{text}/128"),
            Err(_) => text.clone(),
        };
        whole.parse().map_err(|error| invalid_value(format!("{text} is no network: {error}")))
    };
    texts.iter().map(parse).collect()
}

impl Allow {
    fn to_rule(&self) -> Result<Rule, PolicyError> {
        let subject = match (&self.user, &self.group, self.everybody) {
            (Some(user), None, false) => Subject::User(user.user_id()?),
            (None, Some(group), false) => Subject::Group(group.group_id()?),
            (None, None, true) => Subject::Everybody,
            _ => {
                return Err(invalid_value(
                    "each rule needs one of `user`, `group` and `everybody = true`",
                ));
            }
        };
        if self.packets_per_second == Some(0) {
            return Err(invalid_value("`packets-per-second` is at least 1"));
        }
        Ok(Rule {
            subject,
            ports: self.ports.parse()?,
            ephemeral: self.ephemeral.unwrap_or(true),
            addresses: parse_prefixes(&self.addresses)?,
            peers: parse_prefixes(&self.peers)?,
            devices: self.devices.unwrap_or(DEVICES),
            most_ports: self.most_ports.unwrap_or(PORTS),
            packets_per_second: self.packets_per_second,
        })
    }
}

impl FromStr for Rule {
    type Err = PolicyError;

    /// Reads what stands behind `--allow`: `user:alice,ports:8000-8999+443,devices:2`.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let mut allow = Allow::default();
        for part in text.split(',') {
            let (key, value) = part.split_once(':').unwrap_or((part, ""));
            let number = || {
                value
                    .parse::<u32>()
                    .map_err(|_| invalid_value(format!("`{part}`: {value} is no number")))
            };
            match key {
                "user" => allow.user = Some(NameOrNumber::parse(value)),
                "group" => allow.group = Some(NameOrNumber::parse(value)),
                "everybody" if value.is_empty() => allow.everybody = true,
                "ports" => allow.ports = value.replace('+', ","),
                "ephemeral" => match value {
                    "yes" => allow.ephemeral = Some(true),
                    "no" => allow.ephemeral = Some(false),
                    _ => return Err(invalid_value(format!("`{part}`: say `yes` or `no`"))),
                },
                // Addresses of IPv6 have colons: only the first one parts.
                "address" => allow.addresses.push(value.to_owned()),
                "peer" => allow.peers.push(value.to_owned()),
                "devices" => {
                    let few = u16::try_from(number()?);
                    allow.devices = Some(few.map_err(|_| invalid_value("too many devices"))?);
                }
                "rate" => allow.packets_per_second = Some(number()?),
                _ => {
                    return Err(invalid_value(format!(
                        "`{part}`: there are user, group, everybody, ports, ephemeral, address, peer, devices and rate"
                    )));
                }
            }
        }
        allow.to_rule()
    }
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// When it cannot be read or makes no sense.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
        text.parse()
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Reads the text of a policy file.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let file: File =
            toml::from_str(text).map_err(|error| PolicyError::Syntax(error.to_string()))?;
        let rule = |(at, allow): (usize, &Allow)| {
            allow.to_rule().map_err(|error| invalid_value(format!("rule {}: {error}", at + 1)))
        };
        Ok(Policy {
            uplinks: file.uplinks,
            rules: file.allow.iter().enumerate().map(rule).collect::<Result<_, _>>()?,
            most_devices: file.most_devices.unwrap_or(MOST_DEVICES),
            metrics: file.metrics,
            audit: file.audit,
        })
    }
}

#[cfg(test)]
mod tests;

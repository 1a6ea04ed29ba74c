//! The policy file, the same for every mode.
//!
//! ```toml
//! policy = "target-window(upper=40kB, lower=20kB)"   # see transom_router::window::PolicyConfig
//! flows = 65536                                      # how many are remembered
//! idle = "5min"                                      # and for how long, when nothing is heard of them
//! rate = "10Mbit/s"                                  # of the link; mode user needs it, and some policies
//! queue = "drop-tail(75kB)"                          # mode user only: the other modes have the interface's own
//! returns-only = false                               # data goes another way, and only what returns comes by; not in mode tc
//! searched = false                                   # flows are searched for one by one, as in the paper; not in mode tc
//! mss = 1460                                         # the least window of policies that remember no flows, in bytes
//! ```
//!
//! Only `policy` is needed. `none` is a policy too: packets are passed on and counted, and none is changed. With the switch `syn-windows` in it the receiver's SYN is written too: `target-window(upper=40kB, lower=20kB,
//! syn-windows)`.

mod defect;

use std::fmt::Display;
use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use toml::Spanned;
use transom_router::quantity::RateText;
use transom_router::queue;
use transom_router::window::ControlConfig;
use transom_tcp::quantity::parse_duration;

use crate::Refusal;
use defect::Defect;

/// The contents of a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The policy, and how many flows are remembered.
    pub control: ControlConfig,
    /// The bottleneck's rate, in bits per second.
    pub rate: Option<NonZeroU64>,
    /// The bottleneck's queue, where it is ours.
    pub queue: queue::Config,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Raw {
    policy: Spanned<String>,
    flows: Option<u32>,
    idle: Option<Spanned<String>>,
    mss: Option<u16>,
    #[serde(default)]
    returns_only: bool,
    #[serde(default)]
    searched: bool,
    rate: Option<Spanned<String>>,
    queue: Option<Spanned<String>>,
}

fn rate(text: &str) -> Result<NonZeroU64, String> {
    let rate: Result<RateText, _> = text.parse();
    rate.map(|rate| rate.0).map_err(|_| format!("`{text}` is not a rate: write it like 10Mbit/s"))
}

/// Reads the text of a key, which a defect points at.
fn read<T, E: Display>(
    value: &Spanned<String>,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Defect> {
    read(value.get_ref()).map_err(|error| Defect::at(value.span(), error))
}

impl PolicyFile {
    /// Reads a policy file.
    ///
    /// # Errors
    /// [`Refusal`] with the name of the file and the defect.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let text = fs::read_to_string(path)
            .map_err(Refusal::io(format!("cannot read {}", path.display())))?;
        PolicyFile::understand(&text)
            .map_err(|defect| Refusal::Parameter(defect.shown(&path.display().to_string(), &text)))
    }

    /// Whether the policy can do anything in front of the queue that the file names, or the one of mode `user` if it names none.
    pub(crate) fn fits(&self) -> Result<(), Refusal> {
        self.too_long().map_err(Refusal::Parameter)
    }

    /// Why the policy's threshold is never reached in the queue.
    fn too_long(&self) -> Result<(), String> {
        self.control.policy.fits(self.queue.limit()).map_err(|error| error.to_string())
    }

    fn understand(text: &str) -> Result<Self, Defect> {
        let raw: Raw = toml::from_str(text).map_err(|error| Defect::of_toml(text, &error))?;
        let rate = raw.rate.as_ref().map(|value| read(value, rate)).transpose()?;
        let mut queue = match &raw.queue {
            Some(value) => read(value, str::parse::<queue::Config>)?,
            None => queue::Config::default(),
        };
        let mut control = ControlConfig::new(read(&raw.policy, str::parse)?);
        if let Some(rate) = rate {
            queue = queue.on_link(rate.get());
            control.policy = control.policy.on_link(rate.get());
        }
        control.flows = raw.flows.unwrap_or(control.flows);
        if let Some(idle) = &raw.idle {
            control.idle = read(idle, parse_duration)?;
        }
        control.mss = raw.mss.unwrap_or(control.mss);
        control.returns_only = raw.returns_only;
        control.searched = raw.searched;
        control.validate().map_err(Defect::whole)?;
        // A rate that is missing is found only when the policy is made.
        read(&raw.policy, |_| control.policy.build().map(drop))?;
        let file = PolicyFile { control, rate, queue };
        // One that is not named is the interface's own, of which nothing is known here, or mode user's, which looks itself.
        if let Some(queue) = &raw.queue {
            file.too_long().map_err(|error| Defect::at(queue.span(), error))?;
        }
        Ok(file)
    }
}

impl FromStr for PolicyFile {
    type Err = Refusal;

    /// Understands a policy file's text, or says the defect and its place, also when the queue that it names is too short for its policy.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let shown = |defect: Defect| Refusal::Parameter(defect.shown("policy", text));
        PolicyFile::understand(text).map_err(shown)
    }
}

#[cfg(test)]
mod tests {
    use transom_router::queue::Limit;
    use transom_router::queue::Threshold;
    use transom_router::window::PolicyConfig;

    use super::*;

    #[test]
    fn a_policy_file_is_read() {
        let file = PolicyFile::from_str(
            "policy = 'target-window(upper=40kB, lower=20kB)'\nflows = 1000\nidle = '30s'\nrate = '10Mbit/s'\nqueue = '75kB'\n\
             returns-only = true\nsearched = true\nmss = 1000",
        )
        .unwrap();
        let control = &file.control;
        assert_eq!((control.returns_only, control.searched, control.mss), (true, true, 1000));
        let PolicyConfig::TargetWindow(target) = file.control.policy else { panic!("{file:?}") };
        assert_eq!(
            (target.upper, target.lower),
            (Threshold::Bytes(40_000), Threshold::Bytes(20_000))
        );
        assert_eq!((file.control.flows, file.control.idle.as_millis()), (1000, 30_000));
        assert_eq!(file.rate, NonZeroU64::new(10_000_000));
        assert_eq!(file.queue, Limit::Bytes(75_000).into());
        assert!(!target.syn_windows);
        let text = "policy = 'target-window(upper=40kB, lower=20kB, syn-windows)'";
        let PolicyConfig::TargetWindow(target) = PolicyFile::from_str(text).unwrap().control.policy
        else {
            panic!("another policy")
        };
        assert!(target.syn_windows);
        // What follows from the rate.
        assert!(
            PolicyFile::from_str("policy = 'fair-share(queue=20kB)'\nrate = '1Gbit/s'").is_ok()
        );
    }

    #[test]
    fn a_policy_fits_the_queue_that_is_named() {
        let refused = |text: &str| PolicyFile::from_str(text).unwrap_err().to_string();
        let target = "policy = 'target-window(upper=100kB, lower=20kB)'";
        for queue in ["75kB", "100kB", "red(limit=75kB)"] {
            let error = refused(&format!("{target}\nqueue = '{queue}'"));
            let limit = if queue == "100kB" { "100kB" } else { "75kB" };
            let expected =
                format!("a queue limited to {limit} never exceeds target-window's `upper` (100kB)");
            assert!(error.contains(&expected), "{queue}: {error}");
        }
        assert!(PolicyFile::from_str(&format!("{target}\nqueue = '101kB'")).is_ok());
        let delay = "policy = 'ack-delay(above=75kB, rate=1Mbit/s)'\nqueue = '75kB'";
        assert!(refused(delay).contains("`above` (75kB)"));
        // Mode user has a queue of its own where none is named; the interface of another mode may have any.
        let long =
            PolicyFile::from_str("policy = 'target-window(upper=1000 packets, lower=1 packet)'");
        assert!(long.unwrap().fits().unwrap_err().to_string().contains("1000 packets"));
    }

    /// The cause, the place, and one advice: a reader need not look for the line.
    #[test]
    fn mistakes_are_shown_at_their_place() {
        let good = "policy = 'target-window(upper=40kB, lower=20kB)'\n";
        let refused = |text: &str| PolicyFile::from_str(text).unwrap_err().to_string();
        let expected = "a policy file has no key `flow`\n --> policy:2:1\n  |\n2 | flow = 3\n  | ^^^^\n  = hint: did you mean `flows`?";
        assert_eq!(refused(&format!("{good}flow = 3")), expected);
        let wrong = refused("policy = 'target-window(uper=40kB, lower=20kB)'");
        assert!(wrong.starts_with("target-window has no parameter `uper`"), "{wrong}");
        assert!(wrong.contains(" --> policy:1:10\n"), "{wrong}");
        let scenario = refused("[scenario]\nname = 'x'");
        assert!(scenario.contains("`transom lab check` checks scenarios"), "{scenario}");
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, what) in [
            ("policy = 'target-window(upper=40kB, lower=0B)'", "could never rise"),
            ("", "missing field `policy`"),
            ("policy = 'target-window(upper=10kB, lower=20kB)'", "lower"),
            ("policy = 'target-window(upper=40kB, lower=20kB)'\nflow = 3", "did you mean `flows`?"),
            ("policy = 'target-window(upper=40kB, lower=20kB)'\nrate = 'fast'", "10Mbit/s"),
            ("policy = 'target-window(upper=40kB, lower=20kB)'\nidle = '5'", "duration"),
            ("policy = 'fair-share(queue=20kB)'", "rate"),
            ("policy = 'none()'", "`none()` is not a window policy"),
            ("policy = 'widest'", "`widest` is not a window policy"),
        ] {
            let error = PolicyFile::from_str(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}

//! How a host's TCP behaves, as it is written in a scenario.
//!
//! What is left out keeps its default ([`Profile::default`]), so a scenario says only what it is about. The options are those of the
//! command line, and go together in the same way.

use super::quantity::{Size, Time, serde_as_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use transom_tcp::compose::{ComposeError, compose};
use transom_tcp::flow::receive_window::ReceiveWindowConfig;
use transom_tcp::profile::{
    AckChoice, CongestionChoice, KeepAlive, PacingChoice, Profile, ProfileError, RecoveryChoice,
};

/// The least window that can be advertised without the window scale option (RFC 9293, section 3.1).
const UNSCALED_WINDOW: usize = 65_535;

/// How TCP behaves: what is left out keeps its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProfileOptions {
    /// Units by name, such as "sack + ltcp(beta=0.15) + prr"; `transom units` lists them. The other options change what they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub tcp: Option<Composition>,
    /// Congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// Loss recovery. By default SACK's, or NewReno's if SACK is not offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// When segments leave: at once, or spaced to the controller's rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// The longest that an acknowledgement is delayed; below 500 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Time>,
    /// Whether selective acknowledgements (RFC 2018) are offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Whether timestamps (RFC 7323) are offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Whether window scaling (RFC 7323) is offered; without it, windows end at 65,535 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scale: Option<bool>,
    /// Send small segments at once, without Nagle's algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// The send buffer at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Size>,
    /// The receive buffer at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recv_buffer: Option<Size>,
    /// The largest segment announced and sent, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_segment: Option<u16>,
    /// Duplicate acknowledgements that mean loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dup_thresh: Option<u32>,
    /// Probe connections that are silent, by the default times of RFC 9293.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keepalive: Option<bool>,
}

/// Units by name, known to make a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composition(String);

impl FromStr for Composition {
    type Err = ComposeError;

    fn from_str(text: &str) -> Result<Self, ComposeError> {
        // One space between words, so that what means the same is written the same.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        compose(&text).map(|_| Composition(text))
    }
}

impl fmt::Display for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

serde_as_text!(Composition, "units such as \"sack + ltcp\"");

/// Congestion control of Transom's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// The receiver's window alone bounds the flight.
    None,
    /// RFC 5681.
    Reno,
}

/// Loss recovery of Transom's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// RFC 6582.
    Newreno,
    /// RFC 6675.
    Sack,
}

/// When segments leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// As soon as the windows allow.
    None,
    /// Spaced to the controller's rate.
    Rate,
}

impl ProfileOptions {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == ProfileOptions::default()
    }

    /// These options, and `base`'s where these say nothing.
    pub fn or(&self, base: &ProfileOptions) -> ProfileOptions {
        // Exhaustive, so that a new option cannot be forgotten.
        let ProfileOptions {
            tcp,
            congestion,
            recovery,
            pacing,
            delayed_ack,
            sack,
            timestamps,
            window_scale,
            nodelay,
            send_buffer,
            recv_buffer,
            max_segment,
            dup_thresh,
            keepalive,
        } = self.clone();
        ProfileOptions {
            tcp: tcp.or_else(|| base.tcp.clone()),
            congestion: congestion.or(base.congestion),
            recovery: recovery.or(base.recovery),
            pacing: pacing.or(base.pacing),
            delayed_ack: delayed_ack.or(base.delayed_ack),
            sack: sack.or(base.sack),
            timestamps: timestamps.or(base.timestamps),
            window_scale: window_scale.or(base.window_scale),
            nodelay: nodelay.or(base.nodelay),
            send_buffer: send_buffer.or(base.send_buffer),
            recv_buffer: recv_buffer.or(base.recv_buffer),
            max_segment: max_segment.or(base.max_segment),
            dup_thresh: dup_thresh.or(base.dup_thresh),
            keepalive: keepalive.or(base.keepalive),
        }
    }

    /// The profile.
    ///
    /// # Errors
    /// [`ProfileError`] if the choices do not work together.
    pub fn profile(&self) -> Result<Profile, ProfileError> {
        let ProfileOptions {
            tcp,
            congestion,
            recovery,
            pacing,
            delayed_ack,
            sack,
            timestamps,
            window_scale,
            nodelay,
            send_buffer,
            recv_buffer,
            max_segment,
            dup_thresh,
            keepalive,
        } = self.clone();
        let bytes = |size: Size| usize::try_from(size.0).unwrap_or(usize::MAX);
        // What it says was tried when it was read.
        let composed = tcp.and_then(|units| compose(&units.0).ok());
        let mut profile = composed.unwrap_or_default();
        match congestion {
            Some(Congestion::None) => profile.congestion = CongestionChoice::none(),
            Some(Congestion::Reno) => profile.congestion = CongestionChoice::reno(),
            None => {}
        }
        profile.options.sack = sack.unwrap_or(profile.options.sack);
        profile.options.timestamps = timestamps.unwrap_or(profile.options.timestamps);
        profile.options.window_scale = window_scale.unwrap_or(profile.options.window_scale);
        profile.recovery = match recovery {
            Some(Recovery::Newreno) => RecoveryChoice::NewReno,
            Some(Recovery::Sack) => RecoveryChoice::Sack,
            None if sack == Some(false) => RecoveryChoice::NewReno,
            None => profile.recovery,
        };
        match pacing {
            Some(Pacing::None) => profile.pacing = PacingChoice::None,
            Some(Pacing::Rate) => profile.pacing = PacingChoice::Rate,
            None => {}
        }
        if let Some(longest) = delayed_ack {
            profile.ack = AckChoice::Delayed(longest.0);
        }
        profile.nodelay = nodelay.unwrap_or(profile.nodelay);
        if let Some(size) = send_buffer {
            profile.max_send_buffer = bytes(size);
            profile.send_buffer = profile.send_buffer.min(profile.max_send_buffer);
        }
        let mut receive = profile.flow.buffer();
        if let Some(size) = recv_buffer {
            receive.max = bytes(size);
        } else if !profile.options.window_scale {
            receive.max = receive.max.min(UNSCALED_WINDOW);
        }
        receive = ReceiveWindowConfig { initial: receive.initial.min(receive.max), ..receive };
        profile.flow = profile.flow.with_buffer(receive);
        profile.max_segment = max_segment.or(profile.max_segment);
        profile.dup_thresh = dup_thresh.unwrap_or(profile.dup_thresh);
        if keepalive == Some(true) {
            profile.keep_alive = Some(KeepAlive::default());
        }
        profile.validate()?;
        // What the applications here send is zeros, and only their number counts.
        profile.carries_bytes()?;
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_tcp::profile::{FlowChoice, OrderingChoice};

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(ProfileOptions::default().profile(), Ok(Profile::default()));
    }

    #[test]
    fn options_that_depend_on_each_other_go_together() {
        let options = ProfileOptions {
            sack: Some(false),
            window_scale: Some(false),
            ..ProfileOptions::default()
        };
        let profile = options.profile().unwrap();
        assert_eq!(profile.recovery, RecoveryChoice::NewReno);
        let receive = profile.flow.buffer();
        assert_eq!(receive.max, 65_535);
        let contradiction = ProfileOptions { recovery: Some(Recovery::Sack), ..options };
        assert_eq!(contradiction.profile(), Err(ProfileError::SackWithoutOption));
    }

    #[test]
    fn the_receivers_units_are_chosen_too_as_far_as_they_make_sense() {
        let tcp = |text: &str| {
            let tcp = text.parse().ok();
            ProfileOptions { tcp, recv_buffer: Some(Size(50_000)), ..Default::default() }.profile()
        };
        let flow = |text: &str| tcp(text).unwrap().flow;
        assert_eq!(flow("no-flow-control"), FlowChoice::None { memory: 50_000 });
        assert_eq!(flow("fixed-window"), FlowChoice::Fixed(50_000));
        assert_eq!(tcp("unordered").unwrap().ordering, OrderingChoice::Unordered);
        assert_eq!(tcp("adu"), Err(ProfileError::NotBytes));
    }

    #[test]
    fn units_by_name() {
        let tcp = |text: &str| ProfileOptions { tcp: text.parse().ok(), ..Default::default() };
        let profile = tcp("cubic  +\nprr").profile().unwrap();
        assert_eq!(profile.congestion.name(), "cubic");
        assert_eq!(profile.recovery, RecoveryChoice::Sack);
        assert_eq!(tcp("cubic  +\nprr").tcp.unwrap().to_string(), "cubic + prr");
        assert_eq!(
            "cubic + reno".parse::<Composition>().unwrap_err().to_string(),
            "`cubic` and `reno` are both congestion control"
        );
        // Other options change what it says.
        let changed = ProfileOptions { sack: Some(false), ..tcp("base + ltcp") };
        assert_eq!(changed.profile().unwrap().congestion.name(), "ltcp");
        assert_eq!(tcp("no-sack").or(&tcp("cubic")), tcp("no-sack"));
    }

    #[test]
    fn what_is_said_nearer_counts() {
        let host = ProfileOptions { nodelay: Some(true), sack: Some(false), ..Default::default() };
        let flow = ProfileOptions { sack: Some(true), ..Default::default() };
        let both = flow.or(&host);
        assert_eq!((both.nodelay, both.sack), (Some(true), Some(true)));
    }
}

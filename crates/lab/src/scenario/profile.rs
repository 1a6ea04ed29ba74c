//! The settings of a host's TCP, as written in a scenario.
//!
//! A missing key keeps its default ([`Profile::default`]), so a scenario only has the keys that matter. Words choose the units of the TCP
//! ([`Composition`]). The other keys are sizes and settings outside of units, the same as those of the command line.

use super::composition::Composition;
use super::extensions::Extensions;
use super::old_systems::MishandlesShrinking;
use super::quantity::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use transom_extensions::cm::Manager;
use transom_tcp::compose::ComposeError;
use transom_tcp::{KeepAlive, Profile, ReceiveWindowConfig};

/// The settings of TCP: a missing key keeps its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProfileOptions {
    /// The units of TCP. A flow's choice of a unit wins over that of its hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Composition>,
    /// Extensions of the connection, which can only make it less aggressive, such as "nice + rr".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
    /// Do not keep to the safe ranges of what its extensions ask for, to show what they are for. Only in a simulation: no run in real time takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconstrained: Option<bool>,
    /// The send buffer at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Size>,
    /// The receive buffer at most, whatever flow control offers of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recv_buffer: Option<Size>,
    /// Give both buffers their full size from the start, as simulators do. Otherwise they grow with the window, and can limit a sender during a
    /// long recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_buffers: Option<bool>,
    /// The largest segment announced and sent, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_segment: Option<u16>,
    /// Duplicate acknowledgements that mean loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dup_thresh: Option<u32>,
    /// Behave like Linux 2.0, which ignores acknowledgements beyond a window that has shrunk, and stalls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mishandles_shrinking: Option<bool>,
    /// Probe connections that are silent, by the default times of RFC 9293.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keepalive: Option<bool>,
}

impl ProfileOptions {
    /// Whether no key is set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == ProfileOptions::default()
    }

    /// These options, and `base`'s where these say nothing; of units too.
    pub(crate) fn or(&self, base: &ProfileOptions) -> ProfileOptions {
        ProfileOptions {
            tcp: match (&self.tcp, &base.tcp) {
                (Some(tcp), Some(base)) => Some(tcp.over(base)),
                (tcp, base) => tcp.clone().or_else(|| base.clone()),
            },
            extensions: self.extensions.clone().or_else(|| base.extensions.clone()),
            unconstrained: self.unconstrained.or(base.unconstrained),
            send_buffer: self.send_buffer.or(base.send_buffer),
            recv_buffer: self.recv_buffer.or(base.recv_buffer),
            fixed_buffers: self.fixed_buffers.or(base.fixed_buffers),
            max_segment: self.max_segment.or(base.max_segment),
            dup_thresh: self.dup_thresh.or(base.dup_thresh),
            mishandles_shrinking: self.mishandles_shrinking.or(base.mishandles_shrinking),
            keepalive: self.keepalive.or(base.keepalive),
        }
    }

    /// The profile.
    ///
    /// # Errors
    /// [`ComposeError`] if the choices do not work together.
    pub fn profile(&self) -> Result<Profile, ComposeError> {
        self.profile_sharing(&Manager::default())
    }

    /// The profile, with connections that share macroflows with those of other profiles of the same `manager`
    /// ([`Extensions::choices_sharing`]).
    pub(crate) fn profile_sharing(&self, manager: &Manager) -> Result<Profile, ComposeError> {
        let ProfileOptions {
            tcp,
            extensions,
            unconstrained,
            send_buffer,
            recv_buffer,
            fixed_buffers,
            max_segment,
            dup_thresh,
            mishandles_shrinking,
            keepalive,
        } = self;
        let bytes = |size: Size| usize::try_from(size.0).unwrap_or(usize::MAX);
        let mut profile = match tcp {
            Some(tcp) => tcp.profile()?,
            None => Profile::default(),
        };
        if let Some(extensions) = extensions {
            profile.extensions = extensions.choices_sharing(manager);
        }
        if *unconstrained == Some(true) {
            lift_ranges(&mut profile);
        }
        if let Some(size) = *send_buffer {
            profile.max_send_buffer = bytes(size);
            profile.send_buffer = profile.send_buffer.min(profile.max_send_buffer);
        }
        if let Some(size) = *recv_buffer {
            let (max, initial) = (bytes(size), profile.flow.buffer().initial);
            let receive = ReceiveWindowConfig::new(initial.min(max), max);
            profile.flow = profile.flow.with_buffer(receive);
        }
        if *fixed_buffers == Some(true) {
            let max = profile.flow.buffer().max;
            profile.send_buffer = profile.max_send_buffer;
            profile.flow = profile.flow.with_buffer(ReceiveWindowConfig::new(max, max));
        }
        profile.max_segment = max_segment.or(profile.max_segment);
        profile.dup_thresh = dup_thresh.unwrap_or(profile.dup_thresh);
        if *mishandles_shrinking == Some(true) {
            profile.ack_rule = Some(Arc::new(MishandlesShrinking));
        }
        if *keepalive == Some(true) {
            profile.keep_alive = Some(KeepAlive::default());
        }
        profile.validate()?;
        // The applications here send zeros, and only their number matters.
        profile.carries_bytes()?;
        Ok(profile)
    }
}

/// Takes the safe ranges away, where a simulated host runs the profile.
fn lift_ranges(profile: &mut Profile) {
    for choice in &mut profile.extensions {
        *choice = choice.clone().unconstrained();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_tcp::{AckChoice, FlowChoice, OrderingChoice, ProfileError, RecoveryChoice};

    fn tcp(text: &str) -> ProfileOptions {
        ProfileOptions { tcp: Some(text.parse().unwrap()), ..Default::default() }
    }

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(ProfileOptions::default().profile(), Ok(Profile::default()));
    }

    #[test]
    fn buffers_and_words_go_together() {
        let profile = tcp("no-sack + no-window-scale").profile().unwrap();
        assert_eq!(profile.recovery, RecoveryChoice::NewReno);
        assert_eq!(profile.flow.buffer().max, 65_535);
        let wide = ProfileOptions { recv_buffer: Some(Size(70_000)), ..tcp("no-window-scale") };
        let error = ProfileError::WindowNeedsScale(70_000);
        assert_eq!(wide.profile(), Err(ComposeError::Profile(error)));
    }

    #[test]
    fn the_receivers_units_are_chosen_too_as_far_as_they_make_sense() {
        let buffered =
            |text: &str| ProfileOptions { recv_buffer: Some(Size(50_000)), ..tcp(text) }.profile();
        let flow = |text: &str| buffered(text).unwrap().flow;
        assert_eq!(flow("no-flow-control"), FlowChoice::None { memory: 50_000 });
        assert_eq!(flow("fixed-window"), FlowChoice::Fixed(50_000));
        assert_eq!(buffered("unordered").unwrap().ordering, OrderingChoice::Unordered);
        assert_eq!(buffered("adu"), Err(ComposeError::Profile(ProfileError::NotBytes)));
    }

    #[test]
    fn the_nearest_profile_counts_unit_by_unit() {
        let host = ProfileOptions { keepalive: Some(true), ..tcp("immediate-ack + cubic") };
        let flow = ProfileOptions { dup_thresh: Some(5), ..tcp("ltcp") };
        let both = flow.or(&host);
        assert_eq!((both.keepalive, both.dup_thresh), (Some(true), Some(5)));
        let profile = both.profile().unwrap();
        assert_eq!(profile.congestion.name(), "ltcp");
        assert_eq!(profile.ack, AckChoice::Immediate);
        assert_eq!(ProfileOptions::default().or(&host), host);
        // The flow's settings win over host settings that cannot work with them.
        let nearer = tcp("no-sack").or(&tcp("sack")).profile().unwrap();
        assert_eq!(nearer.recovery, RecoveryChoice::NewReno);
    }
}

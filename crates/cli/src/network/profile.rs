//! The options that change how Transom's TCP behaves.

use clap::Args;
use transom_net::{KeepAlive, Profile};
use transom_tcp::flow::receive_window::ReceiveWindowConfig;
use transom_tcp::profile::{CongestionChoice, FlowChoice, RecoveryChoice};

use crate::units::parse_bytes;

/// The least window that can be advertised without the window scale option (RFC 9293, section 3.1).
const UNSCALED_WINDOW: usize = 65_535;

/// The options that make up a profile.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TCP options")]
pub(crate) struct ProfileArgs {
    /// Send small segments at once (no Nagle algorithm).
    #[arg(long)]
    pub(crate) nodelay: bool,

    /// Let the send buffer grow to this size at most.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    send_buffer: Option<u64>,

    /// Let the receive buffer grow to this size at most.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    recv_buffer: Option<u64>,

    /// Do not offer selective acknowledgements (RFC 2018); recovery is then NewReno's.
    #[arg(long)]
    no_sack: bool,

    /// Do not offer timestamps (RFC 7323).
    #[arg(long)]
    no_timestamps: bool,

    /// Do not offer window scaling (RFC 7323); windows then end at 65,535 bytes.
    #[arg(long)]
    no_window_scale: bool,

    /// Recover from losses by NewReno (RFC 6582) even where SACK was agreed.
    #[arg(long)]
    newreno: bool,

    /// Do without congestion control: the peer's window alone bounds what is in flight. For private networks.
    #[arg(long)]
    no_congestion_control: bool,

    /// Probe connections that are silent, by the default times of RFC 9293.
    #[arg(long)]
    keepalive: bool,
}

impl ProfileArgs {
    /// The profile, or why there is none.
    pub(crate) fn profile(&self) -> anyhow::Result<Profile> {
        // Exhaustive, so that a new option cannot be forgotten here.
        let ProfileArgs {
            nodelay,
            send_buffer,
            recv_buffer,
            no_sack,
            no_timestamps,
            no_window_scale,
            newreno,
            no_congestion_control,
            keepalive,
        } = self;
        let mut profile = Profile { nodelay: *nodelay, ..Profile::default() };
        if let Some(bytes) = send_buffer {
            profile.max_send_buffer = usize::try_from(*bytes).unwrap_or(usize::MAX);
            profile.send_buffer = profile.send_buffer.min(profile.max_send_buffer);
        }
        let FlowChoice::ReceiveWindow(mut receive) = profile.flow;
        if let Some(bytes) = recv_buffer {
            receive.max = usize::try_from(*bytes).unwrap_or(usize::MAX);
        } else if *no_window_scale {
            receive.max = UNSCALED_WINDOW;
        }
        receive = ReceiveWindowConfig { initial: receive.initial.min(receive.max), ..receive };
        profile.flow = FlowChoice::ReceiveWindow(receive);
        profile.options.sack = !no_sack;
        profile.options.timestamps = !no_timestamps;
        profile.options.window_scale = !no_window_scale;
        if *no_sack || *newreno {
            profile.recovery = RecoveryChoice::NewReno;
        }
        if *no_congestion_control {
            profile.congestion = CongestionChoice::None;
        }
        if *keepalive {
            profile.keep_alive = Some(KeepAlive::default());
        }
        profile.validate()?;
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_chosen_is_the_default() {
        assert_eq!(ProfileArgs::default().profile().unwrap(), Profile::default());
    }

    #[test]
    fn options_that_depend_on_each_other_go_together() {
        let args = ProfileArgs { no_sack: true, no_window_scale: true, ..Default::default() };
        let profile = args.profile().unwrap();
        assert_eq!(profile.recovery, RecoveryChoice::NewReno);
        let FlowChoice::ReceiveWindow(receive) = profile.flow;
        assert_eq!(receive.max, 65_535);
        assert!(!profile.options.sack && !profile.options.window_scale);
    }

    #[test]
    fn small_buffers_start_small() {
        let args = ProfileArgs {
            send_buffer: Some(8192),
            recv_buffer: Some(16_384),
            ..ProfileArgs::default()
        };
        let profile = args.profile().unwrap();
        assert_eq!((profile.send_buffer, profile.max_send_buffer), (8192, 8192));
        let FlowChoice::ReceiveWindow(receive) = profile.flow;
        assert_eq!((receive.initial, receive.max), (16_384, 16_384));
    }

    #[test]
    fn impossible_profiles_are_refused_with_the_reason() {
        let small = ProfileArgs { recv_buffer: Some(100), ..Default::default() };
        assert!(small.profile().unwrap_err().to_string().contains("at least one segment"));
        let contradiction =
            ProfileArgs { no_window_scale: true, recv_buffer: Some(1 << 20), ..Default::default() };
        assert!(contradiction.profile().unwrap_err().to_string().contains("window scale"));
    }
}

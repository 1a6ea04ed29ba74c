//! The options that change how Transom's TCP behaves: those of a scenario's profiles, as far as a command line has them.

use clap::Args;
use transom_lab::scenario::{Composition, Extensions, ProfileOptions, Size};
use transom_net::Profile;

use crate::units::parse_bytes;

/// The options that make up a profile.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TCP options")]
pub(crate) struct ProfileArgs {
    /// Choose units by name, such as "sack + cubic + prr"; `transom units` lists them.
    #[arg(long, value_name = "UNITS")]
    tcp: Option<Composition>,

    /// Attach extensions to each connection, such as "nice + rr"; they can only make it less aggressive. `transom ext list` lists them.
    #[arg(long, value_name = "EXTENSIONS")]
    pub(crate) extension: Option<Extensions>,

    /// Let the send buffer grow to this size at most.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    send_buffer: Option<u64>,

    /// Let the receive buffer grow to this size at most.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    recv_buffer: Option<u64>,

    /// Probe connections that are silent, by the default times of RFC 9293.
    #[arg(long)]
    keepalive: bool,
}

impl ProfileArgs {
    /// The profile, or why there is none.
    pub(crate) fn profile(&self) -> anyhow::Result<Profile> {
        // Exhaustive, so that a new option cannot be forgotten here.
        let ProfileArgs { tcp, extension, send_buffer, recv_buffer, keepalive } = self.clone();
        let options = ProfileOptions {
            tcp,
            extensions: extension,
            send_buffer: send_buffer.map(Size),
            recv_buffer: recv_buffer.map(Size),
            keepalive: keepalive.then_some(true),
            ..ProfileOptions::default()
        };
        let profile = options.profile()?;
        profile.carries_a_stream()?;
        Ok(profile)
    }

    /// The extensions that are asked for, in words.
    pub(crate) fn extensions(&self) -> Option<String> {
        let profile = self.profile().ok()?;
        let words: Vec<String> = profile.extensions.iter().map(ToString::to_string).collect();
        (!words.is_empty()).then(|| words.join(" + "))
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
    fn a_profile_that_delivers_no_stream_is_refused_with_the_reason() {
        let tcp = |text: &str| ProfileArgs { tcp: text.parse().ok(), ..Default::default() };
        let refused = |text: &str| tcp(text).profile().unwrap_err().to_string();
        let unordered = refused("unordered");
        assert!(unordered.contains("this one reads a stream; leave out unordered"));
        let units = refused("adu-unordered");
        assert!(units.contains("this one writes bytes; leave out adu"));
        assert!(tcp("no-flow-control + in-order").profile().is_ok());
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
        let receive = profile.flow.buffer();
        assert_eq!((receive.initial, receive.max), (16_384, 16_384));
    }

    #[test]
    fn extensions_are_named() {
        let extended = ProfileArgs { extension: "nice + rr".parse().ok(), ..Default::default() };
        let names: Vec<_> =
            extended.profile().unwrap().extensions.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["nice", "rr"]);
    }

    #[test]
    fn impossible_profiles_are_refused_with_the_reason() {
        let small = ProfileArgs { recv_buffer: Some(100), ..Default::default() };
        assert!(small.profile().unwrap_err().to_string().contains("at least one segment"));
        let contradiction = ProfileArgs {
            tcp: Some("no-window-scale".parse().unwrap()),
            recv_buffer: Some(1 << 20),
            ..Default::default()
        };
        assert!(contradiction.profile().unwrap_err().to_string().contains("window scale"));
    }
}

//! The settings of a live connection: one call to change any of them, and one to see them.

use super::Connection;
use super::reports::Reports;
use crate::path_mtu::PathMtuDiscovery;
use crate::profile::KeepAlive;
use crate::time::Duration;
use core::net::IpAddr;

/// A setting, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// Whether small segments leave at once (`TCP_NODELAY`): no Nagle's algorithm.
    NoDelay(bool),
    /// Keep-alives, or none [MUST-24] [MUST-27].
    KeepAlive(Option<KeepAlive>),
    /// Holds back partial segments, or sends them (`TCP_CORK`). Held data always leaves after 200 ms.
    Cork(bool),
    /// Accepts no more data while this many bytes or more are unsent, and reports room again when less than half of that is
    /// (`TCP_NOTSENT_LOWAT`). With 0 only the send buffer decides.
    NotsentLowWater(u32),
    /// Notifies a reader only of this many bytes or more (`SO_RCVLOWAT`). It notifies of fewer when no more can come: at the
    /// end of the stream, before a hole, after an error, and when the receive buffer is half full. 0 means 1. A blocking read waits for as many, or
    /// for as many as its buffer can hold; when its timeout passes, it returns what is there.
    ReceiveLowWater(usize),
    /// Fixes the receive buffer's size, in bytes, and ends its growth.
    ReceiveBuffer(usize),
    /// Fixes the send buffer's size, in bytes, and ends its growth.
    SendBuffer(usize),
    /// Acknowledges the next arrivals at once, or not (`TCP_QUICKACK`). A pending acknowledgement is sent at once. The effect is
    /// temporary: the acknowledgement policy continues from there.
    QuickAck(bool),
    /// The most payload, in bytes, that the device takes in one transmission; nothing if it takes one segment at a time.
    MaxSuperSegment(Option<u32>),
    /// How long the connection waits for the peer's FIN after the application has let go of it and our FIN is acknowledged
    /// (`TCP_LINGER2`). With a span of zero it is gone at once, and a FIN that comes later is answered with a reset.
    FinWait2(Duration),
    /// Whether packets may be fragmented, and whether what routers say of their size counts (`IP_MTU_DISCOVER`, `IPV6_MTU_DISCOVER`). The packets' own flag is
    /// the host's business. The SYN has it only if the profile has it before.
    PathMtuDiscovery(PathMtuDiscovery),
    /// Whether calls report a soft error, once: reading and writing fail with it, and the connection continues (`IP_RECVERR` of Linux). Off by
    /// default [SHLD-20].
    SoftErrors(bool),
    /// Gives up when data stays unacknowledged for this long; nothing leaves it to R2 [MUST-21]. The peer's option is ignored from then on.
    UserTimeout(Option<Duration>),
    /// Holds the peer's answer to our SYN, for so long at most: the handshake is completed by [`Connection::release`] only. When the limit passes
    /// first, the peer is reset, and the connection has timed out. After the peer has answered it does nothing.
    HoldAnswer(Duration),
    /// The peer's address, said before the handshake is complete. TCP itself needs none: it is for the extensions that the profile names
    /// ([`Glance::remote`](crate::Glance::remote)). Without them it is not kept, so that a connection takes no memory for it.
    Remote(IpAddr),
}

/// The settings that can be seen. Their meaning is that of [`Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // Setting says what they mean.
pub struct Settings {
    pub nodelay: bool,
    pub keep_alive: Option<KeepAlive>,
    pub cork: bool,
    pub notsent_low_water: u32,
    pub receive_low_water: usize,
    /// Whether the next arrivals are acknowledged at once, as far as is known.
    pub quick_ack: bool,
    pub soft_errors: bool,
    pub user_timeout: Option<Duration>,
    pub fin_wait_2: Duration,
    pub remote: Option<IpAddr>,
}

impl Connection {
    /// Changes a setting.
    pub fn set(&mut self, setting: Setting) {
        match setting {
            Setting::NoDelay(value) => self.set_nodelay(value),
            Setting::HoldAnswer(limit) => self.hold_answer(limit),
            Setting::KeepAlive(value) => self.set_keep_alive(value),
            Setting::Cork(value) => self.set_cork(value),
            Setting::NotsentLowWater(value) => self.set_notsent_low_water(value),
            Setting::ReceiveLowWater(value) => self.set_receive_low_water(value),
            Setting::ReceiveBuffer(value) => self.set_receive_buffer(value),
            Setting::SendBuffer(value) => self.set_send_buffer(value),
            Setting::QuickAck(value) => self.set_quick_ack(value),
            Setting::MaxSuperSegment(value) => self.path.max_super_segment = value,
            Setting::FinWait2(value) => self.change_profile(|profile| profile.fin_wait_2 = value),
            Setting::PathMtuDiscovery(value) => {
                self.change_profile(|profile| profile.path_mtu_discovery = value);
            }
            Setting::SoftErrors(value) => self.notices.reports.set(Reports::BY_CALLS, value),
            Setting::UserTimeout(value) => self.set_user_timeout(value),
            Setting::Remote(value) => self.set_remote(value),
        }
    }

    /// The settings.
    pub fn settings(&self) -> Settings {
        Settings {
            nodelay: self.nodelay(),
            keep_alive: self.keep_alive(),
            cork: self.cork(),
            notsent_low_water: self.notsent_low_water(),
            receive_low_water: self.receive_low_water(),
            remote: self.remote(),
            user_timeout: self.user_timeout(),
            fin_wait_2: self.profile().fin_wait_2,
            soft_errors: self.reports_soft_errors(),
            quick_ack: self.quick_ack(),
        }
    }
}

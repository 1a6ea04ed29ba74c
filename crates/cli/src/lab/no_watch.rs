//! A build without `--watch`.

#[path = "watch/address.rs"]
mod address;

use std::net::SocketAddr;
use std::sync::Arc;

use super::live::Live;
use crate::features::Feature;
pub(crate) use address::parse as parse_address;

/// A server that shows runs, of which there is none.
pub(super) enum Watch {}

impl Watch {
    pub(super) fn start(_: SocketAddr, _: Arc<Live>) -> anyhow::Result<Watch> {
        Err(Feature::Web.missing())
    }

    pub(super) fn url(&self) -> String {
        match *self {}
    }

    pub(super) fn finish(self, _: impl Fn() -> bool) -> anyhow::Result<()> {
        match self {}
    }
}

//! A build without `--watch`.

use std::net::SocketAddr;
use std::sync::Arc;

use super::live::Live;
use crate::features::Feature;

/// A server that shows runs, of which there is none.
pub(super) enum Watch {}

impl Watch {
    pub(super) fn start(_: SocketAddr, _: Arc<Live>) -> anyhow::Result<Watch> {
        Err(Feature::WEB.missing())
    }

    pub(super) fn url(&self) -> String {
        match *self {}
    }

    pub(super) fn finish(self, _: impl Fn() -> bool) {
        match self {}
    }
}

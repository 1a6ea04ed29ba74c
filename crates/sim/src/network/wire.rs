//! One direction of a link between two nodes.

use super::NodeId;
use super::packets::PacketId;
use crate::link::{LinkConfig, LinkModel};
use crate::random::Streams;

/// A link model and where it leads.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) model: LinkModel<PacketId>,
    pub(super) to: NodeId,
    /// The number of the cut, if what comes out of it is in another part of the network.
    pub(super) leaves_by: Option<u32>,
}

impl Wire {
    pub(super) fn new(config: &LinkConfig, to: NodeId, streams: Streams, entity: u64) -> Self {
        let mut model = LinkModel::new(config, streams, entity);
        model.tell_fates();
        Wire { model, to, leaves_by: None }
    }
}

//! Scenarios to begin with, with comments that say what else there is.

/// The scenarios to begin with: the name of each, and its text.
pub const TEMPLATES: [(&str, &str); 4] = [
    // Flows that share one link between two routers.
    ("dumbbell", include_str!("template/dumbbell.toml")),
    // A flow over several links in a row, with cross traffic.
    ("chain", include_str!("template/chain.toml")),
    // Web-like traffic around one router.
    ("star", include_str!("template/star.toml")),
    // A network written out node by node.
    ("network", include_str!("template/network.toml")),
];

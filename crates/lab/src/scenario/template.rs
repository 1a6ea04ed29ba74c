//! Scenarios to begin with, with comments that say what else there is.

use std::fmt;
use std::str::FromStr;

/// Which scenario to begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Template {
    /// Flows that share one link between two routers.
    #[default]
    Dumbbell,
    /// A flow over several links in a row, with cross traffic.
    Chain,
    /// Web-like traffic around one router.
    Star,
    /// A network written out node by node.
    Network,
}

impl Template {
    /// All of them.
    pub(crate) const ALL: [Template; 4] =
        [Template::Dumbbell, Template::Chain, Template::Star, Template::Network];

    /// The scenario.
    pub fn text(self) -> &'static str {
        match self {
            Template::Dumbbell => include_str!("template/dumbbell.toml"),
            Template::Chain => include_str!("template/chain.toml"),
            Template::Star => include_str!("template/star.toml"),
            Template::Network => include_str!("template/network.toml"),
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Template::Dumbbell => "dumbbell",
            Template::Chain => "chain",
            Template::Star => "star",
            Template::Network => "network",
        })
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Template, String> {
        let named = |template: &Template| template.to_string() == text;
        Template::ALL.into_iter().find(named).ok_or_else(|| {
            format!("`{text}` is not a template: choose dumbbell, chain, star or network")
        })
    }
}

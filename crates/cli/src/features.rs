//! Parts of the command that a build may lack.
//!
//! Parts that take long to compile are behind Cargo features, so that the first build is short. If a command needs a part that is missing, it
//! fails before it does anything. The error says how to build with that part.

use std::sync::LazyLock;

use anyhow::anyhow;

use crate::output::listed;

/// A part that can be left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feature {
    /// Its name in Cargo.
    name: &'static str,
    /// The function that is missing without it.
    what: &'static str,
    /// Whether this build has it.
    is_there: bool,
}

impl Feature {
    pub(crate) const PARQUET: Feature =
        Feature::new("parquet", "Parquet files", cfg!(feature = "parquet"));
    pub(crate) const PNG: Feature = Feature::new("png", "PNG files", cfg!(feature = "png"));
    pub(crate) const TUI: Feature =
        Feature::new("tui", "view in the terminal (top, --tui)", cfg!(feature = "tui"));
    pub(crate) const WEB: Feature =
        Feature::new("web", "server for browsers (dash, --watch)", cfg!(feature = "web"));
    pub(crate) const BPF: Feature =
        Feature::new("bpf", "programs for the kernel (the broker, mode tc)", cfg!(feature = "bpf"));
    const XDP: Feature = Feature::new("xdp", "device xdp:INTERFACE", cfg!(feature = "xdp"));
    pub(crate) const PACKAGING: Feature = Feature::new(
        "packaging",
        "shell completions and manual pages",
        cfg!(feature = "packaging"),
    );
    pub(crate) const KERNEL: Feature =
        Feature::new("kernel", "extensions on the kernel's own sockets", cfg!(feature = "kernel"));

    const ALL: [Feature; 8] = [
        Feature::PARQUET,
        Feature::PNG,
        Feature::TUI,
        Feature::WEB,
        Feature::BPF,
        Feature::XDP,
        Feature::PACKAGING,
        Feature::KERNEL,
    ];

    const fn new(name: &'static str, what: &'static str, is_there: bool) -> Feature {
        Feature { name, what, is_there }
    }

    /// Does nothing in a build that has it.
    pub(crate) fn need(self) -> anyhow::Result<()> {
        if self.is_there { Ok(()) } else { Err(self.missing()) }
    }

    /// The error of a command that needs this feature.
    pub(crate) fn missing(self) -> anyhow::Error {
        let Feature { name, what, .. } = self;
        anyhow!("this build of transom has no {what}; build with `--features {name}`")
    }
}

/// The text of `--version`: the version, and the features of this build.
pub(crate) fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let (there, missing): (Vec<Feature>, Vec<Feature>) =
            Feature::ALL.into_iter().partition(|feature| feature.is_there);
        let names =
            |features: &[Feature]| listed(features.iter().map(|feature| feature.name), "none");
        let mut text = format!("{}\nfeatures: {}", env!("CARGO_PKG_VERSION"), names(&there));
        if !missing.is_empty() {
            text += &format!("\nnot in this build: {} (all: --features full)", names(&missing));
        }
        text
    });
    &TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_feature_says_how_to_get_it() {
        for feature in Feature::ALL {
            assert_eq!(feature.need().is_ok(), feature.is_there);
            let text = feature.missing().to_string();
            assert!(text.starts_with("this build of transom has no "), "{text}");
            assert!(text.ends_with(&format!("; build with `--features {}`", feature.name)));
        }
    }

    #[test]
    fn each_feature_is_either_there_or_missing() {
        for feature in Feature::ALL {
            let named = |line: &&str| line.split([' ', ',']).any(|word| word == feature.name);
            let lines: Vec<&str> = long_version().lines().filter(named).collect();
            let begins = if feature.is_there { "features: " } else { "not in this build: " };
            assert!(matches!(lines[..], [line] if line.starts_with(begins)), "{lines:?}");
        }
    }
}

//! Parts of the command that a build may lack.
//!
//! Parts that take long to compile are behind Cargo features, so that the first build is short. If a command needs a part that is missing, it
//! fails before it does anything. The error says how to build with that part.

use std::sync::LazyLock;

use anyhow::anyhow;

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Results as Parquet files.
    Parquet,
    /// Charts as PNG files.
    Png,
    /// Runs in the terminal.
    Tui,
    /// Runs in the browser while they go on.
    Web,
    /// Programs in the kernel.
    Bpf,
    /// Ethernet interfaces by AF_XDP.
    Xdp,
    /// Shell completions and manual pages.
    Packaging,
    /// Extensions on the kernel's own sockets.
    Kernel,
}

impl Feature {
    const ALL: [Feature; 8] = [
        Feature::Parquet,
        Feature::Png,
        Feature::Tui,
        Feature::Web,
        Feature::Bpf,
        Feature::Xdp,
        Feature::Packaging,
        Feature::Kernel,
    ];

    /// Its name in Cargo.
    fn name(self) -> &'static str {
        match self {
            Feature::Parquet => "parquet",
            Feature::Png => "png",
            Feature::Tui => "tui",
            Feature::Web => "web",
            Feature::Bpf => "bpf",
            Feature::Xdp => "xdp",
            Feature::Packaging => "packaging",
            Feature::Kernel => "kernel",
        }
    }

    /// The function that is missing without it.
    fn what(self) -> &'static str {
        match self {
            Feature::Parquet => "Parquet files",
            Feature::Png => "PNG files",
            Feature::Tui => "view in the terminal (top, --tui)",
            Feature::Web => "server for browsers (dash, --watch)",
            Feature::Bpf => "programs for the kernel (the broker, mode tc)",
            Feature::Xdp => "device xdp:INTERFACE",
            Feature::Packaging => "shell completions and manual pages",
            Feature::Kernel => "extensions on the kernel's own sockets",
        }
    }

    /// Whether this build has it.
    pub(crate) fn is_there(self) -> bool {
        match self {
            Feature::Parquet => cfg!(feature = "parquet"),
            Feature::Png => cfg!(feature = "png"),
            Feature::Tui => cfg!(feature = "tui"),
            Feature::Web => cfg!(feature = "web"),
            Feature::Bpf => cfg!(feature = "bpf"),
            Feature::Xdp => cfg!(feature = "xdp"),
            Feature::Packaging => cfg!(feature = "packaging"),
            Feature::Kernel => cfg!(feature = "kernel"),
        }
    }

    /// Does nothing in a build that has it.
    pub(crate) fn need(self) -> anyhow::Result<()> {
        if self.is_there() { Ok(()) } else { Err(self.missing()) }
    }

    /// The error of a command that needs this feature.
    pub(crate) fn missing(self) -> anyhow::Error {
        let (what, name) = (self.what(), self.name());
        anyhow!("this build of transom has no {what}; build with `--features {name}`")
    }
}

/// The text of `--version`: the version, and the features of this build.
pub(crate) fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let (there, missing): (Vec<Feature>, Vec<Feature>) =
            Feature::ALL.into_iter().partition(|feature| feature.is_there());
        let there: Vec<&str> = there.into_iter().map(Feature::name).collect();
        let names = |names: &[&str]| match names {
            [] => "none".to_owned(),
            _ => names.join(", "),
        };
        let mut text = format!("{}\nfeatures: {}", env!("CARGO_PKG_VERSION"), names(&there));
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.into_iter().map(Feature::name).collect();
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
            assert_eq!(feature.need().is_ok(), feature.is_there());
            let text = feature.missing().to_string();
            assert!(text.starts_with("this build of transom has no "), "{text}");
            assert!(text.ends_with(&format!("; build with `--features {}`", feature.name())));
        }
    }

    #[test]
    fn each_feature_is_either_there_or_missing() {
        for feature in Feature::ALL {
            let named = |line: &&str| line.split([' ', ',']).any(|word| word == feature.name());
            let lines: Vec<&str> = long_version().lines().filter(named).collect();
            let begins = if feature.is_there() { "features: " } else { "not in this build: " };
            assert!(matches!(lines[..], [line] if line.starts_with(begins)), "{lines:?}");
        }
    }
}

//! Finds out which program this is: a hash of everything that decides what a run gives.
//!
//! A stored run is not repeated by the program that made it. The version in the manifest does not change with every change of the code,
//! and whoever changes the protocol to see what happens must not be shown what happened before. So the identity of the program is the
//! hash of the sources that runs are made of, and of the versions of the libraries. It is the same wherever the same sources are built.
//!
//! A package that was published is built without the workspace: beside it are packages of anybody. Nobody changes it to see what happens, so there it is
//! the hash of this package alone, which names the versions of the others.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Crates that no run is made of: what they do can change without another outcome.
const APART: [&str; 5] = ["cli", "report", "sansio", "testkit", "trace"];

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let crates = own.join("..");
    let mut roots = Vec::new();
    // A published package has a directory that is named after its version.
    let is_workspace = own.ends_with("crates/lab") && crates.join("tcp/Cargo.toml").is_file();
    let (base, entries) = match is_workspace {
        true => (&crates, sorted(&crates)?),
        false => (&own, vec![own.clone()]),
    };
    for entry in entries {
        let apart = entry.file_name().is_some_and(|name| APART.iter().any(|apart| name == *apart));
        if entry.join("Cargo.toml").is_file() && !apart {
            roots.push(entry.join("src"));
            roots.push(entry.join("Cargo.toml"));
        }
    }
    if is_workspace {
        roots.push(crates.join("../Cargo.lock"));
    }
    let mut hasher = Sha256::new();
    for root in roots {
        println!("cargo::rerun-if-changed={}", root.display());
        add(&root, base, &mut hasher)?;
    }
    println!("cargo::rerun-if-changed=build.rs");
    let digest: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=TRANSOM_SOURCES={}", digest.get(..12).unwrap_or_default());
    Ok(())
}

fn sorted(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    Ok(entries)
}

/// Adds a file, or all files of a directory, each with its name and length.
fn add(path: &Path, base: &Path, hasher: &mut Sha256) -> io::Result<()> {
    if path.is_dir() {
        return sorted(path)?.iter().try_for_each(|entry| add(entry, base, hasher));
    }
    // Where the sources are built without the workspace, some are not there.
    if !path.is_file() {
        return Ok(());
    }
    let contents = fs::read(path)?;
    let name = path.strip_prefix(base).unwrap_or(path);
    hasher.update(name.to_string_lossy().as_bytes());
    hasher.update([0]);
    hasher.update((contents.len() as u64).to_le_bytes());
    hasher.update(&contents);
    Ok(())
}

//! Tells the benchmarks in which profile they are built: those that are published are in the profile `dist`.

use std::path::PathBuf;

fn main() {
    // It is target/[TARGET/]PROFILE/build/PACKAGE/out, and Cargo says the profile's name nowhere else.
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    let profile = out.ancestors().nth(3).and_then(|directory| directory.file_name());
    let profile = profile.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    println!("cargo::rustc-env=TRANSOM_PROFILE={profile}");
    println!("cargo::rerun-if-changed=build.rs");
}

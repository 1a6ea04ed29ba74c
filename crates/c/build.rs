//! How the shared library is linked.

/// The number in the name of the shared library. It changes when programs that were linked before would not work any more.
const ABI: u32 = 0;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtransom.so.{ABI}");
    // Its threads, and what it does when the program exits, need it until then.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

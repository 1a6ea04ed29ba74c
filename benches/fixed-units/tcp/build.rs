//! Compiles `transom_tcp` with the units of its profile `classic` in place of pointers: see `transom_tcp::units`.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fixed_units)");
    println!("cargo::rustc-cfg=fixed_units");
}

//! How the program is linked: its relocations in the packed form. It is executed three times for each job, and each time
//! the loader goes through all of them. Builds nothing else; a linker that does not know the form says so and goes on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(name).unwrap_or_default();
    if target("CARGO_CFG_TARGET_OS") == "linux" && target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

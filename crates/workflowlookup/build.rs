//! Pointers that the loader puts into place are a twentieth of the binary, and every process of ours reads them first. Since 2.36
//! glibc takes them packed, in a hundredth of that; an older one does not start such a program, so that it is looked at first.

use std::env::var;
use std::process::Command;

/// The first glibc that unpacks them.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_for_here = var("HOST") == var("TARGET");
    let has_glibc = var("CARGO_CFG_TARGET_ENV").is_ok_and(|name| name == "gnu");
    if is_for_here && has_glibc && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// As in `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

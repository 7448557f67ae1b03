//! Link settings of `libtcnative-2.so`.

fn main() {
    // The C functions of the shim's library are linked in and not ours to export.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtcnative-2.so");
    // OpenSSL keeps pointers to our functions, and threads destructors: it must never be unmapped.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}

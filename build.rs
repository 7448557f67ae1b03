//! Link settings of the shim's shared object.

fn main() {
    // The shared object owns a pthread-key destructor and fork handlers, which point into its text:
    // it must never be unmapped, whatever its host does with dlclose (CASES.md, 37).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}

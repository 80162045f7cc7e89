//! Lets this package's tests and examples find the library where imgdl-sys found it, and tells those that depend on it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DEP_IMGDL_LIB_DIR");
    if let Some(directory) = std::env::var_os("DEP_IMGDL_LIB_DIR") {
        let directory = directory.to_string_lossy();
        println!("cargo:rustc-link-arg-tests=-Wl,-rpath,{directory}");
        println!("cargo:rustc-link-arg-examples=-Wl,-rpath,{directory}");
        // DEP_IMGDL_RUST_LIB_DIR in the build scripts of those that depend on this.
        println!("cargo:lib_dir={directory}");
    }
}

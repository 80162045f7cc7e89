//! Lets this package's tests find the library where imgdl-sys found it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DEP_IMGDL_LIB_DIR");
    if let Some(directory) = std::env::var_os("DEP_IMGDL_LIB_DIR") {
        println!("cargo:rustc-link-arg-tests=-Wl,-rpath,{}", directory.to_string_lossy());
    }
}

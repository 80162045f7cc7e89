//! Lets the program find the library where the crate found it; one that is installed needs none of this.

fn main() {
    if let Some(directory) = std::env::var_os("DEP_IMGDL_RUST_LIB_DIR") {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{}", directory.to_string_lossy());
    }
}

//! Lets the program find the library that was built in this repository; one that is installed needs none of this.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-env-changed=IMGDL_LIB_DIR");
    let built = || Some(PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("../../build/lib"));
    if let Some(directory) = env::var_os("IMGDL_LIB_DIR").map(PathBuf::from).or_else(built) {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{}", directory.display());
    }
}

//! Finds libimgdl.so: in IMGDL_LIB_DIR, else in build/lib of the repository this is a part of, else by pkg-config.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=IMGDL_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rustc-link-lib=dylib=imgdl");
    match find() {
        Some(directory) => {
            println!("cargo:rustc-link-search=native={}", directory.display());
            // The path is for what runs here. What is installed finds an installed library, or brings its own.
            println!("cargo:rustc-link-arg-tests=-Wl,-rpath,{}", directory.display());
            // DEP_IMGDL_LIB_DIR in the build scripts of those that depend on this.
            println!("cargo:lib_dir={}", directory.display());
        }
        // Documentation and checks need no library, and the linker has a say of its own.
        None => println!("cargo:warning=libimgdl.so is in none of IMGDL_LIB_DIR, build/lib and pkg-config's imgdl"),
    }
}

fn find() -> Option<PathBuf> {
    if let Some(directory) = env::var_os("IMGDL_LIB_DIR") {
        return Some(PathBuf::from(directory));
    }
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let built = package.join("../../../build/lib");
    // Once the library is built there, it is the one to use.
    println!("cargo:rerun-if-changed={}", built.join("libimgdl.so").display());
    if built.join("libimgdl.so").exists() {
        return built.canonicalize().ok();
    }
    installed()
}

fn installed() -> Option<PathBuf> {
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = Command::new(program).args(["--variable=libdir", "imgdl"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let directory = Path::new(text.trim());
    (output.status.success() && directory.is_dir()).then(|| directory.to_path_buf())
}

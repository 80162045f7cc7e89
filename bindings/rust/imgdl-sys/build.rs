//! Finds libimgdl.so, without other crates: see README.md for where it looks, and for what it tells others.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in
        ["IMGDL_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR", "DOCS_RS"]
    {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rustc-link-lib=dylib=imgdl");
    match find() {
        Ok(directory) => {
            let directory = directory.display();
            println!("cargo:rustc-link-search=native={directory}");
            // The path is for what runs here. What is installed finds an installed library, or brings its own.
            println!("cargo:rustc-link-arg-tests=-Wl,-rpath,{directory}");
            // DEP_IMGDL_LIB_DIR in the build scripts of those that depend on this.
            println!("cargo:lib_dir={directory}");
        }
        // Documentation is made where there is no library.
        Err(_) if env::var_os("DOCS_RS").is_some() => {}
        Err(message) => {
            eprintln!("{message}");
            process::exit(1);
        }
    }
}

fn find() -> Result<PathBuf, String> {
    if let Some(directory) = env::var_os("IMGDL_LIB_DIR") {
        return named(Path::new(&directory));
    }
    // Whoever says where to look for installed libraries means these.
    if ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"]
        .iter()
        .any(|name| env::var_os(name).map_or(false, |path| !path.is_empty()))
    {
        if let Ok(directory) = installed() {
            return Ok(directory);
        }
    }
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let built = package.join("../../../build/lib");
    // Once the library is built there, it is the one to use.
    println!("cargo:rerun-if-changed={}", built.join("libimgdl.so").display());
    if built.join("libimgdl.so").exists() {
        return built.canonicalize().map_err(|error| format!("{}: {error}", built.display()));
    }
    installed().map_err(|reason| {
        format!(
            "libimgdl.so was not found: {reason}\n\
             Install imgdl, and set PKG_CONFIG_PATH to the folder of its imgdl.pc unless pkg-config looks there anyway;\n\
             or set IMGDL_LIB_DIR to the folder of libimgdl.so."
        )
    })
}

/// The folder in IMGDL_LIB_DIR.
fn named(directory: &Path) -> Result<PathBuf, String> {
    // Build scripts and linkers run in folders of their own.
    if !directory.is_absolute() {
        return Err(format!("IMGDL_LIB_DIR is {:?}, which is not an absolute path", directory));
    }
    if !directory.join("libimgdl.so").exists() {
        return Err(format!("IMGDL_LIB_DIR is {:?}, and there is no libimgdl.so in it", directory));
    }
    Ok(directory.to_path_buf())
}

/// What pkg-config knows, if it is new enough; else why not.
fn installed() -> Result<PathBuf, String> {
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| OsString::from("pkg-config"));
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let major: u32 = version.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let ask = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output();
        let output = output.map_err(|error| format!("{} does not run: {error}", program.to_string_lossy()))?;
        if output.status.success() {
            return String::from_utf8(output.stdout)
                .map_err(|error| format!("pkg-config does not speak UTF-8: {error}"));
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        Err(if said.is_empty() { format!("{} knows no imgdl", program.to_string_lossy()) } else { said })
    };
    let wanted = format!("imgdl >= {version} imgdl < {}", major + 1);
    ask(&["--print-errors", "--exists", &wanted])?;
    let text = ask(&["--variable=libdir", "imgdl"])?;
    // Where what is installed lies for the linker of another machine's programs.
    let root = env::var_os("PKG_CONFIG_SYSROOT_DIR").map(PathBuf::from).unwrap_or_default();
    let libdir = Path::new(text.trim());
    let directory = match libdir.strip_prefix("/") {
        Ok(inner) if root.parent().is_some() && !libdir.starts_with(&root) => root.join(inner),
        _ => libdir.to_path_buf(),
    };
    if directory.join("libimgdl.so").exists() {
        return Ok(directory);
    }
    Err(format!("pkg-config says that it is in {:?}, and there is no libimgdl.so", directory))
}

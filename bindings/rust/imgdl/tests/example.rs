//! examples/rust builds as a program of its own, and does what it says.

mod support;

use std::env;
use std::path::Path;
use std::process::Command;

use support::*;

#[test]
fn fetch_downloads_and_saves_what_it_is_told() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/rust");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("example");
    let cargo = env::var_os("CARGO").expect("run by cargo");
    let built = Command::new(cargo)
        .args(["build", "--offline", "--locked", "--quiet", "--target-dir"])
        .arg(&target)
        .current_dir(&example)
        .status()
        .unwrap();
    assert!(built.success());
    let origin = Origin::start();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("saved");
    std::fs::create_dir_all(&folder).unwrap();
    let run = |urls: &[String]| {
        let program = target.join("debug/fetch");
        Command::new(program).arg("--save").args(urls).current_dir(&folder).output().unwrap()
    };
    let good = run(&[origin.url("/pictures/opaque.png"), origin.url("/pictures/baseline.jpg")]);
    let said = String::from_utf8_lossy(&good.stdout);
    assert!(good.status.success(), "{good:?}");
    assert!(said.contains("0: 900 x 600 Png") && said.contains("1: complete, 3840000 bytes of pixels"), "{said}");
    let saved = std::fs::read(folder.join("0.pam")).unwrap();
    let whole = imgdl::decode(&picture("opaque.png"), &imgdl::DecodeOptions::new()).unwrap();
    assert!(saved.ends_with(whole.pixels()));
    let bad = run(&[origin.url("/status/404")]);
    assert!(!bad.status.success());
    assert!(String::from_utf8_lossy(&bad.stderr).contains("IMGDL_ERROR_INVALID_STATUS"), "{bad:?}");
}

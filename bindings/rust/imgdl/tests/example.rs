//! The examples do what they say: those of the crate, and examples/rust, which builds as a program of its own.

mod support;

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::*;

/// One of the crate's, which cargo builds before it runs tests.
fn example(name: &str) -> Command {
    let folder = env::current_exe().unwrap().ancestors().nth(2).map(|target| target.join("examples")).unwrap();
    let program = folder.join(name);
    assert!(program.exists(), "{} is missing: cargo test without --test builds it", program.display());
    Command::new(program)
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn progressive_shows_a_picture_as_it_arrives() {
    let origin = Origin::start();
    let output = example("progressive").arg(origin.url("/pictures/progressive.jpg")).output().unwrap();
    let (shown, _) = said(&output);
    assert!(output.status.success() && shown.ends_with("complete\n"), "{output:?}");
    assert_eq!(shown.lines().rev().skip(1).take(24).filter(|line| line.len() == 72).count(), 24, "{shown}");
    let failed = example("progressive").arg(origin.url("/status/404")).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(said(&failed).1.starts_with("IMGDL_ERROR_INVALID_STATUS: "), "{failed:?}");
    assert_eq!(example("progressive").output().unwrap().status.code(), Some(2));
}

#[test]
fn futures_are_awaited_in_order() {
    let origin = Origin::start();
    let urls = ["/pictures/opaque.png", "/status/404", "/pictures/baseline.jpg"].map(|path| origin.url(path));
    let output = example("futures").args(&urls).output().unwrap();
    let (shown, complaints) = said(&output);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("width: 900") && lines[1].contains("width: 1200"), "{shown}");
    assert!(
        complaints.contains("IMGDL_ERROR_INVALID_STATUS") && complaints.ends_with("1 of 3 failed\n"),
        "{complaints}"
    );
}

#[test]
fn bulk_sums_up_what_became_of_a_list() {
    let origin = Origin::start();
    let mut child =
        example("bulk").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for n in 0..40 {
        writeln!(input, "{}", origin.url(&format!("/pictures/lossy.webp?n={n}"))).unwrap();
    }
    write!(input, "\nnothing\n{}", origin.url("/status/404")).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = "40 images, 38400000 pixels\n1 IMGDL_ERROR_INVALID_STATUS\n1 IMGDL_ERROR_INVALID_URL\n";
    assert_eq!(said(&output).0, expected);
}

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

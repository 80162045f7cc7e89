"""The Rust crates as others meet them: lints, documentation, what is packaged, and programs of their own that are built
against an installed copy of the library.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CRATES = os.path.join(ROOT, "bindings/rust")
BUILT = os.path.join(ROOT, "build/lib")
with open(os.path.join(ROOT, "include/imgdl.h"), encoding="utf-8") as header:
    VERSION = re.search(r'IMGDL_VERSION_STRING "(.*)"', header.read())[1]

# What would lead to another library than the one that a test means.
FOREIGN = ("IMGDL_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "LD_LIBRARY_PATH", "LIBRARY_PATH", "RUSTFLAGS")

MANIFEST = """
[package]
name = "consumer"
version = "0.1.0"
edition = "2021"

[dependencies]
imgdl = {{ path = "{crates}/imgdl" }}

[workspace]
"""

MAIN = """
use std::future::Future;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

struct Rings(Mutex<SyncSender<()>>);

impl Wake for Rings {
    fn wake(self: Arc<Rings>) {
        let _ = self.0.lock().unwrap().try_send(());
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gif = "data:image/gif;base64,R0lGODdhAgABAIAAAP8AAAAA/ywAAAAAAgABAAACAkQKADs=";
    let downloader = imgdl::Downloader::builder().allow_data_urls().build()?;
    let (sender, receiver) = sync_channel(1);
    let waker = Waker::from(Arc::new(Rings(Mutex::new(sender))));
    let mut fetch = Box::pin(downloader.fetch(gif));
    let download = loop {
        match fetch.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => break result?,
            Poll::Pending => receiver.recv()?,
        }
    };
    let image = download.image.ok_or("no image")?;
    let streamed = downloader.stream(gif).last().ok_or("no image")??;
    let mapped = downloader.map([gif, gif]).filter(Result::is_ok).count();
    println!("{} {}x{} {} {mapped}", imgdl::version(), image.width(), image.height(), streamed.is_complete());
    Ok(())
}
"""
SAID = f"{VERSION} 2x1 true 2\n"

# What a program of somebody's does where a panic ends it: one argument names the function of its own that panics.
ABORTING = """
use imgdl::{
    Code, Coder, CoderOptions, Downloader, Events, Hooks, Image, ImageInfo, Outgoing, PictureDecoder, PixelFormat, Request,
    Transfer,
};

const GIF: &str = "data:image/gif;base64,R0lGODdhAgABAIAAAP8AAAAA/ywAAAAAAgABAAACAkQKADs=";

fn panic_in(place: &str) {
    if std::env::args().nth(1).as_deref() == Some(place) {
        panic!("the {place} is broken");
    }
}

struct Toy;
struct ToyDecoder;

impl Coder for Toy {
    fn can_decode(&self, prefix: &[u8]) -> Option<bool> {
        Some(prefix.starts_with(b"TOY"))
    }
    fn decoder(&self, _options: &CoderOptions) -> Box<dyn PictureDecoder> {
        Box::new(ToyDecoder)
    }
}

impl PictureDecoder for ToyDecoder {
    fn feed(&mut self, _bytes: &[u8]) -> Result<(), Code> {
        panic_in("codec");
        Ok(())
    }
    fn info(&mut self) -> Result<Option<ImageInfo>, Code> {
        Ok(Some(ImageInfo::new(1, 1)))
    }
    fn finish(&mut self) -> Result<Image, Code> {
        Image::from_pixels(1, 1, PixelFormat::Rgba8, &[0; 4], 4).map_err(|error| error.code())
    }
}

fn main() -> Result<(), imgdl::Error> {
    let hooks = Hooks::builder().transform_body(|_, next| {
        panic_in("hook");
        next.unchanged().unwrap();
    });
    let downloader = Downloader::builder().allow_data_urls().hooks(&hooks.build()?).build()?;
    downloader.register_transport("app", |_: &Outgoing<'_>, mut transfer: Transfer| {
        panic_in("loader");
        transfer.respond(200, []).and_then(|()| transfer.send(b"TOY")).and_then(|()| transfer.end()).unwrap();
    })?;
    let _toy = imgdl::register_coder(Toy)?;
    downloader.download(Request::new(GIF).on_event(Events::default(), |_, _| panic_in("callback")))?.wait()?;
    let gif = downloader.get(GIF)?;
    let toy = downloader.get("app://toy")?;
    println!("{}x{} {}x{}", gif.width(), gif.height(), toy.width(), toy.height());
    Ok(())
}
"""

# As imgdl-sys/README.md shows it.
with open(os.path.join(CRATES, "imgdl-sys/README.md"), encoding="utf-8") as readme:
    RPATH = re.search(r"```rust\n(.*?)```", readme.read(), re.S)[1]


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    return dict(kept, CARGO_TERM_COLOR="never", **changes)


def run(*command, folder=CRATES, **changes):
    return subprocess.run(
        command, cwd=folder, env=environment(**changes), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Sources(unittest.TestCase):
    """Nothing to complain of, with every target."""

    def passes(self, *command, folder=CRATES, **changes):
        result = run(*command, folder=folder, **changes)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_clippy(self):
        for folder in (CRATES, os.path.join(ROOT, "examples/rust")):
            self.passes("cargo", "clippy", "--offline", "--all-targets", "--", "-D", "warnings", folder=folder,
                        IMGDL_LIB_DIR=BUILT, CARGO_TARGET_DIR=os.path.join(ROOT, "build/rust-ecosystem"))

    def test_format(self):
        self.passes("cargo", "fmt", "--check")

    def test_the_registry_would_take_what_they_say_of_themselves(self):
        """As https://doc.rust-lang.org/cargo/reference/manifest.html has it."""
        result = run("cargo", "metadata", "--offline", "--no-deps", "--format-version", "1")
        self.assertEqual(result.returncode, 0, result.stdout)
        packages = json.loads(result.stdout)["packages"]
        self.assertEqual({package["name"] for package in packages}, {"imgdl", "imgdl-sys"})
        for package in packages:
            with self.subTest(package["name"]):
                self.assertEqual((package["version"], package["license"]), (VERSION, "Apache-2.0"))
                self.assertTrue(package["description"] and package["readme"] and package["rust_version"])
                self.assertTrue(1 <= len(package["keywords"]) <= 5 and 1 <= len(package["categories"]) <= 5)
                for keyword in package["keywords"]:
                    self.assertRegex(keyword, r"\A[a-z][a-z0-9_+-]{0,19}\Z")

    def test_documentation(self):
        self.passes("cargo", "doc", "--offline", "--no-deps", RUSTDOCFLAGS="-D warnings", IMGDL_LIB_DIR=BUILT,
                    CARGO_TARGET_DIR=os.path.join(ROOT, "build/rust-ecosystem"))


class Elsewhere(unittest.TestCase):
    """A program somewhere else."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="imgdl-rust-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def program(self, crates, build=None, main=MAIN, more=""):
        """A folder with a program in it."""
        folder = tempfile.mkdtemp(dir=self.folder)
        write(f"{folder}/Cargo.toml", MANIFEST.format(crates=crates) + more)
        write(f"{folder}/src/main.rs", main)
        if build:
            write(f"{folder}/build.rs", build)
        return folder

    def build(self, folder, **changes):
        return run("cargo", "build", "--offline", "--quiet", folder=folder, CARGO_TARGET_DIR=f"{folder}/target", **changes)


class Aborts(Elsewhere):
    """Where the program says `panic = "abort"`."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = cls.program(cls(), CRATES, RPATH, ABORTING, '\n[profile.dev]\npanic = "abort"\n')
        result = cls.build(cls(), cls.built, IMGDL_LIB_DIR=BUILT)
        assert (result.returncode, result.stdout) == (0, ""), result.stdout

    def test_what_does_not_panic_goes_on(self):
        result = run(f"{self.built}/target/debug/consumer")
        self.assertEqual((result.returncode, result.stdout), (0, "2x1 1x1\n"))

    def test_a_panic_ends_the_program_and_says_why(self):
        for place in ("callback", "hook", "loader", "codec"):
            with self.subTest(place):
                result = run(f"{self.built}/target/debug/consumer", place, RUST_BACKTRACE="0")
                self.assertEqual(result.returncode, -signal.SIGABRT, result.stdout)
                self.assertRegex(result.stdout, f"panicked at src/main.rs:.*\nthe {place} is broken\n")


class Programs(Elsewhere):
    """With the crates as they are packaged and the library as it is installed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = os.path.join(cls.folder, "prefix")
        result = run("make", "-s", "install", f"PREFIX={cls.prefix}", folder=ROOT)
        assert result.returncode == 0, result.stdout
        cls.lib = os.path.join(cls.prefix, "lib")
        cls.pkg_config = os.path.join(cls.lib, "pkgconfig")
        cls.crates = os.path.join(cls.folder, "crates")
        cls.packaged = {}
        for name in ("imgdl-sys", "imgdl"):
            listed = run("cargo", "package", "--list", "--allow-dirty", "--offline", "--quiet", folder=os.path.join(CRATES, name))
            assert listed.returncode == 0, listed.stdout
            cls.packaged[name] = set(listed.stdout.split())
            for path in cls.packaged[name]:
                source = os.path.join(CRATES, name, path)
                if os.path.exists(source):
                    target = os.path.join(cls.crates, name, path)
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    shutil.copyfile(source, target)

    def says(self, folder, **changes):
        result = run(f"{folder}/target/debug/consumer", **changes)
        self.assertEqual((result.returncode, result.stdout), (0, SAID))

    def paths(self, folder):
        """Those that are built into the program."""
        dynamic = run("readelf", "-dW", f"{folder}/target/debug/consumer").stdout
        return re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)

    def fails(self, folder, *parts, **changes):
        result = self.build(folder, **changes)
        self.assertNotEqual(result.returncode, 0)
        for part in parts:
            self.assertIn(part, result.stdout)

    def test_packages_have_what_they_need(self):
        for name, files in self.packaged.items():
            needed = {"Cargo.toml", "README.md", "LICENSE", "build.rs", "src/lib.rs"}
            self.assertLessEqual(needed, files, name)
            strays = {path for path in files if path.split("/")[0] not in (
                ".cargo_vcs_info.json", "Cargo.toml", "Cargo.toml.orig", "Cargo.lock", "README.md", "LICENSE", "build.rs",
                "doc", "examples", "src", "tests")}
            self.assertEqual(strays, set(), name)
            for path in files & {"README.md", "LICENSE"}:
                self.assertTrue(os.path.getsize(os.path.join(self.crates, name, path)) > 100)
        # The other one depends on this, which is in no registry.
        result = run("cargo", "package", "--offline", "--allow-dirty", "-p", "imgdl-sys", PKG_CONFIG_PATH=self.pkg_config,
                     CARGO_TARGET_DIR=os.path.join(self.folder, "package"))
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_by_pkg_config(self):
        folder = self.program(self.crates)
        result = self.build(folder, PKG_CONFIG_PATH=self.pkg_config)
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertEqual(self.paths(folder), [])
        self.says(folder, LD_LIBRARY_PATH=self.lib)

    def test_with_a_path_in_the_program(self):
        folder = self.program(self.crates, RPATH)
        result = self.build(folder, PKG_CONFIG_PATH=self.pkg_config)
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertEqual(self.paths(folder), [self.lib])
        self.says(folder)

    def test_by_name_without_pkg_config(self):
        named = os.path.join(self.folder, "a name with spaces")
        shutil.copytree(self.lib, named, symlinks=True)
        folder = self.program(self.crates, RPATH)
        result = self.build(folder, IMGDL_LIB_DIR=named, PKG_CONFIG="/nonexistent/pkg-config", PKG_CONFIG_PATH=self.pkg_config)
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertEqual(self.paths(folder), [named])
        self.says(folder)

    def test_in_the_repository_an_installed_copy_that_is_named_goes_first(self):
        folder = self.program(CRATES, RPATH)
        for changes, lib in (({"PKG_CONFIG_PATH": self.pkg_config}, self.lib), ({}, BUILT),
                             ({"PKG_CONFIG_PATH": self.folder}, BUILT), ({"IMGDL_LIB_DIR": self.lib}, self.lib)):
            result = self.build(folder, **changes)
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            self.assertEqual(self.paths(folder), [lib])
            self.says(folder)

    def test_what_is_not_found_is_said(self):
        folder = self.program(self.crates)
        nowhere = os.path.join(self.folder, "nowhere")
        advice = ("libimgdl.so was not found", "PKG_CONFIG_PATH", "IMGDL_LIB_DIR")
        self.fails(folder, *advice, PKG_CONFIG_LIBDIR=nowhere)
        self.fails(folder, *advice, "/nonexistent/pkg-config does not run", PKG_CONFIG="/nonexistent/pkg-config")
        self.fails(folder, f'IMGDL_LIB_DIR is "{nowhere}", and there is no libimgdl.so in it', IMGDL_LIB_DIR=nowhere)
        self.fails(folder, "not an absolute path", IMGDL_LIB_DIR="prefix/lib")
        with open(f"{self.pkg_config}/imgdl.pc", encoding="utf-8") as file:
            text = file.read()
        for version in ("1.0.9", "2.0.0"):
            write(f"{nowhere}-{version}/imgdl.pc", re.sub(r"(?m)^Version: .*", f"Version: {version}", text))
            self.fails(folder, *advice, version, PKG_CONFIG_LIBDIR=f"{nowhere}-{version}")
        moved = re.sub(r"(?m)^libdir=.*", f"libdir={nowhere}", text)
        self.assertNotEqual(moved, text)
        write(f"{nowhere}-moved/imgdl.pc", moved)
        self.fails(folder, *advice, nowhere, PKG_CONFIG_LIBDIR=f"{nowhere}-moved")

    def test_documentation_is_made_without_the_library(self):
        folder = self.program(self.crates)
        result = run("cargo", "doc", "--offline", "--quiet", folder=folder, CARGO_TARGET_DIR=f"{folder}/target", DOCS_RS="1",
                     PKG_CONFIG_LIBDIR=os.path.join(self.folder, "nowhere"))
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()

"""Bare roots of Debian under build/machines, and commands in them: with the Swift toolchain of this machine, and nothing
else of it."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MACHINES = f"{ROOT}/build/machines"
RELEASES = {"12": "bookworm", "13": "trixie", "sid": "sid"}
CORPUS = os.environ.get("IMGDL_CORPUS", f"{ROOT}/../shared/corpus")
# The same in each root, as programs know where they were built. Beside it the corpus, if there is one.
CLONE = "/src/imgdl"
USER = 1000

# Mounts are those of the process alone, and so are its children: nothing stays when it ends, however it does.
ENTER = r"""
set -eu
root=$1 toolchain=$2 clone=$3 corpus=$4 packages=$5
shift 5
bind() { mkdir -p "$root$2"; mount --bind "$1" "$root$2"; }
read_only() { bind "$1" "$2"; mount -o remount,bind,ro "$root$2"; }
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs shm "$root/dev/shm"
[ -z "$toolchain" ] || read_only "$toolchain" "$toolchain"
[ -z "$clone" ] || bind "$clone" /src/imgdl
[ -z "$corpus" ] || read_only "$corpus" /src/shared/corpus
bind "$packages" /var/cache/apt/archives
[ ! -e /etc/resolv.conf ] || cat /etc/resolv.conf > "$root/etc/resolv.conf"
exec chroot $CHROOT_OPTIONS "$root" env -i "$@"
"""


class Unprepared(Exception):
    """Something failed without which nothing else can be tried."""


def say(text):
    """Whole lines: several roots may be at work."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def indented(text, most):
    return "".join(f"\n     | {line}" for line in text.splitlines()[-most:])


def toolchain():
    """The folder that holds the toolchain's bin and lib."""
    try:
        said = subprocess.run(["swiftc", "-print-target-info"], stdout=subprocess.PIPE, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"test-machines: no Swift toolchain that starts here: {error}")
    folder = os.path.realpath(os.path.join(json.loads(said)["paths"]["runtimeResourcePath"], "../.."))
    if folder in ("/", "/usr", "/usr/local"):
        raise SystemExit(f"test-machines: the Swift toolchain has to be in a folder of its own, and not in {folder}")
    return folder


class Root:
    """One release: a base that is kept, and a copy of it that is as bare as that whenever a run begins."""

    def __init__(self, name, swift):
        self.name, self.swift = name, swift
        self.base, self.now = f"{MACHINES}/roots/{name}", f"{MACHINES}/now/{name}"
        self.packages, self.logs = f"{MACHINES}/packages/{name}", f"{MACHINES}/logs/{name}"
        self.no_packages = f"{MACHINES}/packages/none"
        self.clone = f"{self.now}.imgdl"

    def renew(self):
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.rmtree(self.packages, ignore_errors=True)

    def prepare(self):
        """A fresh copy with make, as up to date as the archive is, and a clean clone."""
        shutil.rmtree(self.logs, ignore_errors=True)
        for folder in (self.logs, f"{self.packages}/partial", f"{self.no_packages}/partial", os.path.dirname(self.base), os.path.dirname(self.now)):
            os.makedirs(folder, exist_ok=True)
        if not os.path.isdir(self.base):
            new = f"{self.base}.new"
            shutil.rmtree(new, ignore_errors=True)
            self.step("debootstrap", ["debootstrap", "--variant=minbase", RELEASES[self.name], new], is_inside=False)
            os.rename(new, self.base)
        # A mirror that stands still expires, for sid within days; where this machine takes that, its roots do.
        with open(f"{self.base}/etc/apt/apt.conf.d/90validity", "wb") as file:
            subprocess.run(["apt-config", "dump", "Acquire::Check-Valid-Until", "Acquire::Check-Date"], stdout=file, check=True)
        # The installer and every container's host write it; debootstrap does not.
        with open(f"{self.base}/etc/hosts", "w") as file:
            file.write("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
        self.step("bring it up to date", "apt-get -q update && apt-get -q -y dist-upgrade && "
                  "apt-get -q -y install --no-install-recommends make", folder=self.base)
        self.copy()
        shutil.rmtree(self.clone, ignore_errors=True)
        # The tree may be somebody else's than root's.
        self.step("clone", ["git", "-c", "safe.directory=*", "clone", "--quiet", ROOT, self.clone], is_inside=False)

    def copy(self):
        shutil.rmtree(self.now, ignore_errors=True)
        self.step("copy", ["cp", "-a", self.base, self.now], is_inside=False)

    def take(self, clone):
        """A copy of another root's clone with what was built in it: several roots may be at work."""
        copy = f"{self.now}.built"
        shutil.rmtree(copy, ignore_errors=True)
        self.step("copy what was built", ["cp", "-a", clone, copy], is_inside=False)
        return copy

    def run(self, name, command, *, folder=None, clone=None, is_inside=True, has_network=True, has_swift=True, user=None,
            seconds=3600):
        """Runs it, prints how long that took, and gives (status, what it printed); 124 where it took too long."""
        log = f"{self.logs}/{name.replace(' ', '-')}.log"
        say(f"     {self.name}: {name} …")
        start = time.monotonic()
        environment = None
        if is_inside:
            path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            variables = [f"PATH={self.swift}/bin:{path}" if has_swift else f"PATH={path}",
                         "HOME=/root" if user is None else "HOME=/tmp", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
            variables += [f"{name}={os.environ[name]}" for name in ("JOBS", "http_proxy", "https_proxy", "no_proxy")
                          if name in os.environ]
            command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child",
                       *([] if has_network else ["--net"]), "sh", "-c", ENTER, "sh", folder or self.now,
                       self.swift if has_swift else "", clone or "", os.path.abspath(CORPUS) if os.path.isdir(CORPUS) else "",
                       # What was fetched once would be installed without a network, too.
                       self.packages if has_network else self.no_packages, *variables, "sh", "-c",
                       f"cd {CLONE} && {command}" if clone else command]
            environment = dict(os.environ, CHROOT_OPTIONS="" if user is None else f"--userspec={user}:{user}")
        with open(log, "w") as file:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                       env=environment, start_new_session=True)
            try:
                status = process.wait(seconds)
            except BaseException as reason:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if not isinstance(reason, subprocess.TimeoutExpired):
                    raise
                status = 124
        with open(log, errors="replace") as file:
            text = file.read()
        say(f"     {self.name}: {name}: {time.monotonic() - start:.0f} s{'' if status == 0 else f', status {status}'}")
        return status, text

    def step(self, name, command, **options):
        status, text = self.run(name, command, **options)
        if status != 0:
            raise Unprepared(f"{name}: status {status}\n{text}")

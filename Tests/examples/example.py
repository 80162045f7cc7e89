"""What the tests of the examples have in common: pictures, an origin on this machine, and a program that is run to its end."""
import json
import os
import subprocess
import tempfile
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = 60
# The origin is on this machine, whatever proxy the environment names.
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"


class Example:
    """`command` is the program, without its arguments."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="imgdl-loops-")
        cls.addClassCleanup(folder.cleanup)
        subprocess.run([f"{ROOT}/build/bin/imgdl-pictures", folder.name], check=True, stdout=subprocess.DEVNULL)
        cls.pictures = folder.name

    def setUp(self):
        origin = subprocess.Popen([f"{ROOT}/build/bin/imgdl-origin", "--root", self.pictures, "--until-eof"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.base = origin.stdout.readline().split()[-1]

        def stop():
            origin.stdin.close()
            origin.stdout.close()
            origin.wait()
        self.addCleanup(stop)

    def start(self, *addresses):
        environment = dict(os.environ, PYTHONPATH=f"{ROOT}/bindings/python",
                           IMGDL_LIBRARY=f"{ROOT}/build/lib/libimgdl.so")
        return subprocess.Popen([*self.command, *addresses], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run_to_end(self, *addresses):
        return self.end_of(self.start(*addresses))

    def end_of(self, process):
        try:
            said, complaints = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, sorted(said.splitlines()), complaints

    def origin_sees(self, **counts):
        query = "&".join(f"{name}={value}" for name, value in counts.items())
        with urllib.request.urlopen(f"{self.base}/_wait?{query}", timeout=PATIENCE) as answer:
            return json.load(answer)

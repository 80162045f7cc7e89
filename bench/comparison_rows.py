"""What `bench/compare` compares: the clients, and the rows of its table with their bounds."""
import json
import os
import shutil
import subprocess
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = f"{ROOT}/build/bench"
PYTHON = f"{BUILD}/venv/bin/python"


@dataclass(frozen=True)
class Bound:
    """`metric` of `client` is at most `factor` times that of the limit program, or of the fastest Python peer."""

    metric: str
    factor: float
    client: str = "imgdl"
    plus: str = ""
    against: str = "limit"


@dataclass(frozen=True)
class Row:
    name: str
    work: str
    protocol: str
    concurrency: int
    decodes: bool
    bounds: tuple
    clients: tuple
    # Rows of a few tenths of a second are repeated more often than those that decode.
    share: float = 1

    def rounds(self, asked):
        return max(1, round(asked * self.share))


class Client:
    """A program that takes --urls, --concurrency, --decode and --cacert, and prints its counts as JSON."""

    is_ours = False
    is_python_peer = False
    # In which rounds it takes part: each so many.
    every = 3

    def __init__(self, name, title, *program):
        self.name, self.title, self.program = name, title, program

    def is_there(self):
        return all(os.path.exists(part) for part in self.program)

    def can_do(self, row):
        return True

    def command(self, row, urls, ca_file):
        return [*self.program, "--urls", urls, "--concurrency", str(row.concurrency), "--decode", str(int(row.decodes)),
                *(["--cacert", ca_file] if ca_file else [])]

    def environment(self, ca_file):
        return {}

    def counts(self, output):
        return json.loads(output.splitlines()[-1])


class Ours(Client):
    """Measured in each round: the limit program, and imgdl. `limit-fields` says what of the distance is libcurl's."""

    is_ours = True
    every = 1


class PythonPeer(Client):
    is_python_peer = True

    def __init__(self, name, title, *modules):
        super().__init__(name, title, PYTHON, f"{ROOT}/bench/clients/{name}.py")
        self.modules = modules
        self._is_there = None

    def is_there(self):
        if self._is_there is None:
            self._is_there = super().is_there() and subprocess.run(
                [PYTHON, "-c", f"import {', '.join(self.modules)}"], stderr=subprocess.DEVNULL).returncode == 0
        return self._is_there


class SlowPythonPeer(PythonPeer):
    """Takes so long that one run has to do."""

    every = 1000

    def environment(self, ca_file):
        return {"NO_ALBUMENTATIONS_UPDATE": "1"}


class CurlTool(Client):
    """curl --parallel, bodies thrown away; it says of each transfer how many bytes came."""

    def is_there(self):
        return shutil.which("curl") is not None

    def command(self, row, urls, ca_file):
        config = f"{urls}.curl"
        with open(urls, encoding="ascii") as file, open(config, "w", encoding="ascii") as to:
            for url in file.read().split():
                to.write(f'url = "{url}"\noutput = "/dev/null"\n')
        return ["curl", "--silent", "--show-error", "--no-progress-meter", "--parallel", "--parallel-max",
                str(row.concurrency), "--config", config, "--write-out", "%{http_code} %{size_download}\\n",
                *(["--cacert", ca_file] if ca_file else [])]

    def counts(self, output):
        answers = [line.split() for line in output.splitlines()]
        good = [int(size) for status, size in answers if status == "200"]
        return {"images": len(good), "bytes": sum(good), "pixels": 0, "errors": len(answers) - len(good)}


class FoundationClient(Client):
    """On Linux it cannot be told whom to trust: it takes no part over HTTPS."""

    def can_do(self, row):
        return row.protocol == "http"


CLIENTS = {client.name: client for client in (
    Ours("limit", "limit program (C)", f"{BUILD}/limit"),
    Ours("limit-fields", "the same, with imgdl's header fields", f"{BUILD}/limit-fields"),
    Ours("imgdl", "imgdl in C: inline executor, TERMINAL", f"{BUILD}/imgdl"),
    Ours("imgdl-python", "imgdl in Python: pumped executor, TERMINAL", PYTHON, f"{ROOT}/bench/clients/imgdl-python.py"),
    CurlTool("curl", "curl --parallel"),
    PythonPeer("pycurl-pillow", "pycurl, Pillow", "pycurl", "PIL"),
    PythonPeer("aiohttp-pillow", "aiohttp (HTTP/1.1), Pillow", "aiohttp", "PIL"),
    SlowPythonPeer("httpx-pillow", "httpx, Pillow", "httpx", "h2", "PIL"),
    SlowPythonPeer("img2dataset-client", "img2dataset", "img2dataset"),
    FoundationClient("urlsession", "URLSession (Foundation on Linux)", f"{BUILD}/urlsession"),
    Client("pixbuf", "libcurl, GdkPixbufLoader (C)", f"{BUILD}/pixbuf"),
)}

TRANSFER = ("limit", "limit-fields", "imgdl", "imgdl-python", "curl", "pycurl-pillow", "aiohttp-pillow", "httpx-pillow",
            "urlsession")
DECODE = ("limit", "imgdl", "imgdl-python", "pycurl-pillow", "aiohttp-pillow", "httpx-pillow", "img2dataset-client",
          "pixbuf")
PROTOCOLS = (("http", "HTTP/1.1"), ("https", "HTTP/2"))


def transfer_rows():
    for work, factor in (("photographs", 1.15), ("thumbnails", 1.30)):
        for protocol, version in PROTOCOLS:
            for concurrency in (6, 32):
                name = f"{work}, transfer only, {version}, concurrency {concurrency}"
                yield Row(name, work, protocol, concurrency, False, (Bound("CPU", factor),), TRANSFER)


ROWS = (
    *transfer_rows(),
    Row("photographs, transfer and decode, HTTP/1.1, concurrency 6", "photographs", "http", 6, True,
        (Bound("CPU", 1.03), Bound("wall", 1.03), Bound("CPU", 1.08, "imgdl-python", "start")), DECODE, 0.6),
    Row("photographs, transfer and decode, HTTP/2, concurrency 6", "photographs", "https", 6, True,
        (Bound("CPU", 1.03), Bound("wall", 1.03)), DECODE[:2], 0.4),
    Row("photographs, transfer and decode, HTTP/1.1, concurrency 32", "photographs", "http", 32, True,
        (Bound("peak", 1.10, plus="6 MB"),), DECODE[:3], 0.4),
    Row("large pictures, transfer and decode, HTTP/1.1, concurrency 6", "large", "http", 6, True,
        (Bound("CPU", 1.03), Bound("wall", 1.03)), DECODE, 0.6),
    Row("thumbnails, transfer and decode, HTTP/1.1, concurrency 6", "thumbnails", "http", 6, True,
        (Bound("CPU", 0.65, "imgdl-python", against="peer"),), DECODE),
)

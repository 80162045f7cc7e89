"""What the benchmark's clients in Python have in common: their arguments, and the line they print."""
import argparse
import json
import sys
import threading

COMPLAINTS = 5


class Client:
    def __init__(self, name):
        parser = argparse.ArgumentParser(prog=name)
        parser.add_argument("--urls", required=True)
        parser.add_argument("--concurrency", type=int, default=6)
        parser.add_argument("--decode", type=int, choices=(0, 1), default=0)
        parser.add_argument("--cacert")
        arguments = parser.parse_args()
        self.name = name
        self.concurrency = arguments.concurrency
        self.decodes = bool(arguments.decode)
        self.ca_file = arguments.cacert
        with open(arguments.urls, encoding="ascii") as file:
            self.urls = file.read().split()
        self.lock = threading.Lock()
        self.images = self.bytes = self.pixels = self.errors = 0

    def count(self, size, pixels=0):
        with self.lock:
            self.images += 1
            self.bytes += size
            self.pixels += pixels

    def fail(self, exception):
        with self.lock:
            self.errors += 1
            if self.errors <= COMPLAINTS:
                print(f"{self.name}: {exception!r}", file=sys.stderr)

    def take(self, body):
        """Counts a body, decoded with Pillow to RGBA if that is asked for."""
        try:
            self.count(len(body), decode(body) if self.decodes else 0)
        except Exception as exception:
            self.fail(exception)

    def end(self):
        print(json.dumps({"images": self.images, "bytes": self.bytes, "pixels": self.pixels, "errors": self.errors}))
        sys.exit(self.errors != 0)


def decode(body):
    import io

    from PIL import Image

    with Image.open(io.BytesIO(body)) as picture:
        picture.load()
        # What imgdl gives, and what goes to a screen.
        picture = picture.convert("RGBA")
        return picture.width * picture.height

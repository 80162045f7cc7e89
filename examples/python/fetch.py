#!/usr/bin/env python3
"""Downloads pictures, several at a time, and tells what they are.

    fetch.py URL ...
"""

import sys

import imgdl


def main(urls):
    failures = 0
    with imgdl.Downloader(max_concurrent=8) as downloader:
        tokens = [downloader.download(url) for url in urls]
        for token in tokens:
            try:
                image = token.result()
                print(f"{image.width:5} × {image.height:<5} {image.format:5} {token.url}")
            except imgdl.Error as error:
                failures += 1
                print(error.message, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))

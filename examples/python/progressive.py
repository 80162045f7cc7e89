#!/usr/bin/env python3
"""Shows a picture in the terminal while it is still arriving, and again when it is whole.

    progressive.py URL
"""

import os
import sys

import imgdl

COLUMNS = min(60, os.get_terminal_size().columns if sys.stdout.isatty() else 60)


def show(image):
    # Two pixels, one above the other, to each character.
    rows = max(1, COLUMNS * image.height // image.width // 2)
    pixels, stride = image.view, image.stride

    def colour(column, row):
        x, y = column * image.width // COLUMNS, row * image.height // (2 * rows)
        red, green, blue, alpha = pixels[y * stride + 4 * x : y * stride + 4 * x + 4]
        return f"2;{red * alpha // 255};{green * alpha // 255};{blue * alpha // 255}"

    for row in range(rows):
        cells = (f"\33[38;{colour(x, 2 * row)};48;{colour(x, 2 * row + 1)}m▀" for x in range(COLUMNS))
        print("".join(cells) + "\33[0m")


def on_header(token, info):
    print(f"{info.width} × {info.height} {info.format}{', progressive' if info.is_progressive else ''}")


def on_progress(token, received, expected):
    print(f"{received} of {expected or 'unknown'} bytes")


def on_partial(token, image):
    print(f"pass {image.pass_}, {image.ready.height} of {image.height} rows")
    show(image)


def main(url):
    with imgdl.Downloader() as downloader:
        token = downloader.download(url, on_header=on_header, on_progress=on_progress, on_partial=on_partial)
        try:
            show(token.result())
        except imgdl.Error as error:
            sys.exit(error.message)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

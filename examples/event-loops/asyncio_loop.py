#!/usr/bin/env python3
"""asyncio_loop.py URL...: downloads pictures on an event loop of asyncio. The callbacks run on its thread.

(A file called asyncio.py would be what `import asyncio` finds.)
"""
import asyncio
import signal
import sys

import imgdl


async def fetch(downloader, url):
    """Whether it came."""
    try:
        image = await downloader.get(url)
    except imgdl.Error as error:
        print(error.message, file=sys.stderr)
        return False
    print(f"{image.width} x {image.height} {url}")
    return True


async def main(urls):
    async with imgdl.Downloader() as downloader:
        # Ctrl-C: each download still has its end, and tells so.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, downloader.cancel_all)
        return all(await asyncio.gather(*(fetch(downloader, url) for url in urls)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("usage: asyncio_loop.py URL...", file=sys.stderr)
        sys.exit(2)
    sys.exit(0 if asyncio.run(main(sys.argv[1:])) else 1)

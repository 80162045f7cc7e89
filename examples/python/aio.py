#!/usr/bin/env python3
"""Downloads pictures with asyncio: whichever arrives first is told first, and all must be there within ten seconds.

    aio.py URL ...
"""

import asyncio
import sys

import imgdl


async def fetch(downloader, url):
    try:
        image = await downloader.get(url)
        return f"{image.width:5} × {image.height:<5} {image.format:5} {url}"
    except imgdl.Error as error:
        return error.message


async def main(urls):
    async with imgdl.Downloader() as downloader:
        tasks = [asyncio.ensure_future(fetch(downloader, url)) for url in urls]
        try:
            for task in asyncio.as_completed(tasks, timeout=10):
                print(await task)
        except asyncio.TimeoutError:
            # Cancelling a task cancels its download.
            for task in tasks:
                task.cancel()
            sys.exit("not within ten seconds")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1:]))

"""httpx, and Pillow on two threads."""
import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor

import httpx
from client import Client


async def main():
    client = Client("httpx-pillow")
    urls = iter(client.urls)
    loop = asyncio.get_running_loop()
    decoders = ThreadPoolExecutor(2)

    async def work(session):
        for url in urls:
            try:
                response = await session.get(url)
                response.raise_for_status()
            except httpx.HTTPError as error:
                client.fail(error)
                continue
            if client.decodes:
                await loop.run_in_executor(decoders, client.take, response.content)
            else:
                client.take(response.content)

    verify = ssl.create_default_context(cafile=client.ca_file) if client.ca_file else True
    limits = httpx.Limits(max_connections=client.concurrency, max_keepalive_connections=client.concurrency)
    async with httpx.AsyncClient(http2=True, verify=verify, limits=limits, timeout=60) as session:
        await asyncio.gather(*(work(session) for _ in range(client.concurrency + (2 if client.decodes else 0))))
    decoders.shutdown()
    client.end()


asyncio.run(main())

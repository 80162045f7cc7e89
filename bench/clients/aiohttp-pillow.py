"""aiohttp, and Pillow on two threads. It has no HTTP/2: over HTTPS it speaks HTTP/1.1."""
import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor

import aiohttp
from client import Client


async def main():
    client = Client("aiohttp-pillow")
    urls = iter(client.urls)
    loop = asyncio.get_running_loop()
    decoders = ThreadPoolExecutor(2)
    context = ssl.create_default_context(cafile=client.ca_file) if client.ca_file else True

    async def work(session):
        for url in urls:
            try:
                async with session.get(url) as response:
                    response.raise_for_status()
                    body = await response.read()
            except aiohttp.ClientError as error:
                client.fail(error)
                continue
            if client.decodes:
                await loop.run_in_executor(decoders, client.take, body)
            else:
                client.take(body)

    connector = aiohttp.TCPConnector(limit=client.concurrency, ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:
        # Those beyond the connector's limit decode, or wait for a connection.
        tasks = client.concurrency + (2 if client.decodes else 0)
        await asyncio.gather(*(work(session) for _ in range(tasks)))
    decoders.shutdown()
    client.end()


asyncio.run(main())

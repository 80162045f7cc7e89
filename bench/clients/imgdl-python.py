"""imgdl through its Python binding: callbacks on the binding's own thread (a pumped executor), event mask TERMINAL.
Bodies and pixels are looked at where they are. Each download that ends hands over the next."""
import threading

import imgdl
from client import Client


def main():
    client = Client("imgdl-python")
    urls = iter(client.urls)
    left = threading.Semaphore(0)

    with imgdl.Downloader(max_concurrent=client.concurrency, ca_file=client.ca_file, decode_threads=2) as downloader:

        def take(token):
            try:
                result = token.result()
                if client.decodes:
                    pixels = len(result.view) // 4
                    client.count(token.metrics.body_bytes, pixels)
                else:
                    client.count(len(result.view))
                result.close()
            except imgdl.Error as error:
                client.fail(error)
            if not hand_over():
                left.release()

        def hand_over():
            url = next(urls, None)
            if url is None:
                return False
            downloader.download(url, body=not client.decodes, decode=client.decodes).add_done_callback(take)
            return True

        window = sum(hand_over() for _ in range(min(2 * client.concurrency, len(client.urls))))
        for _ in range(window):
            left.acquire()
    client.end()


main()

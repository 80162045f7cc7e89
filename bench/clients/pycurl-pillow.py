"""pycurl's multi interface, and Pillow on two threads: handles and connections are used again."""
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import pycurl
from client import Client


def easy_for(client):
    easy = pycurl.Curl()
    easy.setopt(pycurl.NOSIGNAL, 1)
    easy.setopt(pycurl.BUFFERSIZE, 64 * 1024)
    easy.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
    easy.setopt(pycurl.PIPEWAIT, 1)
    if client.ca_file:
        easy.setopt(pycurl.CAINFO, client.ca_file)
    return easy


def main():
    client = Client("pycurl-pillow")
    urls = iter(client.urls)
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAXCONNECTS, client.concurrency)
    idle = [easy_for(client) for _ in range(client.concurrency)]
    bodies = {}
    # As many bodies wait for a decoder as transfers may run.
    room = threading.Semaphore(2 * client.concurrency)
    decoders = ThreadPoolExecutor(2) if client.decodes else None

    def decode(body):
        client.take(body)
        room.release()

    running, is_over = 0, False
    while True:
        while idle and not is_over:
            if decoders and not room.acquire(blocking=running == 0):
                break
            url = next(urls, None)
            if url is None:
                is_over = True
                break
            easy = idle.pop()
            bodies[easy] = body = io.BytesIO()
            easy.setopt(pycurl.URL, url)
            easy.setopt(pycurl.WRITEDATA, body)
            multi.add_handle(easy)
            running += 1
        if running == 0:
            break
        multi.perform()
        ended = True
        while ended:
            left, done, failed = multi.info_read()
            for easy in done:
                body = bodies.pop(easy)
                if easy.getinfo(pycurl.RESPONSE_CODE) != 200:
                    client.fail("not status 200")
                    room.release()
                elif decoders:
                    decoders.submit(decode, body.getvalue())
                else:
                    client.take(body.getvalue())
            for easy, _, message in failed:
                client.fail(message)
                del bodies[easy]
                room.release()
            for easy in [*done, *(each[0] for each in failed)]:
                multi.remove_handle(easy)
                idle.append(easy)
                running -= 1
            ended = left > 0
        if running and (not idle or is_over):
            multi.select(1.0)
    if decoders:
        decoders.shutdown()
    client.end()


main()

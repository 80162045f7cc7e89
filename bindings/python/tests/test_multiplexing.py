import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import imgdl
from support import PATIENCE

DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS, ACKNOWLEDGEMENT = 1, 4, 1
STATUS_200 = b"\x88"  # as HPACK has it in its table
STREAMS = 6
LARGEST_FRAME = 16_384
FULL_FRAMES, LAST_FRAME = 61, 576


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


class Server:
    """HTTP/2 over TLS, a thread for each connection: six requests are answered together, their bodies in turns, and nothing is
    sent behind them."""

    def __init__(self, folder):
        self.certificate = folder / "certificate.pem"
        key = folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key,
             "-out", self.certificate],
            check=True, capture_output=True)  # fmt: skip
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        self.context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with self.context.wrap_socket(connection, server_side=True) as secure, secure.makefile("rb") as reader:
                secure.sendall(frame(SETTINGS))
                reader.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
                while streams := requests(reader, secure):
                    answer = memoryview(answers(streams))
                    for start in range(0, len(answer), 1 << 20):
                        secure.sendall(answer[start : start + (1 << 20)])
        except OSError:
            return

    def close(self):
        self.listener.close()


def requests(reader, connection):
    """The next six; none: the connection is over."""
    streams = []
    while len(streams) < STREAMS:
        head = reader.read(9)
        if len(head) < 9:
            return []
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        reader.read(int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACKNOWLEDGEMENT:
            connection.sendall(frame(SETTINGS, ACKNOWLEDGEMENT))
        if kind == HEADERS:
            streams.append(stream)
    return streams


def answers(streams):
    parts = [frame(HEADERS, END_HEADERS, stream, STATUS_200) for stream in streams]
    for _ in range(FULL_FRAMES):
        parts += [frame(DATA, 0, stream, bytes(LARGEST_FRAME)) for stream in streams]
    parts += [frame(DATA, END_STREAM, stream, bytes(LAST_FRAME)) for stream in streams]
    return b"".join(parts)


class MultiplexingTests(unittest.TestCase):
    def test_bodies_that_share_a_connection_come_to_their_end(self):
        """libcurl 7.88 forgets the end of a body whose buffer is full when its last frame comes, and no socket tells of it."""
        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder))
            self.addCleanup(server.close)
            with imgdl.Downloader(
                max_concurrent=STREAMS, max_per_host=STREAMS, ca_file=str(server.certificate), idle_timeout=10
            ) as downloader:
                for turn in range(40):
                    tokens = [
                        downloader.download(f"https://localhost:{server.port}/{turn}/{number}", body=True)
                        for number in range(STREAMS)
                    ]
                    lengths = [len(token.result(PATIENCE).data) for token in tokens]
                    self.assertEqual(lengths, [FULL_FRAMES * LARGEST_FRAME + LAST_FRAME] * STREAMS)


if __name__ == "__main__":
    unittest.main()

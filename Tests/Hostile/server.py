"""Serves each hostile answer by its name, over HTTP/1.1, HTTP/1.1 with TLS and HTTP/2 with TLS. Without a library: what
no server says must be said.

  /good            a harmless picture, and the connection stays
  /hostile/NAME    the answer; ?pieces=one, bytes or random, and &seed=
  /check/NAME      the harmless picture if the request is what the row wants to see, else 500
  /asked           how often a hostile answer was asked for since this was asked last
"""
import random
import re
import select
import socket
import ssl
import struct
import threading
import time

import answer
import pictures
import wire
from hpack import Inflater

GOOD = pictures.good(3, 5)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SILENCE = 6  # seconds: longer than anything that is to be seen
FLOOD_SECONDS = 4
CROWD_SECONDS = 30  # until the client has seen enough
MANY = 4096  # bytes: what follows comes in larger pieces


class Server:
    def __init__(self, certificate=None, key=None):
        self.origins, self.listeners, self.asked = {}, [], 0
        for protocol in answer.EACH if certificate else (answer.HTTP1,):
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            scheme = "http" if protocol == answer.HTTP1 else "https"
            self.origins[protocol] = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
            self.listeners.append((protocol, listener))
        self.contexts = {protocol: self._context(certificate, key, name)
                         for protocol, name in ((answer.HTTPS1, "http/1.1"), (answer.HTTP2, "h2")) if certificate}

    @staticmethod
    def _context(certificate, key, name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols([name])
        context.sni_callback = lambda wrapped, host, _: setattr(wrapped, "host_name", host)
        return context

    def start(self):
        for protocol, listener in self.listeners:
            threading.Thread(target=self._accept, args=(protocol, listener), daemon=True).start()

    def _accept(self, protocol, listener):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._serve, args=(protocol, connection), daemon=True).start()

    def _serve(self, protocol, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(SILENCE)
            if protocol == answer.HTTP1 and connection.recv(1, socket.MSG_PEEK) == b"\x16":
                return self._shake_hands(connection)
            if protocol != answer.HTTP1:
                connection = self.contexts[protocol].wrap_socket(connection, server_side=True)
            kind = HTTP2Connection if protocol == answer.HTTP2 else HTTP1Connection
            kind(self, protocol, connection).serve()
        except (OSError, ValueError, struct.error):
            pass  # the client went away, or the answer left nothing to go on with
        finally:
            connection.close()

    def _shake_hands(self, connection):
        hello = connection.recv(65536)
        # Its type and length come ahead of the name: the length may look like a letter of it.
        found = re.search(rb"\0\0.([a-z0-9-]+)\.hostile\.localhost", hello, re.DOTALL)
        row = answer.ROWS[found[1].decode()]
        channel = Channel(connection)
        channel.send(row.make(None), "one", 0)
        channel.end(row.end)


class Channel:
    """Writes in pieces, and ends a connection as a row wants it."""

    def __init__(self, connection):
        self.connection = connection
        self.unread = b""
        self.reads_nothing = False

    def stop_reading(self):
        """What the client says while something is sent is not taken, and soon it can say no more."""
        self.reads_nothing = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def send(self, data, pieces, seed, seconds=FLOOD_SECONDS):
        if isinstance(data, bytes):
            data = [data]
        chance, count, until = random.Random(int(seed)), 0, time.monotonic() + seconds
        if pieces == "one":
            data = self._joined(data)
        for part in data:
            if not isinstance(part, bytes):
                # The silence is part of the answer: it waits for nothing.
                time.sleep(part)
                continue
            part = memoryview(part)
            while part:
                size = len(part)
                if pieces != "one" and count > MANY:
                    size = 4096
                elif pieces == "bytes":
                    size = 1
                elif pieces == "random":
                    size = chance.choice((1, 2, 3, 7, 50, 500, 5000))
                self.connection.sendall(part[:size])
                part, count = part[size:], count + size
            self.drain()
            if time.monotonic() > until:
                break

    @staticmethod
    def _joined(data):
        """A list is one write; what comes from a generator is written as it comes."""
        if isinstance(data, (list, tuple)) and all(isinstance(part, bytes) for part in data):
            return [b"".join(data)]
        return data

    def drain(self):
        """What the client says meanwhile must not be what it waits for. The last of it is kept: requests are not long."""
        while not self.reads_nothing and select.select([self.connection], [], [], 0)[0]:
            data = self.connection.recv(65536)
            if not data:
                raise OSError("the client has closed")
            self.unread = (self.unread + data)[-1 << 20:]

    def receive(self):
        """What comes next; raises when the client has closed."""
        data, self.unread = self.unread or self.connection.recv(65536), b""
        if not data:
            raise OSError("the client has closed")
        return data

    def end(self, how):
        if how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if how == "close":
            self.connection.shutdown(socket.SHUT_WR)
        # Until the client closes: unread bytes would make a close a reset.
        until = time.monotonic() + SILENCE
        while time.monotonic() < until and self.connection.recv(65536):
            pass


class Connection:
    """What both versions of HTTP have: `good` and `refusal` are the answers of each that are none of a row."""

    def __init__(self, server, protocol, connection):
        self.server, self.protocol, self.connection = server, protocol, connection
        self.channel, self.buffer, self.count = Channel(connection), b"", 0

    def respond(self, request):
        """False: nothing follows on this connection."""
        row = answer.ROWS.get(request.name)
        if request.kind == "good" or request.kind == "check" and row.check(request):
            self.connection.sendall(self.good(request))
            return True
        if request.kind == "asked":
            text, self.server.asked = b"%d" % self.server.asked, 0
            self.connection.sendall(wire.head(("Content-Length", len(text))) + text)
            return True
        if request.kind != "hostile" or not row:
            self.connection.sendall(self.refusal(request))
            return True
        self.server.asked += 1
        seconds = FLOOD_SECONDS
        if row.reads_nothing:
            self.channel.stop_reading()
        if row.crowd:
            seconds = CROWD_SECONDS
            self.connection.settimeout(seconds)
        self.channel.send(row.make(request), request.query.get("pieces", "one"), request.query.get("seed", 0), seconds)
        if row.end == "keep":
            return True
        self.channel.end(row.end)
        return False


class HTTP1Connection(Connection):
    @staticmethod
    def good(request):
        return wire.head(("Content-Type", "image/png"), ("Content-Length", len(GOOD))) + GOOD

    @staticmethod
    def refusal(request):
        return wire.head(("Content-Length", 0), status="500 No")

    def serve(self):
        while True:
            if not self.respond(self._read()):
                return

    def _read(self):
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.channel.receive()
        text, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = text.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        length = int(dict((name.lower(), value) for name, value in fields).get("content-length", 0))
        while len(self.buffer) < length:
            self.buffer += self.channel.receive()
        self.buffer = self.buffer[length:]
        self.count += 1
        if method == "CONNECT":
            target = f"/hostile/{target.partition('.')[0]}"
        elif target.startswith("http"):
            target = "/" + target.split("/", 3)[3]
        return answer.Request(self.protocol, target, fields, 0, self.server.origins, method, self.count)


class HTTP2Connection(Connection):
    def __init__(self, server, protocol, connection):
        super().__init__(server, protocol, connection)
        self.inflater = Inflater()

    @staticmethod
    def good(request):
        return wire.response_frames(request.stream, 200, [("content-type", "image/png")], GOOD)

    @staticmethod
    def refusal(request):
        return wire.response_frames(request.stream, 500, [("content-type", "text/plain")])

    def _receive(self, count):
        while len(self.buffer) < count:
            self.buffer += self.channel.receive()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def serve(self):
        host = getattr(self.connection, "host_name", None) or ""
        row = answer.ROWS.get(host.partition(".")[0])
        if row and row.greeting is not None:
            self.channel.send(row.greeting(None), "one", 0)
            return self.channel.end(row.end)
        if self._receive(len(PREFACE)) != PREFACE:
            return
        self.connection.sendall(wire.settings())
        while True:
            start = self._receive(9)
            length, (kind, flags, stream) = int.from_bytes(start[:3], "big"), struct.unpack(">BBI", start[3:])
            payload = self._receive(length)
            if kind == wire.SETTINGS and not flags & wire.ACK:
                self.connection.sendall(wire.settings(ack=True))
            elif kind == wire.PING and not flags & wire.ACK:
                self.connection.sendall(wire.frame(wire.PING, wire.ACK, 0, payload))
            elif kind == wire.GOAWAY:
                return
            elif kind == wire.HEADERS and not self.respond(self._read(stream, payload, flags)):
                return

    def _read(self, stream, payload, flags):
        if flags & wire.PADDED:
            payload = payload[1:len(payload) - payload[0]]
        if flags & wire.HAS_PRIORITY:
            payload = payload[5:]
        while not flags & wire.END_HEADERS:
            start = self._receive(9)
            flags = start[4]
            payload += self._receive(int.from_bytes(start[:3], "big"))
        fields = self.inflater.fields(payload)
        named = dict(fields)
        self.count += 1
        return answer.Request(
            self.protocol, named[":path"], fields, stream, self.server.origins, named[":method"], self.count)

"""Many servers that send bodies as fast as they can, in as many pieces as they can: what they send brings something, so
most of them are let go on, and others hear as if they were not there. Where frames or chunks of a byte cost more than they bring,
all of them may be ended as floods."""
from answer import FLOOD, HTTP1, frames, raw
from wire import DATA, frame, head, header_frames, literal

SERVERS = 24
STATUS = literal(":status", 200)
CHUNK = b"1\r\nx\r\n"


def forever(first, part):
    yield first
    again = part * max(1, (1 << 18) // len(part))
    while True:
        yield again


for name, partitions in (("", False), ("-of-accounts", True)):
    bounds = {"crowd": SERVERS, "partitions": partitions, "options": {"flags": 1}, "pieces": ("one",), "cache": "off",
              "before": False, "limit": 60}
    for size in (1, 4):
        frames(f"crowd{name}-frames-of-{size}",
               lambda stream, size=size: forever(header_frames(stream, STATUS), frame(DATA, 0, stream, b"x" * size)),
               # A frame of a byte takes some machines three times what the byte pays for.
               FLOOD if size == 1 else (), **bounds)
    raw(f"crowd{name}-chunks-of-1", lambda request: forever(head(("Transfer-Encoding", "chunked")), CHUNK),
        # So do chunks, on a machine that is slow for some seconds: none was ended, or all but one or two, in turn.
        FLOOD, protocols=(HTTP1,), **bounds)

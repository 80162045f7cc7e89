"""What a server sent: `Body`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Optional

from . import _native, _once
from ._files import Target, check_target, write
from ._reference import DataReference, view
from .errors import Code, error
from .image import Image

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .response import Response


def _view(reference: DataReference) -> memoryview:
    handle = reference.value
    return view(reference, _native.imgdl_data_bytes(handle), _native.imgdl_data_length(handle)) if handle else memoryview(b"")


class Body:
    """The body of a download made with `body=True`, with Content-Encoding undone. Lives as an `Image` does."""

    __slots__ = ("_reference", "http_status", "response", "image", "__weakref__")

    _reference: Optional[DataReference]
    """Without a value for an empty body; None once it is closed."""
    http_status: int
    """Of the response; not always 200 to 299 with `any_status`."""
    response: Optional[Response]
    """What the server answered."""
    image: Optional[Image]
    """The picture, where `decode=True` was asked for too."""

    def __init__(self) -> None:
        raise TypeError("bodies come from downloads")

    @classmethod
    def _adopt(
        cls, reference: Optional[DataReference], http_status: int, response: Optional[Response], image: Optional[Image]
    ) -> Body:
        """Takes over the reference; None is an empty body."""
        body = cls.__new__(cls)
        body._reference = reference or DataReference()
        body.http_status = http_status
        body.response = response
        body.image = image
        return body

    @property
    def data(self) -> bytes:
        """A copy, made once."""
        reference = self._open()
        data = reference.copy
        if data is None:
            reference.copy = data = bytes(_view(reference))
        return data

    @property
    def view(self) -> memoryview:
        """The bytes themselves, read-only, not copied."""
        return _view(self._open())

    def _open(self) -> DataReference:
        # Another thread may close it meanwhile.
        reference = self._reference
        if reference is None:
            raise error(Code.INVALID_HANDLE, "the body is closed")
        return reference

    def save(self, target: Target) -> None:
        """Writes the bytes into a file, over what is there.

            >>> imgdl.get(url, body=True).save(folder + "/original.png")
        """
        check_target(target)
        write(target, self.view)

    def __len__(self) -> int:
        return len(self.view)

    def __bytes__(self) -> bytes:
        return self.data

    def __buffer__(self, flags: int) -> memoryview:
        return self.view

    def __copy__(self) -> Body:
        return self

    def __deepcopy__(self, memo: object) -> Body:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a body does not go to other processes: send its data")

    def close(self) -> None:
        """Any number of times. An image of it lives on."""
        self._reference = None

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._reference is None:
            return "<imgdl.Body closed>"
        return f"<imgdl.Body {len(self)} bytes, status {self.http_status}>"

"""Memory of the user's that a picture is decoded into: `Canvas`.

C calls two functions of this package, which live as long as the process, with a number under which `_lent` has the
canvas: until the library has given back all that it got, which may be when the last image on it goes.

Both are Python in the path of an allocator, where an interrupt may strike. That is safe because C has an address in any case:
what is struck anywhere answers None through the wrapper of `callback`, which C takes for no memory, and `Canvas.take_back` gets
back what the library was not told of. An address that is answered is that of a view, or of memory in `_others`, which are held
from before; it is never made of what an interrupt has left half done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Optional

from . import _checks, _native, _once
from ._callbacks import Registry, callback, keep, last_callback, new_key
from .errors import Code, Error, error, report

_once.refuse_reload(globals())

if TYPE_CHECKING:
    from .image import Image


class Canvas:
    """A buffer and how rows lie in it. Of one call of `decode`."""

    def __init__(self, buffer: Any, stride: Optional[int]) -> None:
        # Its memory stays where it is as long as this is held.
        self._view = view = _checks.buffer(buffer, "into", "a buffer that can be written to")
        if view.readonly:
            raise error(Code.INVALID_ARGUMENT, "into cannot be written to")
        self._rows: Optional[int] = None
        self._row = 0
        self._stride = None if stride is None else _checks.integer(stride, "stride")
        if view.ndim > 1:
            self._read_shape(view)
        elif not view.contiguous:
            raise error(Code.INVALID_ARGUMENT, "into is not contiguous")
        self._length = view.nbytes
        self._address = _address(view)
        self._is_used = False
        # Canvases that the picture is not given on, by their addresses.
        self._others: dict[int, Any] = {}
        self._refusal: Optional[Error] = None
        self._key = new_key()
        self._is_decoding = False

    def _read_shape(self, view: memoryview) -> None:
        assert view.shape is not None and view.strides is not None
        if self._stride is not None:
            raise error(Code.INVALID_ARGUMENT, "stride is for buffers of one dimension")
        row, expected = view.itemsize, view.itemsize
        for size, step in zip(reversed(view.shape[1:]), reversed(view.strides[1:])):
            if step != expected and size > 1:
                raise error(Code.INVALID_ARGUMENT, "the rows of into are not contiguous")
            row = expected = expected * size
        self._rows, self._row, self._stride = view.shape[0], row, view.strides[0]
        if self._stride < row:
            raise error(Code.INVALID_ARGUMENT, "the rows of into lie in each other, or backwards")

    @contextmanager
    def lent(self, options: Any) -> Iterator[Canvas]:
        """While `options` are used."""
        options.allocator_user_data = self._key
        options.allocate, options.deallocate = _on_allocate, _on_deallocate
        self._is_decoding = True
        try:
            _lent.put(self._key, self)
            yield self
        finally:
            self._is_decoding = False
            # As `_forget`, without a function of Python that an interrupt could keep from beginning.
            if not self._is_used and not self._others:
                _lent._kept.pop(self._key, None)
                self._view.release()

    def check(self) -> None:
        """Raises why the picture has no place here."""
        if self._refusal is not None:
            raise self._refusal

    def place(self, image: Image) -> None:
        """Copies the picture here unless it is here: of the canvases that were wanted the first need not be its."""
        if _native.imgdl_image_pixels(image._handle) == self._address:
            return
        height, row = image.height, image._row
        if not self._fits(height, row):
            raise self._misfit(height, row)
        view, stride = image.view, self._stride or row
        for index in range(height):
            start = index * image.stride
            line = bytes(view[start : start + row])
            ctypes.memmove(self._address + index * stride, line, row)

    def allocate(self, width: int, height: int, bytes_per_pixel: int, stride: Any) -> Optional[int]:
        row = width * bytes_per_pixel
        if not self._is_used and self._fits(height, row):
            self._is_used = True
            if self._stride is not None:
                stride[0] = self._stride
            return self._address
        # A picture that is turned in the end may want another canvas first.
        if not self._fits(height, row) and not self._fits(width, height * bytes_per_pixel):
            self._refusal = self._misfit(height, row)
            return None
        memory = ctypes.create_string_buffer(row * height)
        address = ctypes.addressof(memory)
        self._others[address] = memory
        return address

    def deallocate(self, address: int) -> None:
        if address == self._address:
            self._is_used = False
        else:
            self._others.pop(address, None)
        self._forget()

    def take_back(self) -> None:
        """There is no picture: the library has nothing of it, also where an interrupt kept a function here from knowing."""
        self._is_used = False
        self._others.clear()
        # A traceback may keep this, and must not keep that.
        self._view.release()

    def _forget(self) -> None:
        if not self._is_used and not self._others and not self._is_decoding:
            _lent.pop(self._key)

    def _fits(self, height: int, row: int) -> bool:
        if self._rows is not None:
            return (self._rows, self._row) == (height, row)
        stride = row if self._stride is None else self._stride
        return stride >= row and stride * (height - 1) + row <= self._length

    def _misfit(self, height: int, row: int) -> Error:
        if self._rows is not None:
            mine = f"{self._rows} rows of {self._row}"
        elif self._stride is None:
            mine = f"{self._length}"
        else:
            mine = f"{self._length} in rows that lie {self._stride} apart"
        return error(Code.INVALID_ARGUMENT, f"the picture has {height} rows of {row} bytes, and into has {mine}")


_lent: Registry[Canvas] = Registry()


class _PyBuffer(ctypes.Structure):
    """Python's own struct for a buffer: what a memoryview does not tell is the address of one with gaps."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_PYBUF_STRIDES = 0x0010 | 0x0008


def _address(view: memoryview) -> int:
    buffer = _PyBuffer()
    pointer = ctypes.byref(buffer)
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), pointer, _PYBUF_STRIDES)
        address = int(buffer.buf or 0)
    finally:
        # Does nothing for one that was never filled in.
        ctypes.pythonapi.PyBuffer_Release(pointer)
    return address


@callback(_native.imgdl_allocate)
def _on_allocate(width: int, height: int, bytes_per_pixel: int, stride: Any, key: int) -> Optional[int]:
    try:
        canvas = _lent.get(key)
        return None if canvas is None else canvas.allocate(width, height, bytes_per_pixel, stride)
    except BaseException as exception:
        if not keep(exception):
            report(exception)
        return None


@last_callback(_native.imgdl_deallocate)
def _on_deallocate(address: int, key: int) -> None:
    canvas = _lent.get(key)
    if canvas is not None:
        canvas.deallocate(address)

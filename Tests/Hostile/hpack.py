"""Reads the fields of requests: libnghttp2's inflater, which the machine has for libcurl. What is answered is made by hand."""
import ctypes

_library = ctypes.CDLL("libnghttp2.so.14")


class _Pair(ctypes.Structure):
    _fields_ = [("name", ctypes.POINTER(ctypes.c_uint8)), ("value", ctypes.POINTER(ctypes.c_uint8)),
                ("name_length", ctypes.c_size_t), ("value_length", ctypes.c_size_t), ("flags", ctypes.c_uint8)]


_library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
_FINAL, _EMIT = 1, 2


class Inflater:
    def __init__(self):
        self._inflater = ctypes.c_void_p()
        _library.nghttp2_hd_inflate_new(ctypes.byref(self._inflater))

    def __del__(self):
        _library.nghttp2_hd_inflate_del(self._inflater)

    def fields(self, block):
        found, at, flags = [], 0, ctypes.c_int()
        while True:
            pair = _Pair()
            rest = block[at:]
            used = _library.nghttp2_hd_inflate_hd2(
                self._inflater, ctypes.byref(pair), ctypes.byref(flags), rest, ctypes.c_size_t(len(rest)), 1)
            if used < 0:
                raise ValueError(f"a request whose fields cannot be read: {used}")
            at += used
            if flags.value & _EMIT:
                found.append((ctypes.string_at(pair.name, pair.name_length).decode("latin-1"),
                              ctypes.string_at(pair.value, pair.value_length).decode("latin-1")))
            if flags.value & _FINAL:
                _library.nghttp2_hd_inflate_end_headers(self._inflater)
                return found
            if not used and not flags.value & _EMIT:
                return found

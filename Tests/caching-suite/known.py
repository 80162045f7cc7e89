"""The tests of the suite that do not pass, required and optimal ones, and why: docs/caching.md, “What it does not do”."""

_UNREACHABLE = "the server cannot be reached: that is the error, and no 504 takes its place"
_LENGTH = "the part has 5 bytes and a Content-Range of 6"
_CONTEXT = "it may say who asks, and the answer is not public"
_NORMAL = "a field that nobody knows is not normalised: each byte may matter"

KNOWN = {
    "stale-close-must-revalidate": _UNREACHABLE,
    "stale-close-no-cache": _UNREACHABLE,
    "headers-store-Transfer-Encoding": "where a body with a coding that nobody knows ends cannot be told",
    "method-POST": "the answer to a POST is kept for nobody",
    "partial-store-partial-complete": "what is missing of a part is not asked for: all of it is",
    "partial-store-partial-reuse-partial": _LENGTH,
    "partial-store-partial-reuse-partial-absent": _LENGTH,
    "partial-store-partial-reuse-partial-byterange": _LENGTH,
    "partial-store-partial-reuse-partial-suffix": _LENGTH,
    "other-cookie": _CONTEXT,
    "vary-cache-key": _CONTEXT,
    "vary-normalise-combine": _NORMAL,
    "vary-normalise-space": _NORMAL,
    "vary-normalise-lang-select": "only the server knows how it chooses a language",
}

# Besides, where a request's own Cache-Control: no-cache stands for refresh.
KNOWN_OF_NO_CACHE = {
    "cc-resp-immutable-fresh": "what says no-cache itself is validated, immutable or not",
    "cc-resp-immutable-stale": "the suite looks for max-age=0, and the request's own no-cache is sent",
}

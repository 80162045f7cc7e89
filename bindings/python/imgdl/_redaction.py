"""URLs as they may be shown, also where they are none: the library's own rule (`UserRedaction`) for what it never parsed."""

from __future__ import annotations

import re

from . import _once

_once.refuse_reload(globals())

_SLASH = r"(?:[/\\]|%2f|%5c)"
_COLON = "(?::|%3a)"
_WEB = "(?:https?|ftps?)"
# Compiled with the first that is shown.
_SLASHES = rf"(?i)({_SLASH}+)"
_WEB_AHEAD = rf"(?is){_WEB}{_COLON}(?=.)"
_WEB_ALONE = rf"(?i){_WEB}({_COLON}?)"
_SCHEME = rf"(?i)(?!file:)[a-z0-9+.-]+{_COLON}"
_PASSWORD = rf"(?is)(?!\[).*?{_COLON}(?!\d*$)"
_USER = rf"(?is).*?{_COLON}.*(?:@|%40)"

# The text in front of a piece between slashes.
_NAME, _TWO_SLASHES, _SCHEME_AHEAD, _TWO_SCHEMES = range(4)


def redacted(url: str) -> str:
    """As it was written, without user, password, query and fragment."""
    return re.split("[?#]", _without_users(url), maxsplit=1)[0]


def _behind_sign(text: str) -> int:
    """Where what stands behind the last @ begins, whole or encoded; 0: there is none."""
    at, encoded = text.rfind("@"), text.rfind("%40")
    return max(at + 1, encoded + 3 if encoded >= 0 else 0)


def _without_users(url: str) -> str:
    last = _behind_sign(url)
    if not last or url[:5].lower() == "data:":
        return url
    bare = re.split("[?#]", url, maxsplit=1)[0]
    pieces = [*re.split(_SLASHES, bare), ""]
    shown, position, front = [], 0, _SCHEME_AHEAD
    for index in range(0, len(pieces), 2):
        piece, slashes = pieces[index : index + 2]
        end = position + len(piece)
        ahead = re.match(_WEB_AHEAD, piece)
        if ahead is not None:
            shown.append(ahead[0])
            piece, front = piece[ahead.end() :], max(front, _SCHEME_AHEAD)
        sign = _behind_sign(piece)
        # Behind two schemes, and where no port is behind the colon, the password may go on behind what seems to end it.
        if last > position and (
            front == _TWO_SCHEMES or front == _SCHEME_AHEAD and not sign and re.match(_PASSWORD, piece) is not None
        ):
            return "".join(shown) + url[last:]
        if front == _SCHEME_AHEAD or front == _TWO_SLASHES and re.match(_USER, piece) is not None:
            piece = piece[sign:]
        shown += (piece, slashes)
        front = _front(piece, len(re.findall(rf"(?i){_SLASH}", slashes)), index, pieces[0])
        position = end + len(slashes)
    return "".join(shown) + url[len(bare) :]


def _front(piece: str, slashes: int, index: int, first: str) -> int:
    """What a piece is to the one behind it."""
    web = re.fullmatch(_WEB_ALONE, piece)
    if web is not None:
        if index == 2 and re.fullmatch(_WEB_ALONE, first) is not None:
            return _TWO_SCHEMES
        if web[1] or slashes > 1:
            return _SCHEME_AHEAD
    if slashes < 2:
        return _NAME
    return _SCHEME_AHEAD if index == 0 and not piece or re.fullmatch(_SCHEME, piece) is not None else _TWO_SLASHES

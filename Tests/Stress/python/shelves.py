"""What has been made, where everybody finds it."""

import chance

_MOST = 12
# Of a kind that is not to be let go, few enough are made.
_shelves = {}


def put(kind, thing):
    """One more, in place of any other where there are many: that one is let go."""
    if thing is None:
        return
    shelf = _shelves.setdefault(kind, [])
    if len(shelf) >= _MOST:
        try:
            shelf[chance.dice().randrange(_MOST)] = thing
        except IndexError:
            pass
    else:
        shelf.append(thing)


def pick(kind):
    shelf = _shelves.get(kind)
    try:
        return chance.dice().choice(shelf) if shelf else None
    except IndexError:
        return None


def take(kind):
    """Nobody else finds it any more, unless he has it already."""
    shelf = _shelves.get(kind)
    try:
        return shelf.pop(chance.dice().randrange(len(shelf))) if shelf else None
    except (IndexError, ValueError):
        return None


def clear():
    _shelves.clear()

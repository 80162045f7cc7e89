"""All public names of the package, and why some are not played."""

import imgdl
from calls import fields

# With a reason each.
NOT_PLAYED = {
    "library_version": "a sentence",
    "NO_LIMIT": "a number",
    "LATER": "a value that hooks return: played by them",
}


def public():
    """Module.name or Class.name, of everything that somebody may call or read."""
    found = set()
    for name in imgdl.__all__:
        thing = getattr(imgdl, name)
        if not isinstance(thing, type):
            found.add(name)
            continue
        if issubclass(thing, BaseException) and thing is not imgdl.Error or issubclass(thing, int):
            continue  # what is raised is looked at; numbers are none of ours
        found.add(name)
        found.update(f"{name}.{member}" for member in fields(thing))
        found.update(f"{name}.{member}" for member, value in vars(thing).items() if not member.startswith("_")
                     and (callable(value) or isinstance(value, (classmethod, staticmethod))))
    return found


def wrong(played):
    """Sentences about names that are not played and have no reason, and about reasons without a name."""
    known = public()
    # Nobody makes some classes but the package: what they have is played.
    done = set(played) | {name.partition(".")[0] for name in played}
    missing = [f"not played: {name}" for name in sorted(known - done - set(NOT_PLAYED))]
    return missing + [f"not public: {name}" for name in sorted(set(NOT_PLAYED) - known)]


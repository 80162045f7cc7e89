"""What needs Pillow, which is optional."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from . import _once
from .errors import Code, error

_once.refuse_reload(globals())

if TYPE_CHECKING:
    import PIL.Image

    from .image import Image

# How Pillow calls these pixels; its own are of 8 bits, with straight alpha.
_RAW_MODES = {
    "rgba8": ("RGBA", "RGBA"),
    "rgba8_premultiplied": ("RGBA", "RGBa"),
    "bgra8": ("RGBA", "BGRA"),
    "bgra8_premultiplied": ("RGBA", "BGRa"),
    "rgb8": ("RGB", "RGB"),
    "rgba16": ("RGBA", "RGBA;16N"),
}


def pillow(purpose: str) -> Any:
    """The module PIL.Image. `purpose` says what for, where it is missing."""
    try:
        import PIL.Image
    except ImportError as problem:
        raise ImportError(f"{purpose} needs Pillow: pip install Pillow", name="PIL") from problem
    return PIL.Image


def converted(image: Image) -> PIL.Image.Image:
    module = pillow("to_pil")
    mode, raw_mode = _RAW_MODES[image.pixel_format]
    size = (image.width, image.height)
    # What is still written to is not lent; and rows that lie apart cannot be.
    give = module.frombuffer if image.is_complete and image.stride == image._row else module.frombytes
    picture: PIL.Image.Image = give(mode, size, image.view, "raw", raw_mode, image.stride, 1)
    profile = image.pixel_profile
    if profile is not None:
        picture.info["icc_profile"] = profile
    return picture


def encoded(image: Image, extension: str, options: dict[str, Any]) -> bytes:
    """A file of the format that Pillow knows by this extension."""
    module = pillow(f"saving as {extension.lstrip('.')}")
    module.init()
    name = module.EXTENSION.get(extension.lower())
    if name not in module.SAVE:
        raise error(Code.INVALID_ARGUMENT, f"Pillow writes no files called {extension}")
    picture = converted(image)
    if name == "JPEG" and picture.mode == "RGBA":
        if picture.getchannel("A").getextrema() != (255, 255):
            raise error(
                Code.INVALID_ARGUMENT, "the picture is transparent, and JPEG cannot be: see to_pil, or save as PNG"
            )
        picture = picture.convert("RGB")
    profile = image.pixel_profile
    if profile is not None:
        options = {"icc_profile": profile, **options}
    # Not to the file itself: Pillow removes one that it could not finish, whatever was there before.
    file = io.BytesIO()
    picture.save(file, name, **options)
    return file.getvalue()

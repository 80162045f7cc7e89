"""The options of downloaders, of downloads and of `decode`, for type checkers alone: what they mean stands there.
Nothing imports this when a program runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Callable, Optional, TypedDict, Union

from . import _once
from ._options import Path, Statuses
from .cache import Cache
from .coder import Coder
from .hooks import Hooks
from .image import Image, ImageInfo
from .response import Response
from .retry import Retry
from .token import Token

_once.refuse_reload(globals())


class DecodeKeywords(TypedDict, total=False):
    pixel_format: Optional[str]
    ignore_orientation: bool
    salvage: bool
    max_pixels: Optional[int]
    size: Optional[tuple[Optional[int], Optional[int]]]
    stretch: bool
    scale_down: Union[bool, int]
    all_frames: bool
    require_animation: bool
    max_frames: Optional[int]
    format_hint: Optional[str]
    coder: Optional[Coder]
    colour: Optional[str]
    max_side: Optional[int]
    max_scans: Optional[int]
    max_animation_pixels: Optional[int]
    max_metadata_bytes: Optional[int]
    max_memory_bytes: Optional[int]
    max_decode_ms: Optional[int]
    thumbnail_first: bool
    good_enough_scan: Optional[int]


class Config(TypedDict, total=False):
    max_concurrent: Optional[int]
    order: Union[str, int]
    decode_threads: Optional[int]
    connect_timeout: Optional[float]
    idle_timeout: Optional[float]
    max_redirects: Optional[int]
    user_agent: Optional[str]
    ca_file: Optional[Path]
    max_per_host: Optional[int]
    memory_budget: Optional[int]
    deny_private_addresses: bool
    allow_file_urls: bool
    allow_data_urls: bool
    proxy: Optional[str]
    user: Optional[str]
    password: Optional[str]
    client_certificate: Optional[Path]
    client_key: Optional[Path]
    client_key_password: Optional[str]
    pinned_public_key: Optional[str]
    partition: Optional[str]
    cookie_file: Optional[Path]
    hooks: Optional[Hooks]
    retries: Union[None, int, Retry]
    failure_ttl: Optional[float]
    accepted_statuses: Optional[Statuses]
    accepted_types: Optional[Iterable[str]]
    progress_interval: Optional[float]
    cache: Optional[Cache]
    cache_mode: Union[None, str, int]
    max_stale: Optional[float]
    finish_nearly_done: bool
    dns_servers: Optional[str]
    crl_file: Optional[Path]
    nat64_prefixes: Optional[str]
    require_tls_1_3: bool
    basic_over_http: bool


class Options(DecodeKeywords, total=False):
    method: Optional[str]
    headers: Optional[Mapping[str, Optional[str]]]
    content: Optional[Union[bytes, bytearray, memoryview]]
    decode: Optional[bool]
    priority: Union[str, int]
    follow_redirects: bool
    allow_downgrade: bool
    any_status: bool
    max_body_bytes: Optional[int]
    total_timeout: Optional[float]
    partial_interval: Optional[float]
    cookies: bool
    allow_invalid_certificates: bool
    continue_in_background: bool
    retry_failed: bool
    full_urls: bool
    user: Optional[str]
    password: Optional[str]
    connect_timeout: Optional[float]
    idle_timeout: Optional[float]
    retries: Union[None, int, Retry]
    accepted_statuses: Optional[Statuses]
    accepted_types: Optional[Iterable[str]]
    ca_file: Optional[Path]
    client_certificate: Optional[Path]
    client_key: Optional[Path]
    client_key_password: Optional[str]
    pinned_public_key: Optional[str]
    partition: Optional[str]
    hooks: Optional[Hooks]
    scale_factor: Optional[float]
    cache: Union[None, str, int]
    max_stale: Optional[float]
    ignore_cached: bool
    basic_over_http: bool
    on_started: Optional[Callable[[Token[Any]], object]]
    on_response: Optional[Callable[[Token[Any], Response], object]]
    on_header: Optional[Callable[[Token[Any], ImageInfo], object]]
    on_progress: Optional[Callable[[Token[Any], int, Optional[int]], object]]
    on_partial: Optional[Callable[[Token[Any], Image], object]]

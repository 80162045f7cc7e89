"""Answers that do not come out as they must, yet: the name, or name/protocol, and the line of the issue that they wait
for; `none` is what no line says. `make test` leaves them out. One that fails in none of its ways is a failure of
`--full`: strike it out. `at times`: not in each way of sending it."""

PENDING = {
    **dict.fromkeys((
        "field-long-101-kib/http2", "field-long-300-kib/http2", "field-long-99-kib/http2",
        "field-long-name-101-kib/http2", "field-long-type/http2", "field-long-type-parameters/http2",
        "fields-cache-control-backslashes/http2", "fields-cache-control-long/http2",
        "fields-cache-control-quotes/http2", "fields-header-250-kib/http2", "fields-header-260-kib/http2",
        "fields-header-3-mb/http2", "says-coding-long/http2", "says-location-long/http2", "interim-h2-300-kib",
        "fields-25000/http2", "redirect-to-host-long/http2", "trailer-25000/http2", "trailer-300-kib/http2",
        "trailer-and-header-300-kib/http2",
    ), "Nothing grows: HEADER_LIMIT; more than the 64 KiB of nghttp2 is CONNECTION_LOST, at times"),
    **dict.fromkeys((
        "flood-headers-empty", "flood-rst-of-own", "flood-settings-acks", "flood-settings-full",
        "h2-data-padding-too-long", "h2-data-padding-too-long-alone", "h2-frame-too-large",
        "h2-frame-too-large-alone", "h2-half-body-then-garbage", "h2-half-body-then-hpack", "h2-half-body-then-ping",
        "h2-half-body-then-settings", "h2-half-body-then-window",
    ), "none: a body of HTTP/2 without length that ends with a broken connection counts as whole, and "
        "is stored, at times"),
    **dict.fromkeys((
        "trailer-endless-line", "trailer-long",
    ), "Nothing grows: trailers; one line of more than 100 KiB is PROTOCOL, over HTTP/2 nothing"),
    **dict.fromkeys((
        "tunnel-endless-fields", "tunnel-endless-line", "tunnel-field-101-kib", "tunnel-fields-1100",
        "tunnel-header-300-kib", "tunnel-interim-20000",
    ), "Nothing grows: the answer to CONNECT is no HEADER_LIMIT, at times"),
}

/*
 * imgdl.hpp: imgdl.h for C++17 and later. Header-only; needs nothing but imgdl.h and libimgdl.so.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     imgdl::Downloader downloader;
 *     imgdl::Image picture = downloader.get("https://example.org/picture.jpg").image();
 *     show(picture.pixels(), picture.stride());
 *
 * What a field, a flag or a code means stands in imgdl.h, whose constants (IMGDL_REQUEST_BODY …) are used as they are.
 * What this file adds:
 *
 * Errors     Calls that fail throw imgdl::Error. Those that begin with try_ do not: what they return holds the code. A
 *            download that was started and failed throws when its answer is asked for, with get().
 * Handles    Objects own their handles. Image, Data, Executor, Hooks and Cache are shared: a copy is one more
 *            reference, an object made without arguments is empty. Downloader, Token, Batch, Decoder, Coder and Transfer
 *            only move.
 * Endings    A Token cancels its download when it is destroyed, a Batch those it has: detach() lets them run. A
 *            Downloader cancels everything and waits until nothing can be called any more; inside a callback, of whatever
 *            downloader, it only cancels.
 * Callbacks  are any callable, also one that can only be moved; those of HookFunctions are std::functions, which can be
 *            copied, too. An empty std::function or pointer is IMGDL_ERROR_INVALID_ARGUMENT. A callback is kept until nothing
 *            will be called any more, then destroyed, once, on whatever thread that happens. A cancelled download still tells
 *            its TERMINAL, later:
 *            what a callback refers to must live longer than the downloader, or until token.cancel() and token.wait(); where
 *            the downloader is destroyed inside a callback, until the callback is destroyed.
 *            A callback that throws ends the program (std::terminate): nobody could catch it. Only a codec's functions and a
 *            loader may throw: that fails the picture, or the transfer, with the code of an Error.
 * Views      (std::string_view, Bytes, ResponseView, pointers) live as long as the object that they were asked of. Where that
 *            ends with the line it does not compile: keep the object.
 * Moves      leave an empty object.
 * Strings    with a NUL inside are refused, as everything is that C would see cut.
 * Threads    as in imgdl.h for what is called; one object is used by one thread at a time, its copies by others.
 * Times      are std::chrono::milliseconds; zero is the default of imgdl.h.
 */
#ifndef IMGDL_HPP
#define IMGDL_HPP

#if !defined(__cpp_exceptions)
#error "imgdl.hpp tells errors by exceptions: without them (-fno-exceptions) use imgdl.h, which is C"
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "imgdl.h"

namespace imgdl {

using std::chrono::milliseconds;

/// Bytes that somebody else owns: valid as long as what they were asked of.
class Bytes {
  public:
    Bytes() noexcept = default;
    Bytes(const void *data, std::size_t size) noexcept : data_(static_cast<const std::uint8_t *>(data)), size_(size) {}
    explicit Bytes(std::string_view text) noexcept : Bytes(text.data(), text.size()) {}
    /// A text that ends with the line: keep it.
    template <typename Text, typename = std::enable_if_t<std::is_same_v<const Text, const std::string>>>
    explicit Bytes(Text &&) = delete;

    const std::uint8_t *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    const std::uint8_t *begin() const noexcept { return data_; }
    const std::uint8_t *end() const noexcept { return data_ + size_; }
    std::string_view text() const noexcept { return {reinterpret_cast<const char *>(data_), size_}; }

  private:
    const std::uint8_t *data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail {

/// One reference of a handle that can be retained.
template <typename Raw, Raw *(*Retain)(Raw *), void (*Release)(Raw *)>
class Shared {
  public:
    Shared() noexcept = default;
    /// Takes over one reference.
    explicit Shared(Raw *owned) noexcept : raw_(owned) {}
    Shared(const Shared &other) noexcept : raw_(other.raw_ ? Retain(other.raw_) : nullptr) {}
    Shared(Shared &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Shared &operator=(Shared other) noexcept
    {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Shared() { reset(); }

    /// For functions of imgdl.h; the object keeps its reference. NULL when it is empty.
    Raw *raw() const & noexcept { return raw_; }
    Raw *raw() const && = delete;
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    void reset() noexcept
    {
        if (raw_)
            Release(std::exchange(raw_, nullptr));
    }
    /// Gives the reference to the caller.
    [[nodiscard]] Raw *release() noexcept { return std::exchange(raw_, nullptr); }

  private:
    Raw *raw_ = nullptr;
};

} // namespace detail

/// A body: immutable, shared.
class Data : public detail::Shared<imgdl_data, imgdl_data_retain, imgdl_data_release> {
  public:
    using Shared::Shared;
    static Data retain(imgdl_data *borrowed) noexcept { return Data(borrowed ? imgdl_data_retain(borrowed) : nullptr); }

    Bytes bytes() const & noexcept { return {imgdl_data_bytes(raw()), imgdl_data_length(raw())}; }
    Bytes bytes() const && = delete;
    std::size_t size() const noexcept { return imgdl_data_length(raw()); }
    std::string_view text() const & noexcept { return bytes().text(); }
    std::string_view text() const && = delete;
};

class Image;

/// What went wrong. what() is a sentence for a person which names the URL and the cause, without secrets.
class Error : public std::runtime_error {
  public:
    Error(imgdl_status code, const std::string &message)
        : std::runtime_error(message.empty() ? imgdl_error_message(code) : message), code_(code),
          details_()
    {
    }

    /// As std::exception has it; valid as long as this object. (A template, because what overrides it could not tell a
    /// temporary from others.)
    template <typename Character = char>
    const Character *what() const & noexcept
    {
        return std::runtime_error::what();
    }
    template <typename Character = char>
    const Character *what() const && = delete;
    /// IMGDL_ERROR_….
    imgdl_status code() const noexcept { return code_; }
    /// Such as "IMGDL_ERROR_INVALID_STATUS".
    const char *name() const noexcept { return imgdl_error_name(code_); }
    /// Of the last response; 0 where there was none.
    std::int32_t http_status() const noexcept { return details_ ? details_->http_status : 0; }
    /// Of the last response, without parameters; "" where it said none.
    std::string_view content_type() const & noexcept { return details_ ? details_->content_type : std::string_view(); }
    std::string_view content_type() const && = delete;
    /// The first bytes of a body that was refused, 512 at most.
    Bytes preview() const & noexcept { return details_ ? Bytes(std::string_view(details_->preview)) : Bytes(); }
    Bytes preview() const && = delete;
    /// The pixels that could be had, with IMGDL_DECODE_SALVAGE; else empty.
    inline Image salvaged() const noexcept;

  private:
    friend class Response;
    friend struct Decoded;
    using SharedImage = detail::Shared<imgdl_image, imgdl_image_retain, imgdl_image_release>;
    struct Details {
        std::int32_t http_status = 0;
        std::string content_type = {}, preview = {};
        SharedImage image = {};
    };
    Error(imgdl_status code, const std::string &message, Details details)
        : Error(code, message)
    {
        details_ = std::make_shared<const Details>(std::move(details));
    }

    imgdl_status code_;
    std::shared_ptr<const Details> details_;
};

namespace detail {

/// Where there is nobody to tell: what ends by itself, or has ended already.
inline void ignore(imgdl_status) noexcept {}

/// Throws what imgdl_last_error tells, unless the call succeeded.
inline void check(imgdl_status status)
{
    if (status != IMGDL_OK)
        throw Error(status, imgdl_last_error());
}

/// NULL for what is not given; refuses what C would see cut.
inline const char *c_string(const std::string &text, const char *what, imgdl_status code = IMGDL_ERROR_INVALID_ARGUMENT)
{
    if (text.find('\0') != std::string::npos)
        throw Error(code, std::string(what) + " holds a NUL");
    return text.c_str();
}
inline const char *c_string(const std::optional<std::string> &text, const char *what,
                            imgdl_status code = IMGDL_ERROR_INVALID_ARGUMENT)
{
    return text ? c_string(*text, what, code) : nullptr;
}

inline std::uint32_t to_uint32(milliseconds time, const char *what)
{
    if (time.count() < 0 || time.count() > std::numeric_limits<std::uint32_t>::max())
        throw Error(IMGDL_ERROR_INVALID_ARGUMENT, std::string(what) + " is negative or too long");
    return static_cast<std::uint32_t>(time.count());
}

// Of imgdl_request.max_stale_ms: 0 is a time like another one here.
inline std::uint64_t to_max_stale(const std::optional<milliseconds> &time)
{
    if (!time)
        return 0;
    if (time->count() < 0)
        throw Error(IMGDL_ERROR_INVALID_ARGUMENT, "max_stale is negative");
    if (time->count() == 0)
        return IMGDL_STALE_NEVER;
    return *time == milliseconds::max() ? IMGDL_NO_LIMIT : static_cast<std::uint64_t>(time->count());
}

/// Whatever is a text, and no Request in braces.
template <typename Url>
using IfUrl = std::enable_if_t<std::is_convertible_v<const Url &, std::string_view> && !std::is_null_pointer_v<Url>>;

/// What is told of a batch, and no BatchOptions.
template <typename Progress>
using IfProgress = std::enable_if_t<std::is_invocable_v<std::decay_t<Progress> &, const imgdl_batch_progress &>>;

template <typename Function>
void destroy(void *function) noexcept
{
    delete static_cast<Function *>(function);
}

/// What can hold no function: pointers, std::function, and whatever else compares with nullptr.
template <typename Function, typename = void>
struct CanBeEmpty : std::false_type {};
template <typename Function>
struct CanBeEmpty<Function, std::void_t<decltype(std::declval<const Function &>() == nullptr)>> : std::true_type {};

/// Refuses what could not be called: later nobody could be told.
template <typename Function>
void check_function([[maybe_unused]] const Function &function, [[maybe_unused]] const char *what)
{
    if constexpr (CanBeEmpty<Function>::value)
        if (function == nullptr)
            throw Error(IMGDL_ERROR_INVALID_ARGUMENT, std::string(what) + " is an empty function");
}

/// A function where the library can have it.
template <typename Function, typename Stored = std::decay_t<Function>>
std::unique_ptr<Stored> store(Function &&function, const char *what)
{
    auto stored = std::make_unique<Stored>(std::forward<Function>(function));
    check_function(*stored, what);
    return stored;
}

template <typename Argument, typename Function>
void call(const Argument *argument, void *function) noexcept
{
    (*static_cast<Function *>(function))(*argument);
}

} // namespace detail

/// Pixels: shared, and immutable, but for a partial one, of which only the part that ready() names stays as it is. Getters
/// of an empty one give 0.
class Image : public detail::Shared<imgdl_image, imgdl_image_retain, imgdl_image_release> {
  public:
    using Shared::Shared;
    static Image retain(imgdl_image *borrowed) noexcept
    {
        return Image(borrowed ? imgdl_image_retain(borrowed) : nullptr);
    }
    /// An image of pixels of yours, copied: stride × height bytes.
    static Image from_pixels(std::uint32_t width, std::uint32_t height, imgdl_pixel_format format, const void *pixels,
                             std::size_t stride)
    {
        imgdl_image *image = nullptr;
        detail::check(imgdl_image_create(width, height, format, pixels, stride, &image));
        return Image(image);
    }

    std::uint32_t width() const noexcept { return imgdl_image_width(raw()); }
    std::uint32_t height() const noexcept { return imgdl_image_height(raw()); }
    std::size_t stride() const noexcept { return imgdl_image_stride(raw()); }
    imgdl_format format() const noexcept { return imgdl_image_format(raw()); }
    imgdl_pixel_format pixel_format() const noexcept { return imgdl_image_pixel_format(raw()); }
    const std::uint8_t *pixels() const & noexcept { return static_cast<const std::uint8_t *>(imgdl_image_pixels(raw())); }
    const std::uint8_t *pixels() const && = delete;
    /// The first pixel of row y, which must be below height().
    const std::uint8_t *row(std::uint32_t y) const & noexcept { return pixels() + y * stride(); }
    const std::uint8_t *row(std::uint32_t y) const && = delete;
    std::uint32_t frame_count() const noexcept { return imgdl_image_frame_count(raw()); }
    Image frame(std::uint32_t index) const
    {
        imgdl_image *image = nullptr;
        detail::check(imgdl_image_frame(raw(), index, &image));
        return Image(image);
    }
    milliseconds frame_duration(std::uint32_t index) const noexcept
    {
        return milliseconds(imgdl_image_frame_duration_ms(raw(), index));
    }
    std::uint32_t loop_count() const noexcept { return imgdl_image_loop_count(raw()); }
    double scale_factor() const noexcept { return imgdl_image_scale_factor(raw()); }
    std::uint32_t orientation() const noexcept { return imgdl_image_orientation(raw()); }
    bool is_complete() const noexcept { return imgdl_image_is_complete(raw()) != 0; }
    /// All of the picture is there, but what marks the end of its file is missing or damaged.
    bool has_incomplete_end() const noexcept { return (imgdl_image_notes(raw()) & IMGDL_IMAGE_INCOMPLETE_END) != 0; }
    bool is_good_enough() const noexcept { return imgdl_image_is_good_enough(raw()) != 0; }
    std::uint32_t pass() const noexcept { return imgdl_image_pass(raw()); }
    /// The part of a partial image that may be read.
    imgdl_rectangle ready() const noexcept { return imgdl_image_ready(raw()); }
    imgdl_colour_notes colour_notes() const noexcept { return imgdl_image_colour_notes(raw()); }
    /// Empty where the file has none.
    Bytes icc_profile() const && = delete;
    Bytes icc_profile() const & noexcept
    {
        std::size_t length = 0;
        const void *bytes = imgdl_image_icc_profile(raw(), &length);
        return bytes ? Bytes(bytes, length) : Bytes();
    }
};

inline Image Error::salvaged() const noexcept { return Image::retain(details_ ? details_->image.raw() : nullptr); }

namespace detail {

/// The one reference of a handle that cannot be retained.
template <typename Raw, void (*Release)(Raw *)>
class Owned {
  public:
    Owned() noexcept = default;
    /// Takes over the reference.
    explicit Owned(Raw *owned) noexcept : raw_(owned) {}
    Owned(Owned &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Owned &operator=(Owned &&other) noexcept
    {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;
    ~Owned() { reset(); }

    /// For functions of imgdl.h; the object keeps its reference. NULL when it is empty.
    Raw *raw() const & noexcept { return raw_; }
    Raw *raw() const && = delete;
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    void reset() noexcept
    {
        if (raw_)
            Release(std::exchange(raw_, nullptr));
    }

  private:
    Raw *raw_ = nullptr;
};

} // namespace detail

// ---------------------------------------------------------------------------------------------------------------------
// Decoding

/// imgdl_decode_options with their defaults: set the fields that you need.
struct DecodeOptions : imgdl_decode_options {
    DecodeOptions() noexcept : imgdl_decode_options() { imgdl_decode_options_init(this, sizeof(imgdl_decode_options)); }
};

/// What try_decode found: an image, or why there is none (or a salvaged one alone).
struct Decoded {
    imgdl_status code = IMGDL_OK;
    Image image = {};
    std::string message = {};

    explicit operator bool() const noexcept { return code == IMGDL_OK; }
    Error error() const
    {
        Error::Details details;
        details.image = Error::SharedImage(image);
        return {code, message, std::move(details)};
    }
};

/// Decodes a whole picture in memory; the code is in what it returns.
inline Decoded try_decode(Bytes bytes, const DecodeOptions &options = {})
{
    imgdl_image *image = nullptr;
    Decoded decoded;
    decoded.code = imgdl_decode(bytes.data(), bytes.size(), &options, &image);
    decoded.image = Image(image);
    if (decoded.code != IMGDL_OK)
        decoded.message = imgdl_last_error();
    return decoded;
}

/// Decodes a whole picture in memory.
inline Image decode(Bytes bytes, const DecodeOptions &options = {})
{
    Decoded decoded = try_decode(bytes, options);
    if (!decoded)
        throw decoded.error();
    return std::move(decoded.image);
}

/// A picture that comes in pieces: feed, feed …, finish.
class Decoder : public detail::Owned<imgdl_decoder, imgdl_decoder_destroy> {
  public:
    explicit Decoder(const DecodeOptions &options = {}) : Owned(create(options)) {}

    void feed(Bytes bytes) { detail::check(imgdl_decoder_feed(raw(), bytes.data(), bytes.size())); }
    /// Nothing while the header is not complete.
    std::optional<imgdl_image_info> info() const
    {
        imgdl_image_info info;
        imgdl_image_info_init(&info, sizeof info);
        const imgdl_status status = imgdl_decoder_info(raw(), &info);
        if (status == IMGDL_ERROR_NOT_READY)
            return std::nullopt;
        detail::check(status);
        return info;
    }
    /// The picture so far; empty when there is nothing that the last call did not show.
    Image partial()
    {
        imgdl_image *image = nullptr;
        const imgdl_status status = imgdl_decoder_partial(raw(), &image);
        if (status != IMGDL_ERROR_NOT_READY)
            detail::check(status);
        return Image(image);
    }
    Decoded try_finish()
    {
        imgdl_image *image = nullptr;
        Decoded decoded;
        decoded.code = imgdl_decoder_finish(raw(), &image);
        decoded.image = Image(image);
        if (decoded.code != IMGDL_OK)
            decoded.message = imgdl_last_error();
        return decoded;
    }
    Image finish()
    {
        Decoded decoded = try_finish();
        if (!decoded)
            throw decoded.error();
        return std::move(decoded.image);
    }

  private:
    static imgdl_decoder *create(const DecodeOptions &options)
    {
        imgdl_decoder *decoder = nullptr;
        detail::check(imgdl_decoder_create(&options, &decoder));
        return decoder;
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// Executors

namespace detail {

// IMGDL_EXECUTOR_INLINE without C's cast.
inline imgdl_executor *inline_executor() noexcept { return reinterpret_cast<imgdl_executor *>(std::uintptr_t{1}); }

// It is no object, and a copy of it is itself.
inline imgdl_executor *retain_executor(imgdl_executor *executor) noexcept
{
    return executor == inline_executor() ? executor : imgdl_executor_retain(executor);
}

} // namespace detail

/// Where callbacks run. An empty one is the downloader's thread for callbacks.
class Executor : public detail::Shared<imgdl_executor, detail::retain_executor, imgdl_executor_release> {
  public:
    using Shared::Shared;
    /// Your own thread: watch fd(), and dispatch() when it is readable.
    static Executor pumped()
    {
        imgdl_executor *executor = nullptr;
        detail::check(imgdl_executor_create_pumped(&executor));
        return Executor(executor);
    }
    /// The library's thread that made the event: be quick.
    static Executor immediate() noexcept { return Executor(detail::inline_executor()); }

    int fd() const noexcept { return imgdl_executor_fd(raw()); }
    /// Runs the callbacks that wait, and tells how many.
    std::uint32_t dispatch(std::uint32_t max_events = 0)
    {
        std::uint32_t dispatched = 0;
        detail::check(imgdl_executor_dispatch(raw(), max_events, &dispatched));
        return dispatched;
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// Answers and events

/// A header to send; without a value it is not sent, also where the downloader has one of that name.
struct Header {
    std::string name;
    std::optional<std::string> value;
};

namespace detail {

/// As C has them; valid as long as they stay where they are.
inline std::vector<imgdl_header> to_raw(const std::vector<Header> &headers)
{
    std::vector<imgdl_header> raw;
    for (const Header &header : headers)
        raw.push_back({c_string(header.name, "a header", IMGDL_ERROR_INVALID_HEADER),
                       c_string(header.value, "a header", IMGDL_ERROR_INVALID_HEADER)});
    return raw;
}

} // namespace detail

/// A response that an event shows; valid as long as the event.
class ResponseView {
  public:
    explicit ResponseView(const imgdl_response *raw) noexcept : raw_(raw) {}

    /// The struct itself, for what has no method here.
    const imgdl_response *operator->() const noexcept { return raw_; }
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    std::int32_t status() const noexcept { return raw_ ? raw_->status : 0; }
    std::string_view url() const noexcept { return raw_ ? raw_->url : ""; }
    /// -1 when the server did not tell.
    std::int64_t content_length() const noexcept { return raw_ ? raw_->content_length : -1; }
    imgdl_cache_outcome cache_outcome() const noexcept { return raw_ ? raw_->cache_outcome : 0; }
    /// The first one of that name, whatever its case.
    std::optional<std::string_view> header(std::string_view name) const noexcept
    {
        for (std::size_t i = 0; raw_ && i < raw_->header_count; i++)
            if (is_same(raw_->headers[i].name, name))
                return raw_->headers[i].value;
        return std::nullopt;
    }
    /// All of them, as received.
    std::vector<std::pair<std::string_view, std::string_view>> headers() const
    {
        std::vector<std::pair<std::string_view, std::string_view>> all;
        for (std::size_t i = 0; raw_ && i < raw_->header_count; i++)
            all.emplace_back(raw_->headers[i].name, raw_->headers[i].value);
        return all;
    }

  private:
    static bool is_same(std::string_view one, std::string_view other) noexcept
    {
        if (one.size() != other.size())
            return false;
        for (std::size_t i = 0; i < one.size(); i++)
            if (lower(one[i]) != lower(other[i]))
                return false;
        return true;
    }
    static char lower(char byte) noexcept { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte; }

    const imgdl_response *raw_;
};

/// How a download ended. It keeps what it shows.
class Response {
  public:
    Response() noexcept = default;
    Response(const Response &) = default;
    Response &operator=(const Response &) = default;
    Response(Response &&other) noexcept
        : token_(std::move(other.token_)), raw_(std::exchange(other.raw_, imgdl_result())),
          refusal_(std::exchange(other.refusal_, std::string()))
    {
    }
    Response &operator=(Response &&other) noexcept
    {
        if (this != &other) {
            token_ = std::move(other.token_);
            raw_ = std::exchange(other.raw_, imgdl_result());
            refusal_ = std::exchange(other.refusal_, std::string());
        }
        return *this;
    }
    ~Response() = default;

    explicit operator bool() const noexcept { return code() == IMGDL_OK; }
    /// IMGDL_ERROR_NOT_READY of an empty one, which is no answer.
    imgdl_status code() const noexcept { return is_empty() ? IMGDL_ERROR_NOT_READY : raw_.code; }
    /// "" on success.
    std::string_view message() const & noexcept { return token_ ? std::string_view(raw_.message) : refusal_; }
    std::string_view message() const && = delete;
    std::int32_t http_status() const noexcept { return raw_.http_status; }
    std::string_view content_type() const & noexcept { return raw_.content_type ? raw_.content_type : ""; }
    std::string_view content_type() const && = delete;
    /// Empty without decoding. On failure the salvaged one, or empty.
    Image image() const noexcept { return Image::retain(raw_.image); }
    /// With IMGDL_REQUEST_BODY; else empty.
    Data data() const noexcept { return Data::retain(raw_.data); }
    Bytes preview() const & noexcept { return {raw_.preview, raw_.preview_length}; }
    Bytes preview() const && = delete;
    /// Status, URL, headers: false where there was no response. Valid as long as this object.
    ResponseView head() const & noexcept { return ResponseView(raw_.response); }
    ResponseView head() const && = delete;
    /// NULL where there are none; valid as long as this object.
    const imgdl_metrics *metrics() const & noexcept { return raw_.metrics; }
    const imgdl_metrics *metrics() const && = delete;
    Error error() const
    {
        Error::Details details;
        details.http_status = raw_.http_status;
        details.content_type = content_type();
        details.preview = preview().text();
        details.image = Error::SharedImage(image());
        return {code(), std::string(message()), std::move(details)};
    }

  private:
    friend class Token;
    friend class Downloader;
    using SharedToken = detail::Shared<imgdl_token, imgdl_token_retain, imgdl_token_release>;

    static Response refused(imgdl_status code, std::string message)
    {
        Response response;
        response.raw_.code = code;
        response.refusal_ = std::move(message);
        return response;
    }

    // What was refused has a code, everything else a token.
    bool is_empty() const noexcept { return !token_ && raw_.code == IMGDL_OK; }

    SharedToken token_ = {}; // owns what raw_ points to
    imgdl_result raw_ = {};
    std::string refusal_ = {};
};

/// What a callback is told; valid until it returns, and so not to be copied: keep what image(), data() and others give.
class Event {
  public:
    explicit Event(const imgdl_event &raw) noexcept : raw_(raw) {}
    explicit Event(const imgdl_event &&) = delete;
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;

    /// The struct itself, for what has no method here.
    const imgdl_event *operator->() const noexcept { return &raw_; }
    /// One IMGDL_EVENT_ bit.
    std::uint32_t kind() const noexcept { return raw_.kind; }
    bool is_terminal() const noexcept { return raw_.kind == IMGDL_EVENT_TERMINAL; }
    std::int64_t received() const noexcept { return raw_.received; }
    /// -1 while unknown.
    std::int64_t expected() const noexcept { return raw_.expected; }
    ResponseView response() const noexcept { return ResponseView(raw_.response); }
    /// NULL but for HEADER.
    const imgdl_image_info *info() const noexcept { return raw_.info; }
    Image image() const noexcept { return Image::retain(raw_.image); }
    Data data() const noexcept { return Data::retain(raw_.data); }
    imgdl_status code() const noexcept { return raw_.code; }
    std::int32_t http_status() const noexcept { return raw_.http_status; }
    std::string_view message() const noexcept { return raw_.message ? raw_.message : ""; }
    std::string_view content_type() const noexcept { return raw_.content_type ? raw_.content_type : ""; }
    Bytes preview() const noexcept { return {raw_.preview, raw_.preview_length}; }
    const imgdl_metrics *metrics() const noexcept { return raw_.metrics; }
    /// Cancels the download that this is about; its TERMINAL follows.
    void cancel() const noexcept { detail::ignore(imgdl_token_cancel(raw_.token)); }

  private:
    const imgdl_event &raw_;
};

// ---------------------------------------------------------------------------------------------------------------------
// Hooks

/// A hook's question, until it is answered: inside the call, or later on any thread. One that is destroyed without an
/// answer is refused.
class Continuation {
  public:
    explicit Continuation(imgdl_continuation *raw) noexcept : raw_(raw) {}
    Continuation(Continuation &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Continuation &operator=(Continuation &&other) noexcept
    {
        if (this != &other) {
            refuse_unanswered();
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    Continuation(const Continuation &) = delete;
    Continuation &operator=(const Continuation &) = delete;
    ~Continuation() { refuse_unanswered(); }

    void unchanged() { answered(imgdl_continue_unchanged(raw_)); }
    /// Empty url, method and body, and no headers: as it was.
    void with_request(const std::string &url, const std::string &method = {}, const std::vector<Header> &headers = {},
                      Bytes body = {})
    {
        const std::vector<imgdl_header> raw_headers = detail::to_raw(headers);
        imgdl_outgoing outgoing;
        imgdl_outgoing_init(&outgoing, sizeof outgoing);
        outgoing.url = url.empty() ? nullptr : detail::c_string(url, "the URL", IMGDL_ERROR_INVALID_URL);
        outgoing.method = method.empty() ? nullptr : detail::c_string(method, "the method", IMGDL_ERROR_INVALID_HEADER);
        outgoing.headers = raw_headers.empty() ? nullptr : raw_headers.data();
        outgoing.header_count = raw_headers.size();
        outgoing.body = body.data();
        outgoing.body_length = body.size();
        answered(imgdl_continue_with_request(raw_, &outgoing));
    }
    void with_response(std::int32_t status, const std::vector<Header> &headers)
    {
        const std::vector<imgdl_header> raw_headers = detail::to_raw(headers);
        answered(imgdl_continue_with_response(raw_, status, raw_headers.data(), raw_headers.size()));
    }
    void with_data(Bytes bytes) { answered(imgdl_continue_with_data(raw_, bytes.data(), bytes.size())); }
    void with_credentials(const std::string &user, const std::string &password)
    {
        answered(imgdl_continue_with_credentials(raw_, detail::c_string(user, "the user"),
                                                 detail::c_string(password, "the password")));
    }
    /// Code 0: what fits the question.
    void refused(imgdl_status code = IMGDL_OK, const std::string &message = {})
    {
        const char *sentence = message.empty() ? nullptr : detail::c_string(message, "the message");
        answered(imgdl_continue_refused(raw_, code, sentence));
    }

  private:
    void refuse_unanswered() noexcept
    {
        if (raw_)
            detail::ignore(imgdl_continue_refused(raw_, IMGDL_OK, "the hook gave no answer"));
    }
    // A refused answer leaves the question open.
    void answered(imgdl_status status)
    {
        detail::check(status);
        raw_ = nullptr;
    }

    imgdl_continuation *raw_;
};

/// The functions that a download asks; those that are empty are not asked. They are called on a thread of the library
/// that other downloads wait for, several at a time for several downloaders. A download that an answer of transform_body
/// waits for needs hooks of its own: see imgdl_hooks_table.
struct HookFunctions {
    std::function<void(const imgdl_outgoing &, Continuation)> modify_request = {};
    std::function<void(const ResponseView &, Continuation)> modify_response = {};
    std::function<void(const Data &, Continuation)> transform_body = {};
    std::function<void(const ResponseView &, const char *url, Continuation)> redirect = {};
    std::function<void(const ResponseView &, Continuation)> authenticate = {};
};

class Hooks : public detail::Shared<imgdl_hooks, imgdl_hooks_retain, imgdl_hooks_release> {
  public:
    using Shared::Shared;
    explicit Hooks(HookFunctions functions) : Shared(create(std::make_unique<HookFunctions>(std::move(functions)))) {}

  private:
    static HookFunctions &of(void *user) noexcept { return *static_cast<HookFunctions *>(user); }
    static imgdl_hooks *create(std::unique_ptr<HookFunctions> functions)
    {
        imgdl_hooks_table table = {};
        table.struct_size = sizeof table;
        if (functions->modify_request)
            table.modify_request = [](const imgdl_outgoing *request, imgdl_continuation *next, void *user) noexcept {
                of(user).modify_request(*request, Continuation(next));
            };
        if (functions->modify_response)
            table.modify_response = [](const imgdl_response *response, imgdl_continuation *next, void *user) noexcept {
                of(user).modify_response(ResponseView(response), Continuation(next));
            };
        if (functions->transform_body)
            table.transform_body = [](imgdl_data *body, imgdl_continuation *next, void *user) noexcept {
                of(user).transform_body(Data::retain(body), Continuation(next));
            };
        if (functions->redirect)
            table.redirect = [](const imgdl_response *response, const char *url, imgdl_continuation *next,
                                void *user) noexcept {
                of(user).redirect(ResponseView(response), url, Continuation(next));
            };
        if (functions->authenticate)
            table.authenticate = [](const imgdl_response *challenge, imgdl_continuation *next, void *user) noexcept {
                of(user).authenticate(ResponseView(challenge), Continuation(next));
            };
        table.user_data = functions.get();
        table.destructor = detail::destroy<HookFunctions>;
        imgdl_hooks *hooks = nullptr;
        detail::check(imgdl_hooks_create(&table, &hooks));
        (void)functions.release(); // the table's destructor has it now
        return hooks;
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// The cache

struct CacheConfig {
    /// In memory alone without one.
    std::optional<std::string> directory = {};
    std::uint64_t max_bytes = 0;
    std::uint64_t max_memory_bytes = 0;
    std::uint64_t max_image_bytes = 0;
    std::uint64_t max_partial_bytes = 0;
    std::chrono::seconds max_age = std::chrono::seconds(0);
};

/// Responses kept for the next time. The last copy, or the last downloader that has it, closes it, which waits for the
/// disk.
class Cache : public detail::Shared<imgdl_cache, imgdl_cache_retain, imgdl_cache_release> {
  public:
    using Shared::Shared;
    explicit Cache(const CacheConfig &config) : Shared(open(config, nullptr, nullptr, nullptr)) {}
    /// on_event(const imgdl_cache_event &) is called on a thread of the cache, or as callback of imgdl_cache_config says.
    template <typename Function>
    Cache(const CacheConfig &config, Function &&on_event)
        : Shared(open(config, &detail::call<imgdl_cache_event, std::decay_t<Function>>,
                      &detail::destroy<std::decay_t<Function>>,
                      detail::store(std::forward<Function>(on_event), "on_event").release()))
    {
    }

    /// What is stored for a URL; nothing where nothing is.
    std::optional<imgdl_cache_entry> query(const std::string &url) const
    {
        imgdl_cache_entry entry;
        imgdl_cache_entry_init(&entry, sizeof entry);
        const imgdl_status status = imgdl_cache_query(raw(), c_url(url), &entry);
        if (status == IMGDL_ERROR_NOT_CACHED)
            return std::nullopt;
        detail::check(status);
        return entry;
    }
    void remove(const std::string &url) { detail::check(imgdl_cache_remove(raw(), c_url(url))); }
    void remove_older(std::chrono::seconds age) { detail::check(imgdl_cache_remove_older(raw(), age.count())); }
    void clear() { detail::check(imgdl_cache_clear(raw())); }
    void flush() { detail::check(imgdl_cache_flush(raw())); }
    imgdl_cache_stats statistics() const
    {
        imgdl_cache_stats stats;
        imgdl_cache_stats_init(&stats, sizeof stats);
        detail::check(imgdl_cache_statistics(raw(), &stats));
        return stats;
    }

  private:
    static const char *c_url(const std::string &url)
    {
        return detail::c_string(url, "the URL", IMGDL_ERROR_INVALID_URL);
    }
    static imgdl_cache *open(const CacheConfig &config, void (*callback)(const imgdl_cache_event *, void *),
                             imgdl_destructor destructor, void *user_data)
    {
        imgdl_cache_config raw;
        imgdl_cache_config_init(&raw, sizeof raw);
        try {
            raw.directory = detail::c_string(config.directory, "the directory");
        } catch (...) {
            if (destructor)
                destructor(user_data);
            throw;
        }
        raw.max_bytes = config.max_bytes;
        raw.max_memory_bytes = config.max_memory_bytes;
        raw.max_image_bytes = config.max_image_bytes;
        raw.max_partial_bytes = config.max_partial_bytes;
        raw.max_age_s = config.max_age.count();
        raw.callback = callback;
        raw.destructor = destructor;
        raw.user_data = user_data;
        imgdl_cache *cache = nullptr;
        detail::check(imgdl_cache_open(&raw, &cache));
        return cache;
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// Plug-ins: codecs and schemes of yours

/// imgdl_image_info for a codec: one frame, as stored, opaque. Set what is otherwise.
struct ImageInfo : imgdl_image_info {
    ImageInfo(std::uint32_t wide, std::uint32_t high) noexcept : imgdl_image_info()
    {
        imgdl_image_info_init(this, sizeof(imgdl_image_info));
        width = wide;
        height = high;
        orientation = 1;
        frame_count = 1;
    }
};

/// One picture that a codec of yours decodes; used by one thread at a time. What a function throws is how the picture fails:
/// the code of an Error (IMGDL_ERROR_BAD_IMAGE_DATA, IMGDL_ERROR_TRUNCATED …), IMGDL_ERROR_OUT_OF_MEMORY for std::bad_alloc,
/// IMGDL_ERROR_INTERNAL for everything else. That stays: afterwards only partial() is called, to salvage. (One that throws
/// there shows nothing, and has failed nothing.)
class PictureDecoder {
  public:
    PictureDecoder() = default;
    PictureDecoder(const PictureDecoder &) = delete;
    PictureDecoder &operator=(const PictureDecoder &) = delete;
    virtual ~PictureDecoder() = default;

    /// The next bytes, valid during the call. Missing ones are no error.
    virtual void feed(Bytes bytes) = 0;
    /// What the header tells; nothing while it is unknown. The format is not read. An orientation above 1 says that the
    /// images are as stored, and the library turns them; width and height are of the turned picture.
    virtual std::optional<imgdl_image_info> info() = 0;
    /// The picture so far; an empty one for nothing new.
    virtual Image partial() { return {}; }
    /// No more bytes will come: the whole picture. Options that it does not obey (size, orientation, pixel format) the
    /// library applies afterwards.
    virtual Image finish() = 0;
};

/// The functions of a codec, both called on several threads at the same time.
struct CoderFunctions {
    /// Whether it decodes what begins so; nothing where more bytes are needed to tell. The first 64 bytes, or fewer, must be
    /// enough. One that throws says no.
    std::function<std::optional<bool>(Bytes prefix)> can_decode = {};
    /// Begins a picture. One that throws fails it, as a PictureDecoder's functions do; nullptr is IMGDL_ERROR_OUT_OF_MEMORY.
    std::function<std::unique_ptr<PictureDecoder>(const imgdl_decode_options &)> decoder = {};
};

namespace detail {

/// Inside a handler: tell(code, sentence or NULL) of what was thrown by a function of yours.
template <typename Tell>
void tell_thrown(imgdl_status otherwise, Tell &&tell) noexcept
{
    try {
        throw;
    } catch (const Error &error) {
        tell(error.code() != IMGDL_OK ? error.code() : otherwise, error.what());
    } catch (const std::bad_alloc &) {
        tell(static_cast<imgdl_status>(IMGDL_ERROR_OUT_OF_MEMORY), nullptr);
    } catch (const std::exception &error) {
        tell(otherwise, error.what());
    } catch (...) {
        tell(otherwise, nullptr);
    }
}

/// What call() returns, or what it throws is.
template <typename Call>
imgdl_status status_of(Call &&call) noexcept
{
    imgdl_status status = IMGDL_ERROR_INTERNAL;
    try {
        status = call();
    } catch (...) {
        tell_thrown(IMGDL_ERROR_INTERNAL, [&status](imgdl_status code, const char *) { status = code; });
    }
    return status;
}

/// A decoder where the library can have it, or why there is none.
struct RunningDecoder {
    std::unique_ptr<PictureDecoder> decoder = {};
    imgdl_status failure = IMGDL_OK;

    static imgdl_status feed(void *running, const void *bytes, std::size_t length) noexcept
    {
        return run(running, [=](PictureDecoder &picture) -> imgdl_status {
            picture.feed({bytes, length});
            return IMGDL_OK;
        });
    }
    static imgdl_status info(void *running, imgdl_image_info *info) noexcept
    {
        return run(running, [=](PictureDecoder &picture) -> imgdl_status {
            const std::optional<imgdl_image_info> known = picture.info();
            if (!known)
                return IMGDL_ERROR_NOT_READY;
            const std::uint32_t size = info->struct_size;
            *info = *known;
            info->struct_size = size;
            return IMGDL_OK;
        });
    }
    static imgdl_status partial(void *running, imgdl_image **image) noexcept
    {
        return run(running, [=](PictureDecoder &picture) -> imgdl_status {
            *image = picture.partial().release();
            return *image ? IMGDL_OK : IMGDL_ERROR_NOT_READY;
        });
    }
    static imgdl_status finish(void *running, imgdl_image **image) noexcept
    {
        return run(running, [=](PictureDecoder &picture) -> imgdl_status {
            *image = picture.finish().release();
            return *image ? IMGDL_OK : IMGDL_ERROR_INTERNAL;
        });
    }

  private:
    template <typename Call>
    static imgdl_status run(void *running, Call &&call) noexcept
    {
        auto *known = static_cast<RunningDecoder *>(running);
        return known->decoder ? status_of([&] { return call(*known->decoder); }) : known->failure;
    }
};

} // namespace detail

/// A codec of yours, for every downloader and decode() of the process as long as this lives; the newest is asked first.
/// Destroying it takes the codec out. What decodes with it goes on, and its functions are destroyed when nothing does. In
/// DecodeOptions::coder stands raw(), of one that lives when the options are used.
class Coder : public detail::Owned<imgdl_coder, imgdl_coder_release> {
  public:
    using Owned::Owned;
    explicit Coder(CoderFunctions functions)
        : Owned(add(std::make_unique<CoderFunctions>(std::move(functions))))
    {
    }

  private:
    static const CoderFunctions &of(void *user) noexcept { return *static_cast<const CoderFunctions *>(user); }
    static std::int32_t can_decode(const void *prefix, std::size_t length, void *user) noexcept
    {
        try {
            const std::optional<bool> answer = of(user).can_decode({prefix, length});
            return answer ? *answer : -1;
        } catch (...) {
            return 0;
        }
    }
    static void *create(const imgdl_decode_options *options, void *user) noexcept
    {
        std::unique_ptr<detail::RunningDecoder> running(new (std::nothrow) detail::RunningDecoder());
        if (!running)
            return nullptr;
        running->failure = detail::status_of([&]() -> imgdl_status {
            running->decoder = of(user).decoder(*options);
            return running->decoder ? IMGDL_OK : IMGDL_ERROR_OUT_OF_MEMORY;
        });
        return running.release();
    }
    static imgdl_coder *add(std::unique_ptr<CoderFunctions> functions)
    {
        detail::check_function(functions->can_decode, "can_decode");
        detail::check_function(functions->decoder, "decoder");
        imgdl_coder_table table = {};
        table.struct_size = sizeof table;
        table.can_decode = &can_decode;
        table.create = &create;
        table.feed = &detail::RunningDecoder::feed;
        table.info = &detail::RunningDecoder::info;
        table.partial = &detail::RunningDecoder::partial;
        table.finish = &detail::RunningDecoder::finish;
        table.destroy = detail::destroy<detail::RunningDecoder>;
        table.user_data = functions.get();
        table.destructor = detail::destroy<CoderFunctions>;
        imgdl_coder *coder = nullptr;
        detail::check(imgdl_coder_register(&table, &coder));
        (void)functions.release(); // the table's destructor has it now
        return coder;
    }
};

namespace detail {

/// A function without arguments, which need not be one that can be copied.
struct AnyCall {
    AnyCall() = default;
    AnyCall(const AnyCall &) = delete;
    AnyCall &operator=(const AnyCall &) = delete;
    virtual ~AnyCall() = default;
    virtual void call() = 0;
};

template <typename Function>
struct StoredCall final : AnyCall {
    Function function;

    template <typename Given>
    explicit StoredCall(Given &&given) : function(std::forward<Given>(given))
    {
    }
    void call() override { function(); }
};

template <typename Function>
std::unique_ptr<AnyCall> to_any_call(Function &&function, const char *what)
{
    auto stored = std::make_unique<StoredCall<std::decay_t<Function>>>(std::forward<Function>(function));
    check_function(stored->function, what);
    return stored;
}

/// What a Transfer and the library's word of it have in common. The Transfer has it; "started" points to it.
class TransferState : public std::enable_shared_from_this<TransferState> {
  public:
    TransferState(imgdl_transfer *transfer, imgdl_downloader *downloader) noexcept
        : raw_(transfer), downloader_(imgdl_downloader_retain(downloader))
    {
    }
    TransferState(const TransferState &) = delete;
    TransferState &operator=(const TransferState &) = delete;

    imgdl_transfer *raw() const noexcept { return raw_; }
    bool is_cancelled() const noexcept { return is_cancelled_; }

    static void cancel(void *started, void *) noexcept
    {
        // A function may let go of the Transfer.
        const auto state = static_cast<TransferState *>(started)->shared_from_this();
        state->is_cancelled_ = true;
        state->count_resume();
        state->call_on_cancel();
    }
    static void resume(void *started, void *) noexcept
    {
        const auto state = static_cast<TransferState *>(started)->shared_from_this();
        state->count_resume();
        state->call_on_resume();
    }

    /// What a report was answered. Those that nobody wants any more are no errors.
    void check_report(imgdl_status status) const
    {
        if (!is_cancelled_)
            check(status);
    }
    bool try_send(Bytes bytes)
    {
        const imgdl_status status = imgdl_transfer_body(raw_, bytes.data(), bytes.size());
        if (status == IMGDL_ERROR_NOT_READY)
            return is_cancelled_;
        check_report(status);
        return true;
    }
    std::uint64_t resumes()
    {
        const std::lock_guard<std::mutex> guard(lock_);
        return resumes_;
    }
    /// Until it was resumed or cancelled since `resumes` was counted. Throws where that would have no end.
    void wait(std::uint64_t resumes)
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (resumes_ == resumes) {
            guard.unlock();
            check_wait();
            guard.lock();
            // exit() tells nobody: one has to look.
            resumed_.wait_for(guard, std::chrono::seconds(1), [&] { return resumes_ != resumes; });
        }
    }

    void set_on_cancel(std::unique_ptr<AnyCall> call)
    {
        replace(on_cancel_, std::move(call));
        // Whoever cancels looks for it after it has set the flag, and takes it once.
        if (is_cancelled_)
            call_on_cancel();
    }
    void set_on_resume(std::unique_ptr<AnyCall> call)
    {
        replace(on_resume_, std::move(call));
        if (is_cancelled_)
            (void)take(on_resume_);
    }

    /// The Transfer is gone. While it still begins the handle stays, for a loader that throws to say why.
    void let_go() noexcept
    {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            is_let_go_ = true;
            if (is_starting_)
                return;
        }
        release();
    }
    /// start returns; the sentence is of what was thrown.
    void end_of_start(imgdl_status thrown, const char *sentence) noexcept
    {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            is_starting_ = false;
            if (!is_let_go_)
                return;
        }
        // One that has ended refuses this.
        if (thrown != IMGDL_OK)
            ignore(imgdl_transfer_end(raw_, thrown, sentence));
        release();
    }

  private:
    void count_resume() noexcept
    {
        const std::lock_guard<std::mutex> guard(lock_);
        resumes_++;
        resumed_.notify_all();
    }
    // No lock is held while a function is called or destroyed.
    void replace(std::unique_ptr<AnyCall> &place, std::unique_ptr<AnyCall> call) noexcept
    {
        const std::lock_guard<std::mutex> guard(lock_);
        place.swap(call);
    }
    std::unique_ptr<AnyCall> take(std::unique_ptr<AnyCall> &place) noexcept
    {
        const std::lock_guard<std::mutex> guard(lock_);
        return std::move(place);
    }
    void call_on_cancel() noexcept
    {
        const std::unique_ptr<AnyCall> forgotten = take(on_resume_), call = take(on_cancel_);
        if (call)
            call->call();
    }
    void call_on_resume() noexcept
    {
        std::unique_ptr<AnyCall> call = take(on_resume_);
        if (!call)
            return;
        call->call();
        // It may have been replaced meanwhile, or not be wanted any more.
        const std::lock_guard<std::mutex> guard(lock_);
        if (!on_resume_ && !is_let_go_)
            on_resume_.swap(call);
    }
    void release() noexcept
    {
        imgdl_transfer_release(raw_);
        // They may have what has the Transfer.
        (void)take(on_cancel_);
        (void)take(on_resume_);
    }
    void check_wait() const
    {
        if (std::this_thread::get_id() == thread_)
            throw Error(IMGDL_ERROR_WOULD_DEADLOCK, "the thread that drives all transfers must not wait");
        const imgdl_status status = imgdl_downloader_wait_idle(downloader_.raw(), 0);
        // Of one that was let go of before it began nothing more is known.
        if (status != IMGDL_ERROR_WAIT_TIMEOUT && status != IMGDL_ERROR_INVALID_HANDLE)
            check(status);
    }

    using SharedDownloader = Shared<imgdl_downloader, imgdl_downloader_retain, imgdl_downloader_release>;

    imgdl_transfer *const raw_;
    const SharedDownloader downloader_; // to ask it whether a thread may wait
    const std::thread::id thread_ = std::this_thread::get_id();
    std::atomic<bool> is_cancelled_ = {false};
    std::mutex lock_ = {};
    std::condition_variable resumed_ = {};
    std::uint64_t resumes_ = 0; // that it was cancelled counts, too
    bool is_starting_ = true, is_let_go_ = false;
    std::unique_ptr<AnyCall> on_cancel_ = {}, on_resume_ = {};
};

template <typename Function>
struct Loader;

} // namespace detail

/// A transfer that a loader of yours runs: head, body, end, reported from any thread, one at a time. One that is destroyed
/// before its end fails with IMGDL_ERROR_CONNECTION_LOST. When nobody wants it any more, reports do nothing, and are no
/// errors; it keeps its downloader, so destroy one that is cancelled. end(), fail() and its destructor wait for on_cancel's
/// and on_resume's functions on another thread: hold no lock there that these take. What they refer to may go after that.
class Transfer {
  public:
    /// An empty one.
    Transfer() noexcept = default;
    Transfer(Transfer &&other) noexcept = default;
    Transfer &operator=(Transfer &&other) noexcept
    {
        if (this != &other) {
            reset();
            state_ = std::move(other.state_);
        }
        return *this;
    }
    Transfer(const Transfer &) = delete;
    Transfer &operator=(const Transfer &) = delete;
    ~Transfer() { reset(); }

    /// False for an empty one, as after end().
    explicit operator bool() const noexcept { return state_ != nullptr; }
    /// The head, once, before the body: Content-Length, Content-Type …
    void respond(std::int32_t status, const std::vector<Header> &headers = {})
    {
        const std::vector<imgdl_header> raw = detail::to_raw(headers);
        state().check_report(imgdl_transfer_response(state().raw(), status, raw.data(), raw.size()));
    }
    /// Bytes of the body, copied, a Content-Encoding undone. Waits while the library holds 1 MiB that it cannot pass on, as
    /// while the download is paused. Where Downloader::wait_idle() may not wait, this may not, and throws the same, as
    /// IMGDL_ERROR_WOULD_DEADLOCK in the loader itself and in callbacks of the downloader: use try_send() there.
    void send(Bytes bytes)
    {
        for (;;) {
            const std::uint64_t resumes = state().resumes(); // before the call
            if (state().try_send(bytes))
                return;
            state().wait(resumes);
        }
    }
    /// The same, and never waits. False: nothing of these bytes was taken; they may come again when on_resume is called.
    [[nodiscard]] bool try_send(Bytes bytes) { return state().try_send(bytes); }
    /// This was all. The object is empty then; an end that is refused, as one before the head, leaves it as it was.
    void end() { report_end(IMGDL_OK, nullptr); }
    /// Why it failed: an IMGDL_ERROR_, and a sentence.
    void fail(imgdl_status code, const std::string &message = {})
    {
        const char *sentence = message.empty() ? nullptr : detail::c_string(message, "the message");
        if (code == IMGDL_OK)
            throw Error(IMGDL_ERROR_INVALID_ARGUMENT, "IMGDL_OK is no failure");
        report_end(code, sentence);
    }
    /// Nobody wants it any more.
    bool is_cancelled() const noexcept { return state_ && state_->is_cancelled(); }
    /// function() is called when nobody wants it any more, once, on the thread of the library that drives all transfers; at
    /// once, where that has come. It takes the place of one that was given before. It may destroy the Transfer.
    template <typename Function>
    void on_cancel(Function &&function)
    {
        const auto keeping = shared_state();
        keeping->set_on_cancel(detail::to_any_call(std::forward<Function>(function), "on_cancel"));
    }
    /// function() is called whenever bytes that were refused may come again, likewise; never after the other.
    template <typename Function>
    void on_resume(Function &&function)
    {
        shared_state()->set_on_resume(detail::to_any_call(std::forward<Function>(function), "on_resume"));
    }

  private:
    template <typename Function>
    friend struct detail::Loader;

    explicit Transfer(std::shared_ptr<detail::TransferState> state) noexcept : state_(std::move(state)) {}
    const std::shared_ptr<detail::TransferState> &shared_state() const
    {
        if (!state_)
            throw Error(IMGDL_ERROR_INVALID_HANDLE, "the transfer has ended");
        return state_;
    }
    detail::TransferState &state() const { return *shared_state(); }
    void report_end(imgdl_status code, const char *sentence)
    {
        state().check_report(imgdl_transfer_end(state().raw(), code, sentence));
        reset();
    }
    void reset() noexcept
    {
        if (const auto state = std::exchange(state_, nullptr))
            state->let_go();
    }

    std::shared_ptr<detail::TransferState> state_ = {};
};

namespace detail {

/// A loader where the library can have it.
template <typename Function>
struct Loader {
    Function function;
    imgdl_downloader *downloader; // a ticket, no reference: the downloader has this

    template <typename Given>
    Loader(Given &&given, imgdl_downloader *owner) : function(std::forward<Given>(given)), downloader(owner)
    {
    }
    Loader(const Loader &) = delete;
    Loader &operator=(const Loader &) = delete;

    static void *start(const imgdl_outgoing *request, imgdl_transfer *transfer, void *user) noexcept
    {
        auto *loader = static_cast<Loader *>(user);
        std::shared_ptr<TransferState> state;
        try {
            state = std::make_shared<TransferState>(transfer, loader->downloader);
        } catch (...) {
            ignore(imgdl_transfer_end(transfer, IMGDL_ERROR_OUT_OF_MEMORY, nullptr));
            imgdl_transfer_release(transfer);
            return nullptr;
        }
        try {
            loader->function(*request, Transfer(state));
            state->end_of_start(IMGDL_OK, nullptr);
        } catch (...) {
            tell_thrown(IMGDL_ERROR_INVALID_OPERATION, [&state](imgdl_status code, const char *sentence) {
                state->end_of_start(code, sentence);
            });
        }
        return state.get(); // its Transfer has it; nobody is told of one that is gone
    }
};

} // namespace detail

// ---------------------------------------------------------------------------------------------------------------------
// Requests

/// What to ask for: the fields of imgdl_request, owned. In C++20: Request{.url = "…", .event_mask = IMGDL_EVENT_ALL}.
struct Request {
    std::string url = {};
    imgdl_priority priority = IMGDL_PRIORITY_NORMAL;
    imgdl_request_flags flags = 0;
    /// Of a download with a callback; 0: TERMINAL alone.
    imgdl_event_mask event_mask = 0;
    /// GET without one.
    std::optional<std::string> method = {};
    std::vector<Header> headers = {};
    std::string body = {};
    std::uint64_t max_body_bytes = 0;
    milliseconds total_timeout = milliseconds(0);
    milliseconds partial_interval = milliseconds(0);
    std::optional<DecodeOptions> decode = {};
    Executor executor = {};
    std::optional<std::string> user = {}, password = {};
    milliseconds connect_timeout = milliseconds(0), idle_timeout = milliseconds(0);
    std::uint32_t retry_count = 0;
    milliseconds retry_base = milliseconds(0), retry_max = milliseconds(0);
    std::vector<imgdl_status_range> accepted_statuses = {};
    std::vector<std::string> accepted_types = {};
    std::optional<std::string> ca_file = {}, client_certificate = {}, client_key = {}, client_key_password = {};
    std::optional<std::string> pinned_public_key = {};
    std::optional<std::string> partition = {};
    Hooks hooks = {};
    double scale_factor = 0;
    imgdl_cache_mode cache_mode = IMGDL_CACHE_DEFAULT;
    /// Zero: what is stale never answers; milliseconds::max(): however stale.
    std::optional<milliseconds> max_stale = {};

    /// One more header; for chains.
    Request &header(std::string name, std::string value) &
    {
        headers.push_back({std::move(name), std::move(value)});
        return *this;
    }
    Request header(std::string name, std::string value) &&
    {
        return std::move(header(std::move(name), std::move(value)));
    }

  private:
    friend class Downloader;
    // The C struct, and what it points to besides this object: both must stay where they are during the call.
    struct Lowered {
        imgdl_request raw = {};
        std::vector<imgdl_header> headers = {};
        std::vector<const char *> types = {};

        explicit Lowered(const Request &request)
        {
            using detail::c_string;
            using detail::to_uint32;
            imgdl_request_init(&raw, sizeof raw);
            raw.url = c_string(request.url, "the URL", IMGDL_ERROR_INVALID_URL);
            raw.priority = request.priority;
            raw.flags = request.flags;
            raw.event_mask = request.event_mask;
            raw.method = c_string(request.method, "the method", IMGDL_ERROR_INVALID_HEADER);
            headers = detail::to_raw(request.headers);
            raw.headers = headers.empty() ? nullptr : headers.data();
            raw.header_count = headers.size();
            raw.body = request.body.empty() ? nullptr : request.body.data();
            raw.body_length = request.body.size();
            raw.max_body_bytes = request.max_body_bytes;
            raw.total_timeout_ms = to_uint32(request.total_timeout, "total_timeout");
            raw.partial_interval_ms = to_uint32(request.partial_interval, "partial_interval");
            raw.decode = request.decode ? &*request.decode : nullptr;
            raw.executor = request.executor.raw();
            raw.user = c_string(request.user, "the user");
            raw.password = c_string(request.password, "the password");
            raw.connect_timeout_ms = to_uint32(request.connect_timeout, "connect_timeout");
            raw.idle_timeout_ms = to_uint32(request.idle_timeout, "idle_timeout");
            raw.retry_count = request.retry_count;
            raw.retry_base_ms = to_uint32(request.retry_base, "retry_base");
            raw.retry_max_ms = to_uint32(request.retry_max, "retry_max");
            raw.accepted_statuses = request.accepted_statuses.empty() ? nullptr : request.accepted_statuses.data();
            raw.accepted_status_count = request.accepted_statuses.size();
            for (const std::string &type : request.accepted_types)
                types.push_back(c_string(type, "an accepted type"));
            raw.accepted_types = types.empty() ? nullptr : types.data();
            raw.accepted_type_count = types.size();
            raw.ca_file = c_string(request.ca_file, "ca_file");
            raw.client_certificate = c_string(request.client_certificate, "client_certificate");
            raw.client_key = c_string(request.client_key, "client_key");
            raw.client_key_password = c_string(request.client_key_password, "client_key_password");
            raw.pinned_public_key = c_string(request.pinned_public_key, "pinned_public_key");
            raw.partition = c_string(request.partition, "partition");
            raw.hooks = request.hooks.raw();
            raw.scale_factor = request.scale_factor;
            raw.cache_mode = request.cache_mode;
            raw.max_stale_ms = detail::to_max_stale(request.max_stale);
        }
        Lowered(const Lowered &) = delete;
        Lowered &operator=(const Lowered &) = delete;
    };
};

// ---------------------------------------------------------------------------------------------------------------------
// Downloads

/// One download that runs, or has ended. Destroying it cancels the download; detach() lets it run.
class Token {
  public:
    /// An empty one.
    Token() noexcept = default;
    /// Takes over one reference.
    explicit Token(imgdl_token *owned) noexcept : raw_(owned) {}
    Token(Token &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Token &operator=(Token &&other) noexcept
    {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    Token(const Token &) = delete;
    Token &operator=(const Token &) = delete;
    ~Token() { reset(); }

    imgdl_token *raw() const & noexcept { return raw_; }
    imgdl_token *raw() const && = delete;
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    /// A number that no other download of this process has; 0 for an empty one.
    std::uint64_t id() const noexcept { return imgdl_token_id(raw_); }

    /// The download ends with IMGDL_ERROR_CANCELLED, unless it has ended. Any number of times.
    void cancel() noexcept { detail::ignore(imgdl_token_cancel(raw_)); }
    /// The download goes on without this object, which is empty then.
    void detach() noexcept { imgdl_token_release(std::exchange(raw_, nullptr)); }
    void set_priority(imgdl_priority priority) { detail::check(imgdl_token_set_priority(raw_, priority)); }

    /// Waits for the end, whatever it is: until the callback has returned from its TERMINAL.
    void wait() const { detail::check(imgdl_token_wait(raw_, -1)); }
    /// The same for some time; false when it was over before the download.
    bool wait_for(milliseconds time) const
    {
        const imgdl_status status = imgdl_token_wait(raw_, time.count() > 0 ? time.count() : 0);
        if (status == IMGDL_ERROR_WAIT_TIMEOUT)
            return false;
        detail::check(status);
        return true;
    }
    bool is_done() const noexcept
    {
        imgdl_result result;
        imgdl_result_init(&result, sizeof result);
        return imgdl_token_result(raw_, &result) == IMGDL_OK;
    }
    /// Waits, and gives what came; throws why nothing did. Image, data and head are there without a callback alone.
    Response get() const
    {
        Response response = try_get();
        if (!response)
            throw response.error();
        return response;
    }
    /// Waits; the code is in what it returns, also where waiting is not possible.
    Response try_get() const
    {
        imgdl_status status = imgdl_token_wait(raw_, -1);
        Response response;
        imgdl_result_init(&response.raw_, sizeof response.raw_);
        if (status == IMGDL_OK)
            status = imgdl_token_result(raw_, &response.raw_);
        if (status != IMGDL_OK)
            return Response::refused(status, imgdl_last_error());
        response.token_ = Response::SharedToken(imgdl_token_retain(raw_));
        return response;
    }
    /// Where the time went so far; nothing while it waits. address lives as long as the download.
    std::optional<imgdl_metrics> metrics() const && = delete;
    std::optional<imgdl_metrics> metrics() const &
    {
        imgdl_metrics metrics;
        imgdl_metrics_init(&metrics, sizeof metrics);
        const imgdl_status status = imgdl_token_metrics(raw_, &metrics);
        if (status == IMGDL_ERROR_NOT_READY)
            return std::nullopt;
        detail::check(status);
        return metrics;
    }

  private:
    void reset() noexcept
    {
        if (!raw_)
            return;
        detail::ignore(imgdl_token_cancel(raw_));
        imgdl_token_release(std::exchange(raw_, nullptr));
    }

    imgdl_token *raw_ = nullptr;
};

namespace detail {

/// What waits for a batch's end. The progress function has it, and is destroyed when it has been told everything.
class BatchEnd {
  public:
    void come()
    {
        const std::lock_guard<std::mutex> guard(lock_);
        has_come_ = true;
        changed_.notify_all();
    }
    bool has_come()
    {
        const std::lock_guard<std::mutex> guard(lock_);
        return has_come_;
    }
    void wait()
    {
        std::unique_lock<std::mutex> guard(lock_);
        changed_.wait(guard, [this] { return has_come_; });
    }
    bool wait_for(milliseconds time)
    {
        // Clocks count nanoseconds, of which there are no more than those of 292 years; they do not begin with this call.
        constexpr milliseconds longest = std::chrono::hours(24 * 365 * 100);
        const milliseconds wait = time.count() < 0 ? milliseconds(0) : time < longest ? time : longest;
        std::unique_lock<std::mutex> guard(lock_);
        return changed_.wait_for(guard, wait, [this] { return has_come_; });
    }

  private:
    std::mutex lock_ = {};
    std::condition_variable changed_ = {};
    bool has_come_ = false;
};

template <typename Progress>
struct ProgressWithEnd {
    std::optional<Progress> progress;
    std::shared_ptr<BatchEnd> end;

    ProgressWithEnd(Progress told, std::shared_ptr<BatchEnd> waited) : progress(std::move(told)), end(std::move(waited)) {}
    ProgressWithEnd(const ProgressWithEnd &) = delete;
    ProgressWithEnd &operator=(const ProgressWithEnd &) = delete;
    ~ProgressWithEnd()
    {
        progress.reset();
        end->come();
    }
    void operator()(const imgdl_batch_progress &now) { (*progress)(now); }
};

} // namespace detail

struct BatchOptions {
    /// 0 is IMGDL_DEFAULT_BATCH_WIDTH.
    std::uint32_t max_concurrent = 0;
    /// Of progress.
    Executor executor = {};
    bool keeps_priority = false;
};

/// Many requests with one progress. Destroying it cancels what has not ended; detach() lets it run.
class Batch {
  public:
    Batch() noexcept = default;
    /// One of imgdl.h, of which only its own progress tells when it has ended.
    explicit Batch(imgdl_batch *owned) noexcept : raw_(owned) {}
    Batch(Batch &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), end_(std::move(other.end_)), downloader_(std::move(other.downloader_))
    {
    }
    Batch &operator=(Batch &&other) noexcept
    {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, nullptr);
            end_ = std::move(other.end_);
            downloader_ = std::move(other.downloader_);
        }
        return *this;
    }
    Batch(const Batch &) = delete;
    Batch &operator=(const Batch &) = delete;
    ~Batch() { reset(); }

    imgdl_batch *raw() const & noexcept { return raw_; }
    imgdl_batch *raw() const && = delete;
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    void cancel() noexcept { detail::ignore(imgdl_batch_cancel(raw_)); }
    /// The batch goes on without this object, which is empty then.
    void detach() noexcept
    {
        imgdl_batch_release(std::exchange(raw_, nullptr));
        let_go();
    }
    /// Waits until the last progress has been told and its function is destroyed. An empty one has ended. Where
    /// Downloader::wait_idle() may not wait, this may not, and throws the same: IMGDL_ERROR_WOULD_DEADLOCK on a thread of the
    /// library, inside a callback or destructor of the downloader, and on the thread of a pumped executor that downloads of it
    /// are outstanding on; IMGDL_ERROR_SHUT_DOWN once exit() has begun; IMGDL_ERROR_FORKED. What has ended is waited for
    /// everywhere. Throws IMGDL_ERROR_INVALID_OPERATION for one that prefetch() has not made.
    void wait() const
    {
        if (has_to_wait())
            end_->wait();
    }
    /// The same for some time; false when it was over before the batch.
    bool wait_for(milliseconds time) const { return !has_to_wait() || end_->wait_for(time); }
    void set_paused(bool paused) { detail::check(imgdl_batch_set_paused(raw_, paused)); }
    void set_priority(imgdl_priority priority) { detail::check(imgdl_batch_set_priority(raw_, priority)); }
    imgdl_batch_progress progress() const
    {
        imgdl_batch_progress progress = {};
        progress.struct_size = sizeof progress;
        detail::check(imgdl_batch_progress_get(raw_, &progress));
        return progress;
    }

  private:
    using SharedDownloader = detail::Shared<imgdl_downloader, imgdl_downloader_retain, imgdl_downloader_release>;

    // False for an empty one, and for one that has ended. Throws where waiting would have no end: the library knows, since it
    // counts the batch among what its downloader is not idle for.
    bool has_to_wait() const
    {
        if (raw_ && !end_)
            throw Error(IMGDL_ERROR_INVALID_OPERATION, "only a batch of Downloader::prefetch can be waited for");
        if (!raw_ || end_->has_come())
            return false;
        const imgdl_status status = imgdl_downloader_wait_idle(downloader_.raw(), 0);
        if (status != IMGDL_ERROR_WAIT_TIMEOUT)
            detail::check(status);
        return true;
    }
    void let_go() noexcept
    {
        end_.reset();
        downloader_.reset();
    }
    void reset() noexcept
    {
        if (!raw_)
            return;
        detail::ignore(imgdl_batch_cancel(raw_));
        imgdl_batch_release(std::exchange(raw_, nullptr));
        let_go();
    }

    friend class Downloader;
    imgdl_batch *raw_ = nullptr;
    std::shared_ptr<detail::BatchEnd> end_ = {};
    SharedDownloader downloader_ = {}; // to ask it whether this thread may wait
};

// ---------------------------------------------------------------------------------------------------------------------
// The downloader

/// The fields of imgdl_config, owned.
struct Config {
    std::uint32_t max_concurrent = 0;
    imgdl_order order = IMGDL_ORDER_FIFO;
    std::uint32_t decode_threads = 0;
    milliseconds connect_timeout = milliseconds(0), idle_timeout = milliseconds(0);
    std::uint32_t max_redirects = 0;
    std::optional<std::string> user_agent = {}, ca_file = {};
    Executor executor = {};
    imgdl_config_flags flags = 0;
    std::uint32_t max_per_host = 0;
    std::uint64_t memory_budget = 0;
    std::optional<std::string> proxy = {}, user = {}, password = {};
    std::optional<std::string> client_certificate = {}, client_key = {}, client_key_password = {};
    std::optional<std::string> pinned_public_key = {}, cookie_file = {};
    Hooks hooks = {};
    std::uint32_t retry_count = 0;
    milliseconds retry_base = milliseconds(0), retry_max = milliseconds(0), failure_ttl = milliseconds(0);
    std::vector<imgdl_status_range> accepted_statuses = {};
    std::vector<std::string> accepted_types = {};
    double progress_interval = 0;
    /// Used only where cache_mode, here or in a Request, says so: IMGDL_CACHE_USE. Without it nothing is read or stored.
    Cache cache = {};
    imgdl_cache_mode cache_mode = IMGDL_CACHE_DEFAULT;
    std::optional<std::string> dns_servers = {}, crl_file = {}, nat64_prefixes = {}, partition = {};
    /// As in Request.
    std::optional<milliseconds> max_stale = {};

  private:
    friend class Downloader;
    struct Lowered {
        imgdl_config raw = {};
        std::vector<const char *> types = {};

        explicit Lowered(const Config &config)
        {
            using detail::c_string;
            using detail::to_uint32;
            imgdl_config_init(&raw, sizeof raw);
            raw.max_concurrent = config.max_concurrent;
            raw.order = config.order;
            raw.decode_threads = config.decode_threads;
            raw.connect_timeout_ms = to_uint32(config.connect_timeout, "connect_timeout");
            raw.idle_timeout_ms = to_uint32(config.idle_timeout, "idle_timeout");
            raw.max_redirects = config.max_redirects;
            raw.user_agent = c_string(config.user_agent, "user_agent", IMGDL_ERROR_INVALID_HEADER);
            raw.ca_file = c_string(config.ca_file, "ca_file");
            raw.executor = config.executor.raw();
            raw.flags = config.flags;
            raw.max_per_host = config.max_per_host;
            raw.memory_budget = config.memory_budget;
            raw.proxy = c_string(config.proxy, "the proxy", IMGDL_ERROR_INVALID_URL);
            raw.user = c_string(config.user, "the user");
            raw.password = c_string(config.password, "the password");
            raw.client_certificate = c_string(config.client_certificate, "client_certificate");
            raw.client_key = c_string(config.client_key, "client_key");
            raw.client_key_password = c_string(config.client_key_password, "client_key_password");
            raw.pinned_public_key = c_string(config.pinned_public_key, "pinned_public_key");
            raw.cookie_file = c_string(config.cookie_file, "cookie_file");
            raw.hooks = config.hooks.raw();
            raw.retry_count = config.retry_count;
            raw.retry_base_ms = to_uint32(config.retry_base, "retry_base");
            raw.retry_max_ms = to_uint32(config.retry_max, "retry_max");
            raw.failure_ttl_ms = to_uint32(config.failure_ttl, "failure_ttl");
            raw.accepted_statuses = config.accepted_statuses.empty() ? nullptr : config.accepted_statuses.data();
            raw.accepted_status_count = config.accepted_statuses.size();
            for (const std::string &type : config.accepted_types)
                types.push_back(c_string(type, "an accepted type"));
            raw.accepted_types = types.empty() ? nullptr : types.data();
            raw.accepted_type_count = types.size();
            raw.progress_interval = config.progress_interval;
            raw.cache = config.cache.raw();
            raw.cache_mode = config.cache_mode;
            raw.dns_servers = c_string(config.dns_servers, "dns_servers");
            raw.crl_file = c_string(config.crl_file, "crl_file");
            raw.nat64_prefixes = c_string(config.nat64_prefixes, "nat64_prefixes");
            raw.partition = c_string(config.partition, "partition");
            raw.max_stale_ms = detail::to_max_stale(config.max_stale);
        }
        Lowered(const Lowered &) = delete;
        Lowered &operator=(const Lowered &) = delete;
    };
};

/// Queue, connections, threads: make one and keep it. Destroying it cancels what runs and waits for the last callback,
/// except inside a callback, of whatever downloader, and where it would wait for the calling thread.
class Downloader {
  public:
    explicit Downloader(const Config &config = {})
    {
        const Config::Lowered lowered(config);
        detail::check(imgdl_downloader_create(&lowered.raw, &raw_));
    }
    /// The one that the process shares; destroying this object cancels nothing and waits for nothing.
    static Downloader shared()
    {
        imgdl_downloader *raw = nullptr;
        detail::check(imgdl_downloader_shared(&raw));
        return Downloader(raw, true);
    }
    Downloader(Downloader &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), is_shared_(other.is_shared_)
    {
    }
    Downloader &operator=(Downloader &&other) noexcept
    {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, nullptr);
            is_shared_ = other.is_shared_;
        }
        return *this;
    }
    Downloader(const Downloader &) = delete;
    Downloader &operator=(const Downloader &) = delete;
    ~Downloader() { reset(); }

    /// For functions of imgdl.h.
    imgdl_downloader *raw() const & noexcept { return raw_; }
    imgdl_downloader *raw() const && = delete;

    // ---- Waiting for one

    /// Downloads, waits, and throws where it failed.
    Response get(const Request &request) { return download(request).get(); }
    template <typename Url, typename = detail::IfUrl<Url>>
    Response get(const Url &url)
    {
        return download(url).get();
    }
    /// Downloads and waits; the code is in what it returns, also where the request itself was refused.
    Response try_get(const Request &request)
    {
        try {
            return download(request).try_get();
        } catch (const Error &error) {
            return Response::refused(error.code(), error.what());
        }
    }
    template <typename Url, typename = detail::IfUrl<Url>>
    Response try_get(const Url &url)
    {
        return try_get(to_request(url));
    }

    // ---- Many at a time

    /// Without a callback: the answer waits in the token.
    [[nodiscard]] Token download(const Request &request)
    {
        const Request::Lowered lowered(request);
        return start(lowered.raw);
    }
    template <typename Url, typename = detail::IfUrl<Url>>
    [[nodiscard]] Token download(const Url &url)
    {
        return download(to_request(url));
    }

    /// function(const imgdl::Event &) is told the events of request.event_mask, in order, on request.executor; always
    /// TERMINAL, which has the image and the body: what get() of the token gives has neither.
    template <typename Function>
    [[nodiscard]] Token download(const Request &request, Function &&function)
    {
        using Stored = std::decay_t<Function>;
        Request::Lowered lowered(request);
        auto stored = detail::store(std::forward<Function>(function), "the callback");
        lowered.raw.callback = &deliver<Stored>;
        lowered.raw.destructor = &detail::destroy<Stored>;
        lowered.raw.user_data = stored.release(); // the library's from here on, also where it refuses the request
        return start(lowered.raw);
    }
    template <typename Url, typename Function, typename = detail::IfUrl<Url>>
    [[nodiscard]] Token download(const Url &url, Function &&function)
    {
        return download(to_request(url), std::forward<Function>(function));
    }

    /// A batch that tells nothing: wait() for it.
    [[nodiscard]] Batch prefetch(const std::vector<Request> &requests, const BatchOptions &options = {})
    {
        return prefetch(requests, options, [](const imgdl_batch_progress &) {});
    }
    /// progress(const imgdl_batch_progress &) is told after each end, never two at a time.
    template <typename Progress, typename = detail::IfProgress<Progress>>
    [[nodiscard]] Batch prefetch(const std::vector<Request> &requests, Progress &&progress)
    {
        return prefetch(requests, BatchOptions(), std::forward<Progress>(progress));
    }
    template <typename Progress>
    [[nodiscard]] Batch prefetch(const std::vector<Request> &requests, const BatchOptions &options, Progress &&progress)
    {
        return start_batch<NoFunction>(requests, options, std::forward<Progress>(progress), nullptr);
    }
    /// The same with function(std::size_t index, const imgdl::Event &) for the events of each: in order for one,
    /// for several at the same time where they name different executors.
    template <typename Progress, typename Function, typename = detail::IfProgress<Progress>>
    [[nodiscard]] Batch prefetch(const std::vector<Request> &requests, Progress &&progress, Function &&function)
    {
        return prefetch(requests, BatchOptions(), std::forward<Progress>(progress), std::forward<Function>(function));
    }
    template <typename Progress, typename Function>
    [[nodiscard]] Batch prefetch(const std::vector<Request> &requests, const BatchOptions &options, Progress &&progress,
                                 Function &&function)
    {
        using Stored = std::decay_t<Function>;
        auto stored = std::make_shared<Stored>(std::forward<Function>(function));
        detail::check_function(*stored, "the callback");
        return start_batch<Stored>(requests, options, std::forward<Progress>(progress), std::move(stored));
    }

    // ---- What can be changed while it lives

    /// A header of every later request; without a value it is taken out, also a default one.
    void set_header(const std::string &name, const std::optional<std::string> &value)
    {
        detail::check(imgdl_downloader_set_header(raw_, detail::c_string(name, "a header", IMGDL_ERROR_INVALID_HEADER),
                                                  detail::c_string(value, "a header", IMGDL_ERROR_INVALID_HEADER)));
    }
    /// NULL is no value: std::nullopt takes a header out.
    template <typename Null, typename = std::enable_if_t<std::is_null_pointer_v<Null>>>
    void set_header(const std::string &, Null) = delete;
    std::optional<std::string> header(const std::string &name) const
    {
        const char *c_name = detail::c_string(name, "a header", IMGDL_ERROR_INVALID_HEADER);
        std::string value(64, '\0');
        for (;;) {
            std::size_t length = 0;
            const imgdl_status status = imgdl_downloader_get_header(raw_, c_name, &value[0], value.size(), &length);
            if (status == IMGDL_ERROR_NOT_READY)
                return std::nullopt;
            detail::check(status);
            const bool is_whole = length < value.size();
            value.resize(is_whole ? length : length + 1);
            if (is_whole)
                return value;
        }
    }
    void set_max_concurrent(std::uint32_t count) { detail::check(imgdl_downloader_set_max_concurrent(raw_, count)); }
    void set_max_per_host(std::uint32_t count) { detail::check(imgdl_downloader_set_max_per_host(raw_, count)); }
    std::uint32_t max_concurrent() const noexcept { return imgdl_downloader_max_concurrent(raw_); }
    void set_order(imgdl_order order) { detail::check(imgdl_downloader_set_order(raw_, order)); }
    void set_suspended(bool suspended) { detail::check(imgdl_downloader_set_suspended(raw_, suspended)); }
    bool is_suspended() const noexcept { return imgdl_downloader_is_suspended(raw_) != 0; }
    void enter_background(milliseconds grace)
    {
        detail::check(imgdl_downloader_enter_background(raw_, detail::to_uint32(grace, "grace")));
    }
    void enter_foreground() { detail::check(imgdl_downloader_enter_foreground(raw_)); }
    void network_changed() { detail::check(imgdl_downloader_network_changed(raw_)); }
    void invalidate(bool cancels) { detail::check(imgdl_downloader_invalidate(raw_, cancels)); }
    void reconfigure(const Config &config)
    {
        const Config::Lowered lowered(config);
        detail::check(imgdl_downloader_reconfigure(raw_, &lowered.raw));
    }
    void cancel_all() { detail::check(imgdl_downloader_cancel_all(raw_)); }
    std::uint64_t current_count() const noexcept { return imgdl_downloader_current_count(raw_); }
    /// Waits until every download has ended and its callback is destroyed.
    void wait_idle() { detail::check(imgdl_downloader_wait_idle(raw_, -1)); }
    /// The same for some time; false when it was over before.
    bool wait_idle_for(milliseconds time)
    {
        const imgdl_status status = imgdl_downloader_wait_idle(raw_, time.count() > 0 ? time.count() : 0);
        if (status == IMGDL_ERROR_WAIT_TIMEOUT)
            return false;
        detail::check(status);
        return true;
    }
    /// Takes no more requests and ends; done() comes last, on a thread of the library. See imgdl_downloader_shutdown.
    template <typename Done>
    void shutdown(imgdl_shutdown_mode mode, Done &&done)
    {
        using Stored = std::decay_t<Done>;
        auto stored = detail::store(std::forward<Done>(done), "done");
        const auto call = [](void *function) noexcept {
            const std::unique_ptr<Stored> owned(static_cast<Stored *>(function));
            (*owned)();
        };
        detail::check(imgdl_downloader_shutdown(raw_, mode, call, stored.get()));
        (void)stored.release();
    }
    /// Lets what runs run to its end without this object, which is empty then. A Batch keeps the downloader while it lives,
    /// and so does a Transfer.
    void detach() noexcept { imgdl_downloader_release(std::exchange(raw_, nullptr)); }

    /// observer(const imgdl_observation &) is told of each transfer, on the thread that drives them: be quick.
    template <typename Function>
    void set_observer(Function &&observer)
    {
        using Stored = std::decay_t<Function>;
        auto stored = detail::store(std::forward<Function>(observer), "the observer");
        detail::check(imgdl_downloader_set_observer(raw_, &detail::call<imgdl_observation, Stored>, stored.release(),
                                                    &detail::destroy<Stored>));
    }
    void clear_observer() { detail::check(imgdl_downloader_set_observer(raw_, nullptr, nullptr, nullptr)); }

    /// loader(const imgdl_outgoing &, imgdl::Transfer) loads the URLs of a scheme, as "app" for app://…, or "https" in place of
    /// the built-in one: see imgdl_transport_table. It begins a transfer, on the thread of the library that drives all of
    /// them: it must not wait, and moves the Transfer to whoever is to report. One that throws has failed the transfer, with
    /// the code of an Error, or IMGDL_ERROR_INVALID_OPERATION, and with what(); where the Transfer had been moved away before,
    /// it has only returned. It is destroyed when it was taken out, or the downloader has ended, and no transfer uses it.
    template <typename Function>
    void register_transport(const std::string &scheme, Function &&loader)
    {
        const char *name = detail::c_string(scheme, "the scheme");
        using Stored = detail::Loader<std::decay_t<Function>>;
        auto stored = std::make_unique<Stored>(std::forward<Function>(loader), raw_);
        detail::check_function(stored->function, "the loader");
        imgdl_transport_table table = {};
        table.struct_size = sizeof table;
        table.start = &Stored::start;
        table.cancel = &detail::TransferState::cancel;
        table.resume = &detail::TransferState::resume;
        table.user_data = stored.get();
        table.destructor = &detail::destroy<Stored>;
        detail::check(imgdl_transport_register(raw_, name, &table));
        (void)stored.release(); // the table's destructor has it now
    }
    /// Takes the loader out; what it loads goes on. http and https are the built-in ones again.
    void unregister_transport(const std::string &scheme)
    {
        detail::check(imgdl_transport_register(raw_, detail::c_string(scheme, "the scheme"), nullptr));
    }
    imgdl_stats stats() const
    {
        imgdl_stats stats;
        imgdl_stats_init(&stats, sizeof stats);
        detail::check(imgdl_downloader_stats(raw_, &stats));
        return stats;
    }

  private:
    Downloader(imgdl_downloader *owned, bool is_shared) noexcept : raw_(owned), is_shared_(is_shared) {}

    static Request to_request(std::string_view url)
    {
        Request request;
        request.url = url;
        return request;
    }
    template <typename Stored>
    static void deliver(const imgdl_event *event, void *function) noexcept
    {
        (*static_cast<Stored *>(function))(Event(*event));
    }
    struct NoFunction {};
    template <typename Stored>
    struct Member {
        std::shared_ptr<Stored> function;
        std::size_t index;
    };
    template <typename Stored>
    static void deliver_to_member(const imgdl_event *event, void *member) noexcept
    {
        const auto *known = static_cast<Member<Stored> *>(member);
        (*known->function)(known->index, Event(*event));
    }
    Token start(const imgdl_request &request)
    {
        imgdl_token *token = nullptr;
        detail::check(imgdl_download(raw_, &request, &token));
        return Token(token);
    }
    template <typename Stored, typename Progress>
    Batch start_batch(const std::vector<Request> &requests, const BatchOptions &options, Progress &&progress,
                      std::shared_ptr<Stored> function)
    {
        using StoredProgress = detail::ProgressWithEnd<std::decay_t<Progress>>;
        std::deque<Request::Lowered> lowered; // keeps each where it is
        std::vector<std::unique_ptr<Member<Stored>>> members;
        std::vector<imgdl_request> raws;
        raws.reserve(requests.size());
        for (std::size_t i = 0; i < requests.size(); i++) {
            raws.push_back(lowered.emplace_back(requests[i]).raw);
            if constexpr (!std::is_same_v<Stored, NoFunction>) {
                members.push_back(std::make_unique<Member<Stored>>(Member<Stored>{function, i}));
                raws.back().callback = &deliver_to_member<Stored>;
                raws.back().destructor = &detail::destroy<Member<Stored>>;
                raws.back().user_data = members.back().get();
            }
        }
        const auto end = std::make_shared<detail::BatchEnd>();
        auto stored = std::make_unique<StoredProgress>(std::forward<Progress>(progress), end);
        detail::check_function(*stored->progress, "progress");
        imgdl_batch_options raw;
        imgdl_batch_options_init(&raw, sizeof raw);
        raw.max_concurrent = options.max_concurrent;
        raw.executor = options.executor.raw();
        raw.keeps_priority = options.keeps_priority;
        raw.progress = &detail::call<imgdl_batch_progress, StoredProgress>;
        raw.destructor = &detail::destroy<StoredProgress>;
        raw.user_data = stored.release(); // from here on nothing throws until the library has it all
        for (auto &member : members)
            (void)member.release();
        imgdl_batch *batch = nullptr;
        detail::check(imgdl_downloader_prefetch(raw_, raws.data(), raws.size(), &raw, &batch));
        Batch made(batch);
        made.end_ = end;
        made.downloader_ = Batch::SharedDownloader(imgdl_downloader_retain(raw_));
        return made;
    }
    void reset() noexcept
    {
        imgdl_downloader *const owned = std::exchange(raw_, nullptr);
        if (owned && is_shared_)
            imgdl_downloader_release(owned);
        else if (owned)
            detail::ignore(imgdl_downloader_destroy(owned));
    }

    imgdl_downloader *raw_ = nullptr;
    bool is_shared_ = false;
};

/// The time in microseconds that a part q (0 to 1) of what a histogram of imgdl_stats counts stayed below; 0 where there is
/// nothing.
inline double quantile(const imgdl_histogram &histogram, double q) noexcept { return imgdl_histogram_quantile(&histogram, q); }

/// The version of the library that is loaded, in the form of IMGDL_VERSION_NUMBER.
inline std::uint32_t version() noexcept { return imgdl_version(); }

/// The same as text: "1.1.0".
inline const char *version_string() noexcept { return imgdl_version_string(); }

/// What the library is to do without, each level with all that stand before it.
enum class TrimLevel : std::uint32_t {
    unused = IMGDL_TRIM_UNUSED,
    connections = IMGDL_TRIM_CONNECTIONS,
    caches = IMGDL_TRIM_CACHES
};

/// Gives memory back to the system, for every downloader and cache of the process: how many bytes, see imgdl_trim.
inline std::uint64_t trim(TrimLevel level) noexcept { return imgdl_trim(static_cast<imgdl_trim_level>(level)); }

} // namespace imgdl

#endif

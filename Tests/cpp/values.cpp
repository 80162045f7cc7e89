// Decoding, images, errors, and what has to be true of the types themselves.
#include <type_traits>

#include "harness.hpp"
#include "origin.hpp"

using imgdl::Bytes;

static_assert(!std::is_copy_constructible_v<imgdl::Downloader>);
static_assert(std::is_nothrow_move_constructible_v<imgdl::Downloader>);
static_assert(!std::is_copy_constructible_v<imgdl::Token> && std::is_nothrow_move_assignable_v<imgdl::Token>);
static_assert(!std::is_copy_constructible_v<imgdl::Decoder> && std::is_nothrow_move_assignable_v<imgdl::Batch>);
static_assert(!std::is_copy_constructible_v<imgdl::Coder> && std::is_nothrow_move_assignable_v<imgdl::Coder>);
static_assert(!std::is_copy_constructible_v<imgdl::Transfer> && std::is_nothrow_move_assignable_v<imgdl::Transfer>);
static_assert(std::is_nothrow_copy_constructible_v<imgdl::Image> && std::is_nothrow_move_constructible_v<imgdl::Image>);
static_assert(std::is_nothrow_copy_constructible_v<imgdl::Error>, "what is thrown is copied without throwing");
static_assert(std::is_aggregate_v<imgdl::Request> && std::is_aggregate_v<imgdl::Config>);
#if __cplusplus >= 202002L
static const imgdl::Request designated = {.url = "https://example.org/", .event_mask = IMGDL_EVENT_ALL};
#endif

TEST("the library is the one of the header")
{
    CHECK(imgdl::version() == IMGDL_VERSION_NUMBER);
}

TEST("a picture in memory is decoded, scaled as asked")
{
    const std::string file = origin::read_picture("baseline.jpg");
    const imgdl::Image whole = imgdl::decode(Bytes(file));
    CHECK(whole && whole.is_complete() && whole.format() == IMGDL_FORMAT_JPEG && whole.frame_count() == 1);
    imgdl::DecodeOptions options;
    options.target_width = 20;
    options.pixel_format = IMGDL_PIXEL_FORMAT_RGB8;
    const imgdl::Image small = imgdl::decode(Bytes(file), options);
    CHECK(small.width() == 20 && small.pixel_format() == IMGDL_PIXEL_FORMAT_RGB8 && small.stride() >= 60);
    CHECK(small.row(1) == small.pixels() + small.stride());
}

TEST("a cut picture is an Error with the pixels that could be had, or a code with them")
{
    const std::string file = origin::read_picture("baseline.jpg").substr(0, 3000);
    imgdl::DecodeOptions options;
    options.flags = IMGDL_DECODE_SALVAGE;
    const imgdl::Error error = harness::thrown_by([&] { imgdl::decode(Bytes(file), options); });
    CHECK_CODE(error.code(), IMGDL_ERROR_TRUNCATED);
    CHECK(std::string(error.name()) == "IMGDL_ERROR_TRUNCATED" && error.what()[0]);
    CHECK(error.salvaged() && !error.salvaged().is_complete());
    const imgdl::Decoded decoded = imgdl::try_decode(Bytes(file), options);
    CHECK(!decoded && decoded.code == IMGDL_ERROR_TRUNCATED && decoded.image && !decoded.message.empty());
    CHECK(!imgdl::try_decode(Bytes()).image);
}

TEST("pieces give what the whole gives, and the picture so far")
{
    const std::string file = origin::read_picture("opaque.png");
    imgdl::Decoder decoder;
    CHECK(!decoder.info() && !decoder.partial());
    decoder.feed(Bytes(std::string_view(file).substr(0, file.size() / 2)));
    CHECK(decoder.info() && decoder.info()->format == IMGDL_FORMAT_PNG);
    imgdl::Decoder moved = std::move(decoder);
    CHECK(moved.partial() && !moved.partial());
    moved.feed(Bytes(std::string_view(file).substr(file.size() / 2)));
    CHECK(moved.finish().is_complete());
    CHECK_CODE(harness::thrown_by([] { imgdl::Decoder().finish(); }).code(), IMGDL_ERROR_BAD_IMAGE_DATA);
}

TEST("copies of an image are references, and the last one frees it")
{
    const std::uint8_t pixels[16] = {1, 2, 3, 255, 4, 5, 6, 255};
    imgdl::Image kept;
    CHECK(!kept && kept.width() == 0 && !kept.pixels());
    {
        const imgdl::Image image = imgdl::Image::from_pixels(2, 2, IMGDL_PIXEL_FORMAT_RGBA8, pixels, 8);
        kept = image;
        CHECK(kept.raw() == image.raw() && kept.pixels()[4] == 4);
    }
    CHECK(kept.width() == 2);
    const imgdl::Image moved = std::move(kept);
    imgdl_image *const raw = moved.raw();
    CHECK(moved.frame(0).height() == 2);
    CHECK_CODE(harness::thrown_by([&] { (void)moved.frame(7); }).code(), IMGDL_ERROR_INVALID_ARGUMENT);
    imgdl::Image(moved).reset();
    CHECK(imgdl_image_width(raw) == 2);
    imgdl::Image last = moved;
    imgdl_image_release(last.release());
    CHECK(imgdl_image_width(raw) == 2);
    CHECK_CODE(harness::thrown_by([&] {
                   imgdl::Image::from_pixels(2, 2, IMGDL_PIXEL_FORMAT_RGBA8, pixels, 1);
               }).code(), IMGDL_ERROR_INVALID_ARGUMENT);
}

TEST("the executor without a thread is the one of the header")
{
    const imgdl::Executor executor = imgdl::Executor::immediate();
    CHECK(executor.raw() == IMGDL_EXECUTOR_INLINE);
}

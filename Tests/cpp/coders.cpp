// Codecs of the host's, written in C++: what they decode, how they fail, and how long their functions live.
#include <atomic>
#include <future>
#include <memory>
#include <new>

#include "harness.hpp"
#include "origin.hpp"

namespace {

// A made-up format: "GRAYTOY", width and height in one byte each, then one byte of gray for each pixel.
constexpr std::size_t head_size = 9;
const std::string name_of_format = "GRAYTOY";

std::string toy(unsigned char width, unsigned char height)
{
    std::string file = name_of_format;
    file += static_cast<char>(width);
    file += static_cast<char>(height);
    for (int i = 0; i < width * height; i++)
        file += static_cast<char>(i % 251);
    return file;
}

// Throws whatever it is told, where it is told.
struct Faults {
    std::string step = {};
    std::function<void()> raise = {};

    void at(const std::string &here) const
    {
        if (here == step)
            raise();
    }
};

class ToyDecoder : public imgdl::PictureDecoder {
  public:
    explicit ToyDecoder(const Faults &faults) : faults_(faults) {}

    void feed(imgdl::Bytes bytes) override
    {
        faults_.at("feed");
        file_ += bytes.text();
    }
    std::optional<imgdl_image_info> info() override
    {
        faults_.at("info");
        if (file_.size() < head_size)
            return std::nullopt;
        return imgdl::ImageInfo(width(), height());
    }
    imgdl::Image partial() override
    {
        faults_.at("partial");
        if (file_.size() <= head_size || file_.size() == shown_)
            return {};
        shown_ = file_.size();
        return picture();
    }
    imgdl::Image finish() override
    {
        faults_.at("finish");
        if (file_.size() < head_size + width() * height())
            throw imgdl::Error(IMGDL_ERROR_TRUNCATED, "");
        return picture();
    }

  private:
    std::uint32_t width() const { return static_cast<unsigned char>(file_[7]); }
    std::uint32_t height() const { return static_cast<unsigned char>(file_[8]); }
    imgdl::Image picture() const
    {
        std::vector<std::uint8_t> pixels(width() * height() * 4);
        for (std::size_t i = 0; i < width() * height() && head_size + i < file_.size(); i++) {
            const auto gray = static_cast<std::uint8_t>(file_[head_size + i]);
            pixels[4 * i] = pixels[4 * i + 1] = pixels[4 * i + 2] = gray;
            pixels[4 * i + 3] = 255;
        }
        return imgdl::Image::from_pixels(width(), height(), IMGDL_PIXEL_FORMAT_RGBA8, pixels.data(), width() * 4);
    }

    const Faults &faults_;
    std::string file_ = {};
    std::size_t shown_ = 0;
};

imgdl::CoderFunctions toy_functions(std::shared_ptr<const Faults> faults = std::make_shared<Faults>())
{
    imgdl::CoderFunctions functions;
    functions.can_decode = [faults](imgdl::Bytes prefix) -> std::optional<bool> {
        faults->at("can_decode");
        if (prefix.size() >= name_of_format.size())
            return prefix.text().substr(0, name_of_format.size()) == name_of_format;
        return prefix.text() == name_of_format.substr(0, prefix.size()) ? std::nullopt : std::optional<bool>(false);
    };
    functions.decoder = [faults](const imgdl_decode_options &) {
        faults->at("decoder");
        return std::make_unique<ToyDecoder>(*faults);
    };
    return functions;
}

bool is_toy(const imgdl::Image &image)
{
    return image.is_complete() && image.format() == IMGDL_FORMAT_OTHER && image.width() == 20 && image.height() == 10 &&
           image.row(1)[4] == 21 && image.row(9)[3] == 255;
}

imgdl_status code_of_decoding(const std::string &file) { return imgdl::try_decode(imgdl::Bytes(file)).code; }

} // namespace

TEST("a codec decodes what is downloaded, and shows it before it is whole")
{
    const imgdl::Coder coder(toy_functions());
    origin::serve("picture.toy", toy(20, 10));
    imgdl::Request request;
    request.url = origin::picture("picture.toy?type=image/x-toy&hold_after=100&gate=toy");
    request.event_mask = IMGDL_EVENT_ALL;
    std::promise<void> shown;
    std::atomic<int> partials{0};
    imgdl::Image whole;
    std::uint32_t width = 0;
    imgdl::Downloader downloader;
    const imgdl::Token token = downloader.download(request, [&](const imgdl::Event &event) {
        if (event.kind() == IMGDL_EVENT_HEADER)
            width = event.info()->width;
        const imgdl::Image image = event.image();
        if (event.kind() == IMGDL_EVENT_PARTIAL && image.row(1)[4] == 21 && partials++ == 0)
            shown.set_value();
        if (event.is_terminal())
            whole = image;
    });
    shown.get_future().wait();
    CHECK(!token.is_done());
    origin::open_gate("toy");
    token.wait();
    CHECK(is_toy(whole) && width == 20);
}

TEST("a codec decodes what comes in pieces, and is scaled as any other")
{
    imgdl::Coder coder(toy_functions());
    const std::string file = toy(20, 10);
    imgdl::Decoder decoder;
    for (std::size_t i = 0; i < file.size(); i++) {
        CHECK(decoder.info().has_value() == (i >= head_size));
        decoder.feed(imgdl::Bytes(&file[i], 1));
        CHECK(static_cast<bool>(decoder.partial()) == (i >= head_size));
    }
    CHECK(is_toy(decoder.finish()));
    imgdl::DecodeOptions options;
    options.target_width = 5;
    options.pixel_format = IMGDL_PIXEL_FORMAT_RGB8;
    const imgdl::Image small = imgdl::decode(imgdl::Bytes(file), options);
    CHECK(small.width() == 5 && small.height() == 3 && small.pixel_format() == IMGDL_PIXEL_FORMAT_RGB8);
    CHECK_CODE(code_of_decoding(file.substr(0, 50)), IMGDL_ERROR_TRUNCATED);
    coder.reset();
    CHECK_CODE(code_of_decoding(file), IMGDL_ERROR_BAD_IMAGE_DATA);
}

TEST("a codec that throws fails its picture at each step, with the code that it says")
{
    const std::pair<std::function<void()>, std::string> throws[] = {
        {[] { throw imgdl::Error(IMGDL_ERROR_TRUNCATED, "cut"); }, "IMGDL_ERROR_TRUNCATED"},
        {[] { throw std::bad_alloc(); }, "IMGDL_ERROR_OUT_OF_MEMORY"},
        {[] { throw std::runtime_error("broken"); }, "IMGDL_ERROR_INTERNAL"},
        {[] { throw imgdl::Error(IMGDL_OK, "nothing"); }, "IMGDL_ERROR_INTERNAL"},
        {[] { throw 7; }, "IMGDL_ERROR_INTERNAL"}};
    origin::serve("faulty.toy", toy(20, 10));
    imgdl::Downloader downloader;
    int count = 0;
    for (const char *step : {"decoder", "feed", "info", "finish"}) {
        for (const auto &[raise, name] : throws) {
            const auto faults = std::make_shared<Faults>(Faults{step, raise});
            const imgdl::Coder coder(toy_functions(faults));
            CHECK(imgdl_error_name(code_of_decoding(toy(20, 10))) == name);
            const auto response = downloader.try_get(origin::picture("faulty.toy?type=image/x-toy&n=" + std::to_string(count++)));
            CHECK(imgdl_error_name(response.code()) == name);
        }
    }
    // No picture of this one, and no picture yet of the other.
    const auto mute = std::make_shared<Faults>(Faults{"can_decode", throws[2].first});
    const imgdl::Coder coder(toy_functions(mute));
    CHECK_CODE(code_of_decoding(toy(20, 10)), IMGDL_ERROR_BAD_IMAGE_DATA);
}

TEST("a codec that throws instead of a partial image has none, and fails nothing")
{
    const auto faults = std::make_shared<Faults>(
        Faults{"partial", [] { throw imgdl::Error(IMGDL_ERROR_BAD_IMAGE_DATA, ""); }});
    const imgdl::Coder coder(toy_functions(faults));
    const std::string file = toy(20, 10);
    imgdl::Decoder decoder;
    decoder.feed(imgdl::Bytes(file));
    CHECK(decoder.info() && !decoder.partial());
    CHECK(is_toy(decoder.finish()));
}

TEST("what a codec has when it throws is salvaged")
{
    const auto faults = std::make_shared<Faults>(
        Faults{"finish", [] { throw imgdl::Error(IMGDL_ERROR_BAD_IMAGE_DATA, ""); }});
    const imgdl::Coder coder(toy_functions(faults));
    const std::string file = toy(20, 10);
    imgdl::DecodeOptions options;
    options.flags = IMGDL_DECODE_SALVAGE;
    const imgdl::Decoded decoded = imgdl::try_decode(imgdl::Bytes(file), options);
    CHECK_CODE(decoded.code, IMGDL_ERROR_BAD_IMAGE_DATA);
    CHECK(decoded.image.width() == 20 && decoded.image.row(1)[4] == 21);
}

TEST("a codec that gives nothing fails its picture, and empty functions are refused")
{
    const std::string file = toy(20, 10);
    struct Nothing : imgdl::PictureDecoder {
        void feed(imgdl::Bytes) override {}
        std::optional<imgdl_image_info> info() override { return imgdl::ImageInfo(20, 10); }
        imgdl::Image finish() override { return {}; }
    };
    imgdl::CoderFunctions functions = toy_functions();
    functions.decoder = [](const imgdl_decode_options &) { return std::make_unique<Nothing>(); };
    {
        const imgdl::Coder coder(functions);
        CHECK_CODE(code_of_decoding(file), IMGDL_ERROR_INTERNAL);
    }
    functions.decoder = [](const imgdl_decode_options &) { return nullptr; };
    {
        const imgdl::Coder coder(functions);
        CHECK_CODE(code_of_decoding(file), IMGDL_ERROR_OUT_OF_MEMORY);
    }
    functions.decoder = nullptr;
    const imgdl::Error error = harness::thrown_by([&] { imgdl::Coder coder(functions); });
    CHECK_CODE(error.code(), IMGDL_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(error.what()) == "decoder is an empty function");
    functions = toy_functions();
    functions.can_decode = nullptr;
    CHECK_CODE(harness::thrown_by([&] { imgdl::Coder coder(functions); }).code(), IMGDL_ERROR_INVALID_ARGUMENT);
}

TEST("a codec that is named is not asked, and the newest that can is")
{
    std::atomic<int> asked{0};
    imgdl::CoderFunctions functions = toy_functions();
    const auto can_decode = functions.can_decode;
    functions.can_decode = [&asked, can_decode](imgdl::Bytes prefix) {
        asked++;
        return can_decode(prefix);
    };
    const imgdl::Coder older(functions);
    const imgdl::Coder newer(toy_functions());
    const std::string file = toy(20, 10);
    CHECK(is_toy(imgdl::decode(imgdl::Bytes(file))) && asked == 0);
    imgdl::DecodeOptions options;
    options.coder = older.raw();
    CHECK(is_toy(imgdl::decode(imgdl::Bytes(file), options)) && asked == 0);
}

TEST("a codec's functions live as long as what decodes with them, and are destroyed once")
{
    const auto faults = std::make_shared<Faults>();
    const std::string file = toy(20, 10);
    std::unique_ptr<imgdl::Decoder> decoder;
    {
        imgdl::Coder coder(toy_functions(faults));
        CHECK(faults.use_count() == 3); // two functions have it, too
        decoder = std::make_unique<imgdl::Decoder>();
        decoder->feed(imgdl::Bytes(std::string_view(file).substr(0, 60)));
        imgdl::Coder moved = std::move(coder);
        CHECK(!coder && moved && faults.use_count() == 3);
        coder = std::move(moved);
        CHECK(coder && !moved);
        imgdl::Coder &same = coder;
        coder = std::move(same);
        CHECK(coder && code_of_decoding(file) == IMGDL_OK);
        coder = imgdl::Coder();
        CHECK(!coder && code_of_decoding(file) == IMGDL_ERROR_BAD_IMAGE_DATA);
    }
    CHECK(faults.use_count() == 3);
    decoder->feed(imgdl::Bytes(std::string_view(file).substr(60)));
    CHECK(is_toy(decoder->finish()));
    decoder.reset();
    CHECK(faults.use_count() == 1);
}

// What is left of an object that was moved from: an empty one, of every type, and nothing that points to what is gone.
#include <utility>

#include "harness.hpp"
#include "origin.hpp"

namespace {

// Moved by construction and by assignment, onto one that has something already, and onto itself.
template <typename Type, typename Make, typename IsEmpty>
void check_moves(Make make, IsEmpty is_empty)
{
    Type first = make();
    CHECK(!is_empty(first));
    Type second = std::move(first);
    CHECK(is_empty(first) && !is_empty(second));
    Type third = make();
    third = std::move(second);
    CHECK(is_empty(second) && !is_empty(third));
    Type &same = third;
    third = std::move(same);
    CHECK(!is_empty(third));
}

bool has_no_handle(const imgdl::Downloader &value) { return !value.raw(); }
template <typename Type>
bool is_false(const Type &value)
{
    return !value;
}

} // namespace

TEST("handles that are moved from are empty")
{
    imgdl::Downloader downloader;
    const std::string url = origin::picture("baseline.jpg"), file = origin::read_picture("baseline.jpg");
    check_moves<imgdl::Image>([&] { return imgdl::decode(imgdl::Bytes(file)); }, is_false<imgdl::Image>);
    check_moves<imgdl::Executor>([] { return imgdl::Executor::pumped(); }, is_false<imgdl::Executor>);
    imgdl::HookFunctions functions;
    functions.modify_request = [](const imgdl_outgoing &, imgdl::Continuation next) { next.unchanged(); };
    check_moves<imgdl::Hooks>([&] { return imgdl::Hooks(functions); }, is_false<imgdl::Hooks>);
    check_moves<imgdl::Cache>([] { return imgdl::Cache(imgdl::CacheConfig()); }, is_false<imgdl::Cache>);
    check_moves<imgdl::Downloader>([] { return imgdl::Downloader(); }, has_no_handle);
    check_moves<imgdl::Decoder>([] { return imgdl::Decoder(); },
                                [](const imgdl::Decoder &decoder) { return !decoder.raw(); });
    check_moves<imgdl::Token>([&] { return downloader.download(url); }, is_false<imgdl::Token>);
    check_moves<imgdl::Batch>([&] { return downloader.prefetch({}, {}, [](const imgdl_batch_progress &) {}); },
                              is_false<imgdl::Batch>);
    imgdl::Request request;
    request.url = url;
    request.flags = IMGDL_REQUEST_BODY;
    check_moves<imgdl::Data>([&] { return downloader.get(request).data(); }, is_false<imgdl::Data>);
}

TEST("an answer that is moved from points to nothing")
{
    imgdl::Downloader downloader;
    const std::string url = origin::picture("baseline.jpg?status=404&type=text/html");
    const auto is_empty = [](const imgdl::Response &response) {
        return !response.head() && !response.metrics() && response.preview().empty() && response.content_type().empty() &&
               response.message().empty() && !response.image() && !response.data() && response.http_status() == 0;
    };
    check_moves<imgdl::Response>([&] { return downloader.try_get(url); }, is_empty);
    check_moves<imgdl::Response>([&] { return downloader.try_get("nonsense:"); }, is_empty);
    imgdl::Error error = downloader.try_get(url).error();
    const imgdl::Error moved = std::move(error);
    CHECK(moved.preview().size() == 512 && error.preview().empty() && error.content_type().empty() && !error.salvaged());
    const std::string file = origin::read_picture("baseline.jpg");
    imgdl::Decoded decoded = imgdl::try_decode(imgdl::Bytes(file));
    const imgdl::Decoded taken = std::move(decoded);
    CHECK(taken.image && !decoded.image);
}

TEST("an answer that is empty is none")
{
    imgdl::Downloader downloader;
    imgdl::Response empty, answer = downloader.get(origin::picture("baseline.jpg"));
    CHECK(!empty && answer);
    CHECK_CODE(empty.code(), IMGDL_ERROR_NOT_READY);
    const imgdl::Error error = empty.error();
    CHECK(error.code() == empty.code() && error.what()[0]);
    empty = std::move(answer);
    CHECK(empty && !answer);
}

TEST("a hook's question that another one is moved onto is refused, and not exchanged")
{
    imgdl::HookFunctions functions;
    functions.modify_request = [](const imgdl_outgoing &, imgdl::Continuation next) {
        imgdl::Continuation empty(nullptr);
        next = std::move(empty);
    };
    imgdl::Downloader downloader;
    imgdl::Request request;
    request.url = origin::picture("baseline.jpg");
    request.hooks = imgdl::Hooks(functions);
    const imgdl::Response response = downloader.try_get(request);
    CHECK(!response && response.message().find("the hook gave no answer") != std::string_view::npos);
}

TEST("a batch is waited for until its function is gone")
{
    imgdl::Downloader downloader;
    imgdl::Request request;
    request.url = origin::picture("baseline.jpg");
    std::size_t finished = 0;
    const auto alive = std::make_shared<int>();
    const imgdl::Batch batch = downloader.prefetch(
        {request, request}, {}, [&finished, alive](const imgdl_batch_progress &now) { finished = now.finished; });
    batch.wait();
    CHECK(finished == 2 && alive.use_count() == 1 && batch.wait_for(std::chrono::milliseconds(0)));
    imgdl::Batch().wait();
}

TEST("a URL is any text, and a part of the statistics is a time")
{
    imgdl::Downloader downloader;
    const std::string url = origin::picture("baseline.jpg");
    CHECK(downloader.get(std::string_view(url)) && downloader.try_get(url.c_str()) && downloader.get(url));
    const imgdl_stats stats = downloader.stats();
    CHECK(imgdl::quantile(stats.total, 0.5) > 0 && imgdl::quantile(imgdl_histogram(), 0.5) == 0);
    CHECK(std::string(imgdl::version_string()) == IMGDL_VERSION_STRING);
}

"""include/imgdl.hpp: what must not compile, what must with strict warnings, and that it has what include/imgdl.h has."""
import itertools
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/packaging")
import header  # noqa: E402

FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Weffc++", "-Wold-style-cast", "-Werror", "-fsyntax-only",
         f"-I{ROOT}/include"]

# What imgdl.hpp does without, and why. Whatever else the header has must be used there, and none of these.
LEFT_OUT = {
    "imgdl_batch_retain": "a Batch only moves: its destructor cancels",
}

USES = """#include <imgdl.hpp>
imgdl::Downloader &downloader();
imgdl::Request request();
imgdl::Response answer();
imgdl::Transfer transfer();
struct Pictures : imgdl::PictureDecoder {
    void feed(imgdl::Bytes) override {}
    std::optional<imgdl_image_info> info() override { return imgdl::ImageInfo(1, 1); }
    imgdl::Image finish() override { return {}; }
};
imgdl::CoderFunctions coder_functions();
"""


class HeaderTests(unittest.TestCase):
    def compile(self, lines, *flags, standard="c++20", compiler="g++"):
        """Each line in a function of its own; gives what the compiler says, and the lines that it refuses."""
        source = USES + "".join(f"void use_{number}() {{ {line} }}\n" for number, line in enumerate(lines))
        said = subprocess.run([compiler, f"-std={standard}", *FLAGS, *flags, "-x", "c++", "-"], text=True, input=source,
                              stderr=subprocess.PIPE).stderr
        first = USES.count("\n") + 1
        return said, [lines[int(number) - first] for number in re.findall(r"^<stdin>:(\d+):\d+: error", said, re.M)]

    def check(self, good, bad):
        said, refused = self.compile([*good, *bad])
        self.assertEqual(sorted(set(refused)), sorted(bad), said)

    def test_what_would_be_a_view_of_what_is_gone_does_not_compile(self):
        views = ["answer().content_type()", "answer().message()", "answer().preview()", "answer().metrics()", "answer().head()",
                 "answer().data().bytes()", "answer().data().text()", "answer().image().pixels()", "answer().image().row(0)",
                 "answer().image().icc_profile()", "answer().error().content_type()", "answer().error().preview()",
                 "answer().error().what()", "answer().image().raw()", "answer().data().raw()", "imgdl::Executor::pumped().raw()",
                 'downloader().download("a").raw()', 'downloader().download("a").metrics()', "downloader().prefetch({}).raw()",
                 "imgdl::Downloader().raw()", "imgdl::Decoder().raw()", "imgdl::Coder(coder_functions()).raw()",
                 "imgdl::Event(imgdl_event()).kind()"]
        owned = [re.sub(r"(.*)(\..*)", r"const auto owner = \1; (void)owner\2;", view) for view in views[:-1]]
        texts = ["imgdl::Bytes bytes({}); (void)bytes;".format(text)
                 for text in ("std::string()", "std::move(text)", "std::move(constant)")]
        self.check(
            [*owned, "const imgdl_event raw = {}; (void)imgdl::Event(raw).kind();",
             'const std::string text; imgdl::Bytes bytes(text), other("a"), part(std::string_view(text).substr(1));'
             " (void)bytes; (void)other; (void)part;"],
            [*(f"(void){view};" for view in views),
             *("std::string text; const std::string constant; " + line for line in texts)])

    def test_an_event_cannot_be_kept(self):
        self.check(['auto token = downloader().download("a", [](imgdl::Event event) { (void)event.kind(); }); token.wait();',
                    'auto token = downloader().download("a", [](const imgdl::Event &event) { (void)event.image(); });'
                    ' token.wait();'],
                   ['auto token = downloader().download("a", [](const imgdl::Event &event) { auto kept = event; (void)kept; });',
                    'const imgdl_event raw = {}; imgdl::Event event(raw); imgdl::Event copy = event; (void)copy;',
                    'const imgdl_event raw = {}; imgdl::Event event(raw); imgdl::Event moved = std::move(event); (void)moved;'])

    def test_codecs_and_transfers_only_move(self):
        self.check(['imgdl::Coder coder(coder_functions()); imgdl::Coder moved = std::move(coder); coder = std::move(moved);',
                    'imgdl::Transfer kept = transfer(); imgdl::Transfer moved = std::move(kept); kept = std::move(moved);',
                    'downloader().register_transport("app", [](const imgdl_outgoing &, imgdl::Transfer) {});',
                    'downloader().register_transport("app", [](const auto &, imgdl::Transfer &&begun) { auto kept = std::move(begun);'
                    ' kept.end(); });',
                    'imgdl::Transfer kept = transfer(); if (kept.try_send({})) kept.end();'],
                   ['imgdl::Coder coder(coder_functions()); imgdl::Coder copy = coder; (void)copy;',
                    'imgdl::Transfer kept = transfer(); imgdl::Transfer copy = kept; copy.end();',
                    'imgdl::Transfer kept = transfer(); kept.try_send({});'])

    def test_what_is_taken_out_of_a_line_is_whole(self):
        self.check(['const imgdl::Image image = answer().image(); const imgdl::Error error = answer().error(); throw error;',
                    'const imgdl::Request &request = imgdl::Request{.url = "a"}.header("A", "b"); (void)request;',
                    'auto request = imgdl::Request().header("A", "b").header("C", "d"); (void)request;',
                    '(void)downloader().get(imgdl::Request{.url = "a"}.header("A", "b"));'],
                   ['imgdl::Request &request = imgdl::Request().header("A", "b"); (void)request;'])

    def test_a_batch_needs_no_options(self):
        self.check(['auto batch = downloader().prefetch({request()}); batch.wait();',
                    'auto batch = downloader().prefetch({request()}, imgdl::BatchOptions()); batch.wait();',
                    'imgdl::BatchOptions options; auto batch = downloader().prefetch({request()}, options); batch.wait();',
                    'auto batch = downloader().prefetch({request()}, {}); batch.wait();',
                    'auto batch = downloader().prefetch({request()}, [](const imgdl_batch_progress &) {}); batch.wait();',
                    'auto batch = downloader().prefetch({request()}, [](const auto &) {}, [](std::size_t, const auto &) {});'
                    ' batch.wait();'],
                   ['auto batch = downloader().prefetch({request()}, 7); batch.wait();'])

    def test_addresses_and_headers_mean_one_thing(self):
        self.check(
            ['(void)downloader().get({.url = "https://example.org/"});',
             '(void)downloader().try_get({.url = "https://example.org/"});',
             'auto token = downloader().download({.url = "https://example.org/"}); token.wait();',
             'auto token = downloader().download({.url = "a"}, [](const imgdl::Event &) {}); token.wait();',
             '(void)downloader().get(std::string_view("https://example.org/"));',
             '(void)downloader().get("https://example.org/");',
             'downloader().set_header("Accept", "image/png");',
             'downloader().set_header("Accept", std::nullopt);',
             'downloader().set_header("Accept", {});'],
            ['(void)downloader().get(nullptr);', 'downloader().set_header("Accept", nullptr);'])

    def test_it_is_clean_with_strict_warnings_in_every_standard(self):
        # The other one is the toolchain's, which every build has.
        clang = f"{os.path.dirname(os.path.realpath(shutil.which('swiftc')))}/clang++"
        for compiler, standard in itertools.product(("g++", clang), ("c++17", "c++20", "c++23")):
            # With its templates.
            said, _ = self.compile([
                'auto token = downloader().download("a", [](const imgdl::Event &) {}); token.wait();',
                "auto batch = downloader().prefetch({request()}, {}, [](const imgdl_batch_progress &) {},"
                "                                   [](std::size_t, const imgdl::Event &) {}); batch.wait();",
                "downloader().set_observer([](const imgdl_observation &) {});",
                "downloader().shutdown(IMGDL_SHUTDOWN_FINISH, [] {});",
                'downloader().register_transport("app", [](const imgdl_outgoing &, imgdl::Transfer kept) {'
                " kept.on_cancel([] {}); kept.on_resume([] {}); kept.end(); });",
                "imgdl::CoderFunctions functions; functions.can_decode = [](imgdl::Bytes) { return true; };"
                " functions.decoder = [](const auto &) { return std::make_unique<Pictures>(); }; imgdl::Coder coder(functions);",
                "imgdl::Cache cache({}, [](const imgdl_cache_event &) {}); cache.clear();",
                "void on_event(const imgdl::Event &); auto token = downloader().download(request(), on_event); token.wait();",
                "std::function<void(const imgdl::Event &)> tell; auto token = downloader().download(request(), tell); token.wait();"],
                standard=standard, compiler=compiler)
            self.assertEqual(said, "")

    def test_without_exceptions_it_says_what_to_do(self):
        self.assertIn("without them (-fno-exceptions) use imgdl.h", self.compile([], "-fno-exceptions")[0])

    def test_it_has_what_the_header_has(self):
        sections = header.read(f"{ROOT}/include/imgdl.h")
        with open(f"{ROOT}/include/imgdl.hpp", encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)
        functions = [item.name for section in sections for item in section.declarations("function")]
        self.assertGreater(len(functions), 100)
        missing = {name for name in functions if not re.search(rf"\b{name}\b", text)}
        self.assertEqual(missing, set(LEFT_OUT))
        # Every field of what a program fills is set.
        for name, owner in (("imgdl_request", "Request"), ("imgdl_config", "Config"), ("imgdl_cache_config", "CacheConfig"),
                            ("imgdl_batch_options", "BatchOptions"), ("imgdl_outgoing", "Continuation"),
                            ("imgdl_hooks_table", "Hooks"), ("imgdl_coder_table", "Coder"),
                            ("imgdl_transport_table", "Downloader")):
            (struct,) = [item for section in sections for item in section.declarations("struct") if item.name == name]
            fields = {member.name for member in struct.members if not re.match("struct_size|reserved", member.name)}
            self.assertGreaterEqual(len(fields), 5)
            unset = {field for field in fields if not re.search(rf"\b(raw|outgoing|table)\.{field}\b\s*=", text)}
            self.assertEqual(unset, set(), owner)


if __name__ == "__main__":
    unittest.main()

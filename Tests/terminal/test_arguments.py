import json
import os
import re
import subprocess
import unittest

from program import PATIENCE, ROOT, ProgramTests


class ArgumentTests(ProgramTests):
    def test_every_bad_argument_is_refused_with_its_name_and_why(self):
        url = "http://127.0.0.1:1/"
        cases = [
            ([], "no address is given"),
            (["-j", "0", url], "-j: '0' is not a number from 1 to 1000"),
            (["-j", "1001", url], "-j"),
            (["--jobs=two", url], "-j: 'two'"),
            (["-j", "-1", url], "-j"),
            (["--per-host=0", url], "--per-host"),
            (["--retries=1e3", url], "--retries"),
            (["--retries=99999999999999999999", url], "--retries"),
            (["--timeout=0", url], "--timeout"),
            (["--timeout=-1", url], "--timeout"),
            (["--timeout=nan", url], "--timeout"),
            (["--timeout=1.2.3", url], "--timeout"),
            (["--max-size=0", url], "--max-size"),
            (["--max-size=9T", url], "--max-size"),
            (["--max-size=99999999999G", url], "--max-size"),
            (["--width=0", url], "--width"),
            (["--height=70000", url], "--height"),
            (["--width=5", "-o", "a/w.JPEG", url],
             "-o: a/w.JPEG is the name of a jpeg, but with --width or --height a PNG is saved: name it w.png"),
            (["--background=red", url], "--background: 'red' is not a colour"),
            (["--show=sixel", url], "--show: 'sixel' is none of auto, kitty, blocks, blocks256"),
            (["-H", "no colon", url], "-H: 'Name: value' is wanted"),
            (["-H", ": value", url], "-H"),
            (["-H", "A b: value", url], "header"),
            (["-H", "Name: a\r\nB: c", url], "header"),
            (["-A", "a\nb", url], "imgdl: "),
            (["-o", "", url], "-o: it is empty"),
            (["-i", "", url], "-i: it is empty"),
            (["--journal=", url], "--journal: it is empty"),
            (["--cache=", url], "--cache: it is empty"),
            (["--cache=c", "--max-stale=-1", url], "--max-stale: '-1' is not a number of seconds from 0 to 4000000"),
            (["--max-stale=5", url], "--max-stale: it is about --cache"),
            (["--cacert=", url], "--cacert: it is empty"),
            (["-o", "-", url, url], "-o: standard output takes one address alone"),
            (["-o", "-", "-i", "-"], "-o: standard output takes one address alone"),
            (["-o", "-", "--json", url], "--json"),
            (["--show", "--json", url], "--json"),
            (["--show", "-o", "-", url], "--show"),
            (["--show", "--width=5", url], "--show"),
            (["-q", "-v", url], "-q: not together with -v"),
            (["-o"], "-o needs a value"),
            (["--output"], "--output needs a value"),
            (["--nonsense", url], "--nonsense is no option\n"),
            (["--nonsense=x", url], "--nonsense is no option\n"),
            (["--json=yes", url], "--json takes no value\n"),
            (["--quiet=yes", url], "--quiet takes no value\n"),
            (["--ver", url], "--ver begins several options\n"),
            (["--json", "-xq", url], "-x is no option\n"),
            (["-x", url], "-x is no option\n"),
            (["-H", "Host: a", "-H", "host: b", url], "-H: a request has one Host"),
            (["--crlfile=", url], "--crlfile: it is empty"),
            (["--dns-servers=", url], "--dns-servers: it is empty"),
            (["--dns-servers=dns.example", url], "imgdl: --dns-servers: number 1 is no address"),
            (["--max-decode=0", url], "--max-decode"),
            (["--proxy=ftp://h", url], "imgdl: the proxy “ftp://h” is not a URL that can be used"),
            (["--proxy=h:99999", url], "the proxy “h:99999” is not a URL that can be used"),
            (["--deny-private", "--proxy=http://h", url], "--deny-private: not behind a proxy, which --proxy names"),
        ]
        for arguments, expected in cases:
            with self.subTest(arguments=arguments):
                output, errors = self.run_program(*arguments, status=2)
                self.assertIn(expected, errors)
                self.assertIn("see imgdl --help", errors)
                self.assertEqual(output, b"")

    def test_what_is_read_or_noted_in_is_not_written_over(self):
        url = self.origin.picture("alpha.png")
        self.run_program("--journal=journal", "-o", "out/", url)
        (self.folder / "certificates").write_text("mine")
        (self.folder / "addresses").write_text(url + "\n")
        os.symlink("journal", self.folder / "link")
        os.symlink("new", self.folder / "way")
        os.link(self.folder / "journal", self.folder / "twin")
        (self.folder / "there").symlink_to(".")
        before = {name: self.read(name) for name in ("journal", "addresses", "certificates")}
        requests, files = len(self.origin.log["requests"]), self.files()
        cases = [
            (["--journal=journal", "-o", "journal", url], "-o: journal is the file of --journal, too"),
            (["--journal=new", "-o", "new", url], "-o: new is the file of --journal, too"),
            (["--journal=new", "-o", "./there/there/new", url], "-o: ./there/there/new is the file of --journal"),
            (["--journal=new", "-o", "way", url], "-o: way is the file of --journal"),
            (["--journal=way", "-o", "new", url], "-o: new is the file of --journal"),
            (["--journal=journal", "-o", self.folder / "journal", url], "is the file of --journal"),
            (["--journal=journal", "-o", "link", url], "-o: link is the file of --journal"),
            (["--journal=journal", "-o", "twin", url], "-o: twin is the file of --journal"),
            (["-i", "addresses", "-o", "addresses"], "-o: addresses is the file of -i, too"),
            (["--cacert=certificates", "-o", "certificates", url], "-o: certificates is the file of --cacert"),
            (["--crlfile=certificates", "-o", "certificates", url], "-o: certificates is the file of --crlfile"),
            (["--journal=certificates", "--cacert=certificates", url], "--journal: certificates is the file of --cacert"),
            (["--journal=addresses", "-i", "addresses"], "--journal: addresses is the file of -i"),
        ]
        for arguments, expected in cases:
            with self.subTest(arguments=arguments):
                _, errors = self.run_program(*arguments, status=2)
                self.assertIn(expected, errors)
        for arguments, path, expected in (
                (["-o", "-", "--journal=journal", url], "journal", "-o: standard output is the file of --journal"),
                (["-o", "/dev/stdout", "--journal=journal", url], "journal", "-o: /dev/stdout is the file of --journal"),
                (["--json", "-i", "addresses"], "addresses", "--json: standard output is the file of -i"),
                (["--show", "-i", "addresses"], "addresses", "--show: standard output is the file of -i")):
            with self.subTest(arguments=arguments), open(self.folder / path, "ab") as output:
                process = self.start(*arguments, stdout=output)
                _, errors = process.communicate(timeout=PATIENCE)
                self.assertEqual((process.returncode, expected in errors.decode()), (2, True), errors)
        with open(self.folder / "addresses", "rb") as list:
            process = self.start("-i", "-", "-o", "addresses", stdin=list)
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual((process.returncode, b"-o: addresses is the file of -i" in errors), (2, True), errors)
        self.assertEqual({name: self.read(name) for name in before}, before)
        self.assertEqual((len(self.origin.log["requests"]), self.files()), (requests, files))
        # A device is none, and another folder's file of that name is another one.
        self.run_program("-i", "-", "-o", "/dev/null", url, stdin=subprocess.DEVNULL)
        self.run_program("--journal=other", "-o", "out/other", url)

    def test_a_header_that_is_refused_is_not_repeated(self):
        _, errors = self.run_program("-H", "Authorization hunter2", "http://127.0.0.1:1/", status=2)
        self.assertNotIn("hunter2", errors)

    def test_an_address_is_told_what_it_lacks(self):
        for address in ("example.com/a.jpg", "example.com", "localhost:8080/a.jpg", "//example.com/a.jpg", "a.jpg?of=http://a/",
                        '"http://example.com/a.jpg"', "<http://example.com/a.jpg>", "'https://example.com/a.jpg'", "(http://a/)",
                        "[a](http://example.com/a.jpg)", "1. http://example.com/", "://example.com/"):
            _, errors = self.run_program(address, status=1)
            shown = address.partition("?")[0]
            self.assertEqual(errors, f"imgdl: {shown}: this is no address, which begins with http:// or https://\n")
        _, errors = self.run_program("htp://example.com/a.jpg", status=1)
        self.assertEqual(errors, "imgdl: htp://example.com/a.jpg: the scheme “htp” is not supported here: an address begins with "
                                 "http:// or https://\n")

    def test_what_the_terminal_would_obey_is_escaped_in_complaints(self):
        _, errors = self.run_program("-j", "\x1b[2J", "http://127.0.0.1:1/", status=2)
        self.assertIn("\\x1b[2J", errors)
        self.assertNotIn("\x1b", errors)

    def test_help_and_version_say_it_on_standard_output(self):
        for option in ("--help", "-h"):
            output, errors = self.run_program(option)
            self.assertIn(b"usage: imgdl", output)
            self.assertEqual(errors, "")
        output, _ = self.run_program("--version")
        self.assertRegex(output.decode(), r"^imgdl \d+\.\d+\.\d+\n$")

    def test_every_option_of_help_is_in_the_manual_and_the_completions(self):
        text, _ = self.run_program("--help")
        options = sorted(set(re.findall(r"--[a-z][a-z-]+", text.decode())))
        self.assertGreater(len(options), 18)
        for path in ("docs/man/imgdl.1", "packaging/completions/imgdl.bash", "packaging/completions/_imgdl"):
            known = (ROOT / path).read_text("utf-8").replace("Fl -", "--")
            for option in options:
                self.assertIn(option, known, path)

    def test_the_bash_completion_completes_options_and_their_values(self):
        script = f"""source {ROOT}/packaging/completions/imgdl.bash
        complete_for() {{
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _imgdl
            printf '%s\\n' "${{COMPREPLY[@]}}"
        }}
        complete_for imgdl --js; complete_for imgdl --show = bl"""
        output = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
        self.assertEqual(output, ["--json", "blocks", "blocks256"])

    def test_headers_and_the_user_agent_are_sent(self):
        self.run_program("-H", "X-One: a b", "-H", "X-Empty:", "-A", "tester/1", "-o", "echo", self.origin.url("/echo"))
        echo = self.read("echo").decode()
        for part in ('"X-One","a b"', "tester/1", "X-Empty"):
            self.assertIn(part, echo.replace('", "', '","'))

    def test_a_header_that_is_repeated_is_sent_each_time(self):
        self.run_program(
            "-H", "X-One: a", "-H", "x-one: b", "-H", "Accept: text/plain", "-H", "Accept: text/html", "-o", "echo",
            self.origin.url("/echo"))
        sent = [(name.lower(), value) for name, value in json.loads(self.read("echo"))["headers"]]
        self.assertEqual([value for name, value in sent if name == "x-one"], ["a", "b"])
        self.assertEqual([value for name, value in sent if name == "accept"], ["text/plain", "text/html"])

    def test_whom_a_run_of_strangers_addresses_may_ask(self):
        url = self.origin.picture("alpha.png")
        lines = self.json_lines("--proxy=", "--deny-private", url, status=4)
        self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_ADDRESS_REFUSED"])
        _, errors = self.run_program(
            "--deny-private", url, environment={"http_proxy": "http://127.0.0.1:1"}, status=3)
        self.assertIn("(http_proxy", errors)
        # Nothing listens there, or below.
        self.run_program("--retries=0", "--proxy=http://127.0.0.1:1", url, status=4)
        self.assertEqual(self.origin.log["requests"], [])
        lines = self.json_lines("--retries=0", "--proxy=", "--dns-servers=127.0.0.1:1", "http://name.test/", status=4)
        self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_RESOLVE_FAILED"])

    def test_whom_tls_trusts(self):
        old = self.other_origin("--tls", "valid", "--tls12")
        trust = ("--retries=0", "--cacert", old.info["ca_file"])
        lines = self.json_lines(*trust, "--tlsv1.3", old.picture("alpha.png"), status=4)
        self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_TLS_FAILED"])
        self.run_program(*trust, old.picture("alpha.png"))
        _, errors = self.run_program("--crlfile", old.info["ca_file"], old.picture("alpha.png"), status=3)
        self.assertIn("holds no revocation list in PEM", errors)
        self.assertIn("imgdl: --crlfile “", errors)
        _, errors = self.run_program("--cacert=/nonexistent", old.picture("alpha.png"), status=3)
        self.assertIn("imgdl: --cacert “/nonexistent” cannot be read", errors)

    def test_limits_of_time_and_size_hold(self):
        _, errors = self.run_program(
            "--timeout=0.05", self.origin.picture("baseline.jpg", first_byte="never"), status=4)
        self.assertIn("imgdl: http://127.0.0.1", errors)
        _, errors = self.run_program("--max-size=1K", self.origin.picture("baseline.jpg"), status=6)
        self.assertIn("1024", errors.replace("1 024", "1024"))
        lines = self.json_lines("--verify", "--max-decode=0.001", self.origin.picture("progressive.jpg"), status=6)
        self.assertEqual([line["error"] for line in lines], ["IMGDL_ERROR_DECODE_TIMEOUT"])

    def test_certificates_are_those_of_the_file(self):
        secured = self.other_origin("--tls", "valid")
        url = secured.picture("alpha.png")
        _, errors = self.run_program(url, status=4)
        self.assertIn("certificate", errors)
        self.run_program("--cacert", secured.info["ca_file"], url)
        self.assertEqual(self.files(), ["alpha.png"])

    def test_basic_over_http_is_sent_where_it_is_asked_for(self):
        url = self.origin.url("/auth/basic", user="me", password="hunter2", picture="alpha.png")
        url = url.replace("://", "://me:hunter2@")
        _, errors = self.run_program(url, status=5)
        self.assertIn("the password is sent so with --basic-over-http alone", errors)
        self.assertNotIn("hunter2", errors)
        self.run_program("--basic-over-http", "-o", "picture.png", url)
        self.assertEqual(self.files(), ["picture.png"])

    def test_one_host_gets_as_many_as_asked_for(self):
        gate = self.origin.gate()
        urls = [self.origin.picture("alpha.png", n=n, hold_head=1, gate=gate.name) for n in range(4)]
        process = self.start("--per-host=1", "-o", "out", *urls)
        self.assertTrue(gate.is_reached())
        gate.open()
        process.communicate()
        self.assertEqual((process.returncode, self.origin.log["max_in_flight"]), (0, 1))

    def test_retries_are_as_many_as_asked_for(self):
        self.run_program("--retries=0", self.origin.url("/flaky", id="a", fail=1), status=5)
        self.assertEqual(len(self.origin.requests("/flaky")), 1)


if __name__ == "__main__":
    unittest.main()

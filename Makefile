# Every step of this repository is a target here; `make help` lists them.
#   make run     installs what is missing, builds, and downloads a dozen pictures from a built-in origin
#   make test    the same, then every suite
#   make         builds, and says what is missing

SHELL := /bin/sh
.DELETE_ON_ERROR:

JOBS ?= 2
# How Swift's tests are compiled besides: .ci/run, which has nothing from before, compiles each module as a whole.
export TEST_BUILD_FLAGS ?=
PYTHON ?= python3
export URL
CFLAGS ?= -O2 -g
WARNINGS := -std=c11 -Wall -Wextra -Wpedantic -Werror -D_GNU_SOURCE

# A crashing Swift program would otherwise start a backtracer, which can hang where ptrace is not allowed.
export SWIFT_BACKTRACE := enable=no

VERSION := $(shell sed -n 's/^\#define IMGDL_VERSION_STRING "\(.*\)"/\1/p' include/imgdl.h)
MAJOR := $(firstword $(subst ., ,$(VERSION)))
LIBRARY := build/lib/libimgdl.so
LIBRARY_SOURCES := Package.swift packaging/imgdl.map $(shell find Sources include -type f ! -name '*.hpp')
TOOL_SOURCES := $(shell find Tests/Origin Tests/Pictures -type f)
CACHE_SOURCES := $(shell find Sources/ImgdlCore Sources/ImgdlCache Sources/CShims Tests/CacheTesting Tests/Crash bench/cache -type f)
PROGRAMS := build/bin/imgdl build/bin/imgdl-fetch build/bin/imgdl-demo build/bin/imgdl-origin build/bin/imgdl-pictures

.PHONY: all
all: build/.setup-run library programs man

.PHONY: help
help:
	@sed -n 's/^#? //p' Makefile

#? make             the library in build/lib, the programs in build/bin
#? make run         the demonstration; make run URL=https://… for one address
#? make docs        the guide and the references of C, Python and Rust: build/docs/index.html
#? make test        every suite; make test-long: more seeds, everything under sanitizers, and test-machines
#? make test-machines  a clean clone in bare roots of Debian 12, 13 and sid; ROOT=sid for one, RENEW=yes for new roots
#? make test-ecosystem  what needs heavy packages: wheels in clean environments, mypy, a debug build of Python, Rust crates
#? make test-caching  a public conformance suite for HTTP caches, CACHING_SUITE=its folder (docs/caching.md); WAY=memory
#? make wheel       a Python wheel with the library inside, in build/wheels; make wheel-bundled: with the codecs too
#? make examples-avif  examples/coders/avif: AVIF, as a codec that programs can load
#? make examples-event-loops  examples/event-loops: downloads on the loops of epoll, GLib and libuv, in build/examples
#? make fuzz        each parser and decoder, FUZZ_SECONDS=60 each; TARGETS="gif url" for some of them
#? make play        the whole header at random, for PLAY_SECONDS=60 with a seed of its own or SEED=…
#? make pieces      pictures in one piece, byte by byte and looked at, for PIECES_SECONDS=60; SEED=… CASE=… for one again
#? make soak        mixed work with faults, 500 requests a second, for an hour; SOAK_SECONDS=600
#? make install     PREFIX=/usr/local DESTDIR=; make uninstall takes the same, and what was installed away
#? make man         the manual pages, from the header, in build/man
#? make abi-check   whether programs for a released version can use this header's; make abi-record at a release
#? make setup       installs the Debian packages that are missing; PURPOSES="build docs": packaging/debian-packages has them
#? make bench       the benchmarks; one of them: make bench-decode, bench-cache, bench-engine, or bench-transfer (against peers)
#? make profile     what branches the compiler expects (packaging/profile), counted anew; then make function-order
#? make function-order  how the linker lays out the library (packaging/function-order), measured anew
#? make format-check  Swift sources against .swift-format, as make test does first; make clean

# ---- What has to be installed

# `make setup`, `make run` and what tests install it, before make looks at anything else; the others say what is missing.

PURPOSES ?= build run test
TEST_PURPOSES := build run test
BEFORE_run := build
BEFORE_test := build run
BEFORE_docs := build
BEFORE_bench := build
BEFORE_wheel := build

.PHONY: setup
setup:
	@packaging/setup $(PURPOSES)

build/.setup-%: packaging/debian-packages packaging/setup
	@packaging/setup $(strip --check $(BEFORE_$*) $*)
	@mkdir -p $(@D)
	@touch $@

# Swift may have gone since that was looked at: whatever calls it says so in the same words.
NEEDS_SWIFT := @command -v swift >/dev/null || packaging/setup --check build
TOOLCHAIN = $(shell swiftc -print-target-info 2>/dev/null | sed -n 's|.*"runtimeResourcePath": "\(.*\)/lib/swift".*|\1|p')

# ---- The library
# These flags are here and not in Package.swift because there they would reach `swift test`, too. The Swift runtime is
# linked in: no Swift is needed where the library runs, and the host gets no crash handlers from it.
# Overlapping accesses are looked for in the tests' builds; here the look would be a tenth of a cached answer's cost.
#
# The toolchain's own linker lays out what a transfer goes through in one place (`make function-order` says what that is),
# drops what nothing refers to (two parts of Swift that would bring a tenth more along are left out: regular expressions, and
# what looks into values at run time), packs the relocations, and keeps one of functions that are the same, which is a
# thirtieth of the file: nothing here asks whether two functions are one. The Swift runtime uses little of libstdc++ and
# libgcc, which as libraries of their own take a millisecond and a seventh of one to load.

.PHONY: library
library: $(LIBRARY)

build/static/libstdc++.a: | build/.setup-build
	@mkdir -p $(@D)
	ln -sf "$$($(CXX) -print-file-name=$(@F))" $@

build_library = swift build -c release -j $(JOBS) --product imgdl --scratch-path $(1) \
    -Xcc -DSYSTEM_STATIC_SWIFT_RUNTIME -Xswiftc -static-stdlib -Xswiftc -no-toolchain-stdlib-rpath --disable-local-rpath \
    -Xswiftc -enforce-exclusivity=unchecked -Xswiftc -cross-module-optimization \
    -Xswiftc -Xfrontend -Xswiftc -disable-reflection-metadata \
    -Xswiftc -Xfrontend -Xswiftc -disable-implicit-string-processing-module-import \
    -Xswiftc -Xfrontend -Xswiftc -disable-implicit-concurrency-module-import \
    -Xswiftc -Xfrontend -Xswiftc -function-sections -Xcc -ffunction-sections -Xlinker -L$(CURDIR)/build/static \
    -Xswiftc -use-ld=lld -Xswiftc -Xclang-linker -Xswiftc -static-libgcc -Xlinker -z -Xlinker pack-relative-relocs \
    -Xlinker --symbol-ordering-file=$(CURDIR)/packaging/function-order -Xlinker --no-warn-symbol-ordering \
    -Xlinker --version-script=$(CURDIR)/packaging/imgdl.map -Xlinker -soname=libimgdl.so.$(MAJOR) \
    -Xlinker --gc-sections -Xlinker --icf=all -Xlinker --as-needed \
    -Xlinker -z -Xlinker nodelete -Xlinker -z -Xlinker now -Xlinker -z -Xlinker noexecstack \
    -Xswiftc -Xfrontend -Xswiftc $(2)

# How code is laid out within functions, and what is inlined, follows from what branches and calls transfers and decoders
# have been seen to take (`make profile`).
build/profile.profdata: packaging/profile | build/.setup-build
	@mkdir -p $(@D)
	@# swift build does not know that it changes the code.
	$(NEEDS_SWIFT)
	rm -rf build/swift-release
	$(TOOLCHAIN)/bin/llvm-profdata merge -o $@ $<

$(LIBRARY).$(VERSION): $(LIBRARY_SOURCES) build/profile.profdata packaging/function-order \
    | build/.setup-build build/static/libstdc++.a
	@# swift build does not know of the order.
	rm -f build/swift-release/release/libimgdl.so
	$(NEEDS_SWIFT)
	$(call build_library,build/swift-release,-ir-profile-use=$(CURDIR)/build/profile.profdata)
	@mkdir -p $(@D)
	strip --strip-all -o $@ build/swift-release/release/libimgdl.so

$(LIBRARY): $(LIBRARY).$(VERSION)
	ln -sf $(<F) $(LIBRARY).$(MAJOR)
	ln -sf $(<F) $@

# ---- The programs

.PHONY: programs
programs: $(PROGRAMS)

build/bin/imgdl-fetch: examples/c/imgdl-fetch.c
build/bin/imgdl-demo: examples/c/imgdl-demo.c examples/c/png-writer.c examples/c/png-writer.h
build/bin/imgdl-fetch build/bin/imgdl-demo: include/imgdl.h $(LIBRARY) | build/.setup-build
	@mkdir -p $(@D)
	$(CC) $(WARNINGS) $(CFLAGS) -Iinclude -o $@ $(filter %.c,$^) -Lbuild/lib -limgdl -pthread '-Wl,-rpath,$$ORIGIN/../lib'

# The terminal program. The library needs libpng, too.
TERMINAL_FLAGS := -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -O2 -g -Iinclude
TERMINAL_OBJECTS := $(patsubst tools/imgdl/%.cpp,build/tools/imgdl/%.o,$(wildcard tools/imgdl/*.cpp))

build/tools/imgdl/%.o: tools/imgdl/%.cpp $(wildcard tools/imgdl/*.hpp) include/imgdl.hpp include/imgdl.h \
    | build/.setup-build
	@mkdir -p $(@D)
	$(CXX) $(TERMINAL_FLAGS) -c -o $@ $<

build/bin/imgdl: $(TERMINAL_OBJECTS) $(LIBRARY)
	@mkdir -p $(@D)
	$(CXX) -o $@ $(TERMINAL_OBJECTS) -Lbuild/lib -limgdl -lpng16 '-Wl,-rpath,$$ORIGIN/../lib'

build/bin/imgdl-origin build/bin/imgdl-pictures: build/bin/imgdl-%: Package.swift $(TOOL_SOURCES) | build/.setup-run
	@mkdir -p $(@D)
	$(NEEDS_SWIFT)
	swift build -c release -j $(JOBS) --product imgdl-$* --scratch-path build/swift-tools --static-swift-stdlib
	cp -f build/swift-tools/release/imgdl-$* $@
# Swift builds one thing at a time in one folder.
build/bin/imgdl-pictures: | build/bin/imgdl-origin

# What measures a cache.
build/bin/imgdl-cache-bench: Package.swift $(CACHE_SOURCES) | build/.setup-build
	@mkdir -p $(@D)
	$(NEEDS_SWIFT)
	swift build -c release -j $(JOBS) --product $(@F) --scratch-path build/swift-tools --static-swift-stdlib
	cp -f build/swift-tools/release/$(@F) $@

build/pictures/.written: build/bin/imgdl-pictures
	build/bin/imgdl-pictures build/pictures
	@touch $@

.PHONY: run demonstration
run:
	@packaging/setup build run
	@$(MAKE) --no-print-directory demonstration
demonstration: $(PROGRAMS) build/pictures/.written
	@if [ -n "$$URL" ]; then build/bin/imgdl-demo --output build/demo "$$URL"; \
	else build/bin/imgdl-demo --output build/demo --origin build/bin/imgdl-origin --pictures build/pictures; fi

# ---- Tests

C_TESTS := build/tests/imgdl-tests build/tests/imgdl-loading build/tests/imgdl-avif build/tests/imgdl-cpp build/tests/tls-peer \
    build/tests/imgdl-player build/tests/imgdl-pieces build/tests/hostile-client build/tests/hostile-crowd \
    build/tests/slow-sync.so
STRUCT_FIELDS := build/tests/include/struct-fields.h
C_SUPPORT := $(wildcard Tests/c/*.h) $(STRUCT_FIELDS) include/imgdl.h
C_SOURCES := $(filter-out Tests/c/loading.c Tests/c/tls-peer.c Tests/c/hostile.c Tests/c/slow-sync.c,$(wildcard Tests/c/*.c))
C_PICTURES := $(patsubst Tests/Pictures/%.c,build/tests/%.o,$(wildcard Tests/Pictures/*.c))
C_FLAGS := $(WARNINGS) -Iinclude -ITests/Pictures/include -Ibuild/tests/include
C_LIBS := -ljpeg -lpng16 -lwebp -llcms2 -pthread

.PHONY: test suites
test:
	@packaging/setup $(TEST_PURPOSES)
	@$(MAKE) --no-print-directory suites
suites:
	@# Most of what is built is compiled by one thread at a time.
	@$(MAKE) --no-print-directory -j $(JOBS) --output-sync=target tests-built
	@Tests/run $(SUITES)

# What `make test` runs. The long builds stand first.
.PHONY: tests-built swift-tests c-tests
tests-built: format-check library swift-tests all c-tests \
    build/pictures/.written build/examples/epoll build/examples/libuv
swift-tests: | build/.setup-test
	$(NEEDS_SWIFT)
	swift build --build-tests -j $(JOBS) $(TEST_BUILD_FLAGS)
c-tests: $(C_TESTS)

$(STRUCT_FIELDS): Tests/c/struct-fields packaging/header.py include/imgdl.h $(wildcard packaging/abi/*.abi)
	@mkdir -p $(@D)
	$< > $@.new
	mv $@.new $@

$(C_PICTURES): build/tests/%.o: Tests/Pictures/%.c $(wildcard Tests/Pictures/*.h Tests/Pictures/include/*.h) \
    | build/.setup-build
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -ITests/Pictures/include -c -o $@ $<

build/tests/imgdl-tests: $(C_SOURCES) $(C_PICTURES) $(C_SUPPORT) $(LIBRARY) | build/.setup-test
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $(C_SOURCES) $(C_PICTURES) -Lbuild/lib -limgdl $(C_LIBS) -Wl,-rpath,$(CURDIR)/build/lib

# Not linked with the library: what loading it does is the test.
build/tests/imgdl-loading: Tests/c/loading.c $(C_SUPPORT) $(LIBRARY) | build/.setup-test
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $< -ldl -pthread

# One hostile answer in a process of its own, of one server or of many at once: Tests/Hostile/run starts them.
build/tests/hostile-client build/tests/hostile-crowd: build/tests/hostile-%: Tests/Hostile/%.c Tests/Hostile/questions.h include/imgdl.h $(LIBRARY) | build/.setup-test
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $< -Lbuild/lib -limgdl -Wl,-rpath,$(CURDIR)/build/lib

# The player of the whole header: a function of it without a move fails here. Its own pthread_create and mmap are called by
# the library, too, so that it can refuse them.
PLAYER_SOURCES := $(wildcard Tests/Stress/*.c) Tests/c/animations.c
PLAYER_CHECKED := $(PLAYER_SOURCES) $(wildcard Tests/Stress/*.h Tests/Stress/*.def) Tests/c/animations.h Tests/Stress/table \
    include/imgdl.h docs/threads.md

build/tests/imgdl-player: $(PLAYER_CHECKED) $(LIBRARY) | build/.setup-test
	@mkdir -p $(@D)
	Tests/Stress/table --check
	$(CC) $(WARNINGS) -Iinclude $(CFLAGS) -rdynamic -o $@ $(PLAYER_SOURCES) -Lbuild/lib -limgdl -ldl -pthread \
	    -Wl,-rpath,$(CURDIR)/build/lib

build/tests/imgdl-player-%: build/tests/imgdl-tests-% $(PLAYER_CHECKED)
	Tests/Stress/table --check
	$(TOOLCHAIN)/bin/clang -fsanitize=$* $(WARNINGS) -Iinclude -O1 -g -rdynamic -o $@ $(PLAYER_SOURCES) \
	    -Lbuild/swift-$*/release -limgdl -ldl -L$(SWIFT_RUNTIME) $(SANITIZER_$*_LIBS) -pthread \
	    -Wl,-rpath,$(CURDIR)/build/swift-$*/release -Wl,-rpath,$(SWIFT_RUNTIME)

# SEED=… for one that was printed; WITHOUT=forks,stops switches off what is not to be played.
PLAY_SECONDS ?= 60
.PHONY: play
play: build/tests/imgdl-player build/bin/imgdl-origin build/pictures/.written
	$< --origin build/bin/imgdl-origin --pictures build/pictures --seconds $(PLAY_SECONDS) $(if $(SEED),--seed $(SEED)) \
	    $(if $(WITHOUT),--without $(WITHOUT))

# Pictures in pieces, looked at and not. SEED=… CASE=… plays again what was printed; PIECES_SECONDS=60.
build/tests/imgdl-pieces: $(wildcard Tests/Pieces/*.c Tests/Pieces/*.h) include/imgdl.h $(LIBRARY) | build/.setup-test
	@mkdir -p $(@D)
	$(CC) $(WARNINGS) -Iinclude $(CFLAGS) -o $@ $(filter %.c,$^) -Lbuild/lib -limgdl -Wl,-rpath,$(CURDIR)/build/lib

PIECES_SECONDS ?= 60
PIECES_FILES := $(wildcard $(or $(IMGDL_CORPUS),../shared/corpus)) Tests/Fuzz/finds build/pictures
.PHONY: pieces
pieces: build/tests/imgdl-pieces build/pictures/.written
	$< --seconds $(PIECES_SECONDS) --found build/pieces $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE)) \
	    $(PIECES_FILES)

build/tests/tls-peer: Tests/c/tls-peer.c | build/.setup-test
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $< -lssl -lcrypto

# A disk whose syncs take long, or fail, for a program that is started with it.
build/tests/slow-sync.so: Tests/c/slow-sync.c | build/.setup-test
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -fPIC -shared -o $@ $< -ldl

# imgdl.hpp: compiled as each standard that it promises, by the compilers that are here, and tested as C++17.
CPP_WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Werror
CPP_TESTS := $(wildcard Tests/cpp/*.cpp)

build/tests/imgdl-cpp: $(CPP_TESTS) $(wildcard Tests/cpp/*.hpp) include/imgdl.hpp include/imgdl.h $(LIBRARY) \
    | build/.setup-test
	@mkdir -p $(@D)
	$(CXX) -std=c++20 $(CPP_WARNINGS) -Iinclude -fsyntax-only Tests/cpp/values.cpp
	for standard in 17 20; do $(TOOLCHAIN)/bin/clang++ -std=c++$$standard $(CPP_WARNINGS) -Iinclude -fsyntax-only \
	    Tests/cpp/callbacks.cpp Tests/cpp/coders.cpp Tests/cpp/downloads.cpp Tests/cpp/loaders.cpp Tests/cpp/values.cpp \
	    || exit 1; done
	$(CXX) -std=c++17 $(CPP_WARNINGS) -O1 -g -Iinclude -o $@ $(CPP_TESTS) -Lbuild/lib -limgdl -pthread \
	    -Wl,-rpath,$(CURDIR)/build/lib

# A codec of somebody else's: an example, not a part of `make all`.
.PHONY: examples-avif
examples-avif: build/lib/libimgdl-avif.so

build/lib/libimgdl-avif.so: examples/coders/avif/avif-coder.c examples/coders/avif/avif-coder.h $(LIBRARY) | build/.setup-test
	$(CC) $(WARNINGS) $(CFLAGS) -fPIC -shared -Iinclude -o $@ $< -Lbuild/lib -limgdl -lavif '-Wl,-rpath,$$ORIGIN'

build/tests/imgdl-avif: Tests/c/coders/avif.c Tests/c/harness.c Tests/c/support.c $(C_PICTURES) $(C_SUPPORT) \
    build/lib/libimgdl-avif.so | build/.setup-test
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $(filter %.c %.o,$^) -Lbuild/lib -limgdl -lavif -ldl $(C_LIBS) \
	    -Wl,-rpath,$(CURDIR)/build/lib

# Downloads on the loop of the host. GLib's headers are large: `make test` does without them.
.PHONY: examples-event-loops
examples-event-loops: build/examples/epoll build/examples/glib build/examples/libuv

build/examples/glib: LOOP := glib-2.0
build/examples/glib: | build/.setup-ecosystem
build/examples/libuv: LOOP := libuv
build/examples/%: examples/event-loops/%.c include/imgdl.h $(LIBRARY) | build/.setup-test
	@mkdir -p $(@D)
	$(CC) $(WARNINGS) $(CFLAGS) -Iinclude -o $@ $< -Lbuild/lib -limgdl -Wl,-rpath,$(CURDIR)/build/lib \
	    $(if $(LOOP),$$(pkg-config --cflags --libs $(LOOP)))

# The same C tests against a library built with a sanitizer, and with the asserts of debug builds: no lock is held while the
# host's code runs, no end of a request is lost. It is optimised all the same: slower, it would take honest answers for
# floods. It uses the dynamic Swift runtime, so the toolchain's own clang links the tests; ThreadSanitizer's runtime asks for
# libdispatch.
SWIFT_RUNTIME = $(TOOLCHAIN)/lib/swift/linux
SANITIZER_thread_LIBS = -ldispatch -lBlocksRuntime

build/tests/imgdl-tests-%: $(C_SOURCES) $(C_PICTURES) $(C_SUPPORT) $(LIBRARY_SOURCES) | build/.setup-test
	@mkdir -p $(@D)
	$(NEEDS_SWIFT)
	swift build -c release -j $(JOBS) --product imgdl --scratch-path build/swift-$* --sanitize=$* -Xswiftc -g -Xswiftc -DDEBUG
	$(TOOLCHAIN)/bin/clang -fsanitize=$* $(C_FLAGS) -O1 -g -o $@ $(C_SOURCES) $(C_PICTURES) \
	    -Lbuild/swift-$*/release -limgdl -L$(SWIFT_RUNTIME) $(SANITIZER_$*_LIBS) $(C_LIBS) \
	    -Wl,-rpath,$(CURDIR)/build/swift-$*/release -Wl,-rpath,$(SWIFT_RUNTIME)

# ---- The ABI: what was released, recorded in packaging/abi

.PHONY: abi-check abi-record
abi-check: build/.setup-test
	packaging/abi/check
abi-record: build/.setup-test
	packaging/abi/check --record

# ---- Fuzzing: libFuzzer under AddressSanitizer. The targets (Tests/Fuzz/Targets) are a library of their own, instrumented;
# each program is libFuzzer's main and the name of one target.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := decode decoder gif png webp jpeg exif probe colour http-date retry-after content-type response-head \
    content-coding cache-control content-range caching url data-url range vary exchanges index-row picture-numbers \
    cookies set-cookie
FUZZ_SOURCES := $(shell find Tests/Fuzz/Targets -type f)
FUZZ_LIBRARY := build/swift-fuzz/release/libFuzzTargets.so
FUZZ_COVERAGE := edge,inline-8bit-counters,pc-table,indirect-calls,trace-cmp

$(FUZZ_LIBRARY): $(LIBRARY_SOURCES) $(FUZZ_SOURCES) | build/.setup-build
	$(NEEDS_SWIFT)
	swift build -c release -j $(JOBS) --product FuzzTargets --scratch-path build/swift-fuzz --sanitize=address \
	    -Xswiftc -enable-testing -Xswiftc -g -Xswiftc -sanitize-coverage=$(FUZZ_COVERAGE) -Xcc -fsanitize=fuzzer-no-link
	@touch $@

build/fuzz/%: Tests/Fuzz/main.c $(FUZZ_LIBRARY)
	@mkdir -p $(@D)
	$(TOOLCHAIN)/bin/clang -fsanitize=fuzzer,address -fuse-ld=lld $(C_FLAGS) -O1 -g -DTARGET='"$*"' -o $@ $< \
	    -L$(dir $(FUZZ_LIBRARY)) -lFuzzTargets -L$(SWIFT_RUNTIME) \
	    -Wl,-rpath,$(CURDIR)/$(dir $(FUZZ_LIBRARY)) -Wl,-rpath,$(SWIFT_RUNTIME)

.PHONY: fuzz fuzzers
fuzzers: $(FUZZ_TARGETS:%=build/fuzz/%)
fuzz: fuzzers
	Tests/Fuzz/run $(FUZZ_SECONDS) $(TARGETS)

# ---- Hostile files, under memcheck with the library as it is shipped, and under UndefinedBehaviorSanitizer

build/tests/hostile: Tests/c/hostile.c include/imgdl.h $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(WARNINGS) -Iinclude -O1 -g -o $@ $< -Lbuild/lib -limgdl -Wl,-rpath,$(CURDIR)/build/lib

build/tests/hostile-undefined: Tests/c/hostile.c $(LIBRARY_SOURCES) | build/.setup-build
	@mkdir -p $(@D)
	$(NEEDS_SWIFT)
	swift build -c release -j $(JOBS) --product imgdl --scratch-path build/swift-undefined \
	    -Xcc -fsanitize=undefined -Xcc -fno-sanitize-recover=undefined
	$(TOOLCHAIN)/bin/clang -fsanitize=undefined -fuse-ld=lld $(WARNINGS) -Iinclude -O1 -g -o $@ $< \
	    -Lbuild/swift-undefined/release -limgdl -L$(SWIFT_RUNTIME) \
	    -Wl,-rpath,$(CURDIR)/build/swift-undefined/release -Wl,-rpath,$(SWIFT_RUNTIME)

.PHONY: test-tsan test-asan
test-tsan test-asan:
	@packaging/setup $(TEST_PURPOSES)
	@$(MAKE) --no-print-directory programs build/tests/imgdl-tests-$(SANITIZER) build/tests/tls-peer
	Tests/run $(SANITIZER)
test-tsan: SANITIZER := thread
test-asan: SANITIZER := address

.PHONY: test-long
test-long:
	$(MAKE) test
	$(MAKE) fuzzers build/tests/hostile build/tests/hostile-undefined build/tests/imgdl-tests-thread \
	    build/tests/imgdl-tests-address build/tests/imgdl-player-thread build/tests/imgdl-player-address
	Tests/run long
	$(MAKE) test-tsan
	$(MAKE) test-asan
	$(MAKE) test-machines

# A clean clone in bare roots of Debian; ROOT=12, 13 or sid for one of them, RENEW=yes makes the roots anew.
.PHONY: test-machines
test-machines:
	@packaging/setup build machines
	@Tests/machines/run $(if $(RENEW),--renew) $(ROOT)

# A public conformance suite for HTTP caches, which is not in this repository: CACHING_SUITE=… is its folder.
.PHONY: test-caching
test-caching:
	@[ -d "$(CACHING_SUITE)" ] || { echo "make test-caching: name the folder of the suite, CACHING_SUITE=…" >&2; exit 2; }
	@packaging/setup build caching
	@$(MAKE) --no-print-directory library
	Tests/caching-suite/play $(if $(WAY),--way $(WAY)) $(CACHING_SUITE)

# Memory, threads and descriptors must be flat. Ten minutes of it are in test-long.
SOAK_SECONDS ?= 3600
.PHONY: soak
soak:
	@packaging/setup $(TEST_PURPOSES)
	@$(MAKE) --no-print-directory programs build/tests/imgdl-tests build/tests/tls-peer
	SOAK_SECONDS=$(SOAK_SECONDS) Tests/run soak

ECOSYSTEM := build/ecosystem/venv

# What `make test` does not install: Debian packages of the purpose `ecosystem`, Python packages in an environment of its own.
.PHONY: test-ecosystem
test-ecosystem:
	@packaging/setup $(TEST_PURPOSES) wheel ecosystem
	@$(MAKE) --no-print-directory all wheel wheel-bundled $(ECOSYSTEM)/.installed build/examples/glib
	Tests/run ecosystem

$(ECOSYSTEM)/.installed: packaging/python-packages packaging/python-packages-wheel | build/.setup-ecosystem
	$(PYTHON) -m venv --clear $(ECOSYSTEM)
	$(ECOSYSTEM)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# ---- Python wheels. They contain the library, and need no Swift; `bundled` also contains what the library is linked with.

WHEEL_TOOLS := build/wheel-tools
WHEEL_SOURCES := $(wildcard bindings/python/*.* bindings/python/imgdl/*.*)

.PHONY: wheel wheel-bundled
wheel: build/.setup-wheel build/wheels/.built
wheel-bundled: build/.setup-wheel build/wheels/bundled/.built

$(WHEEL_TOOLS)/.installed: packaging/python-packages-wheel | build/.setup-build build/.setup-wheel
	$(PYTHON) -m venv --clear $(WHEEL_TOOLS)
	$(WHEEL_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

build/wheels/.built: $(WHEEL_SOURCES) $(LIBRARY) $(WHEEL_TOOLS)/.installed
	rm -rf build/wheels
	$(WHEEL_TOOLS)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	    --wheel-dir build/wheels bindings/python
	@touch $@

build/wheels/bundled/.built: build/wheels/.built
	PATH="$(CURDIR)/$(WHEEL_TOOLS)/bin:$$PATH" auditwheel repair --wheel-dir build/wheels/bundled build/wheels/imgdl-*.whl
	@touch $@

.PHONY: bench
bench: bench-decode bench-cache bench-engine bench-transfer

# What a hit of the cache costs, among 1,000 entries and 1,000,000, and whether within its bounds (docs/performance.md).
.PHONY: bench-cache
bench-cache: build/.setup-bench build/bin/imgdl-cache-bench build/bench/hits
	@# Where two threads that wait for each other run, the kernel decides anew each time, and a hit takes up to twice as long on
	@# two cores as on one.
	taskset --cpu-list 0 build/bin/imgdl-cache-bench
	build/bench/hits

BENCH_COMMON := bench/measure.c bench/measure.h bench/origin.c bench/origin.h

build/bench/hits: bench/hits.c $(BENCH_COMMON) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $(filter %.c,$^) -Lbuild/lib -limgdl -pthread -Wl,-rpath,$(CURDIR)/build/lib

# What the engine costs besides the network (docs/performance.md).
.PHONY: bench-engine
bench-engine: build/.setup-bench build/bench/engine build/bench/first-request
	build/bench/engine table 'build/bench/first-request $(LIBRARY)' $(LIBRARY)
	bench/chunk-instructions build/bench/engine

build/bench/engine: bench/engine.c bench/engine.h bench/engine-requests.c bench/engine-transfers.c $(BENCH_COMMON) $(LIBRARY) \
		| build/.setup-bench
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $(filter %.c,$^) -Lbuild/lib -limgdl -lcurl -lm -pthread -Wl,-rpath,$(CURDIR)/build/lib

build/bench/first-request: bench/first-request.c $(BENCH_COMMON) include/imgdl.h
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $(filter %.c,$^) -ldl -pthread

# Decoding as the bytes come, against the codecs called by hand: CPU time, then instructions (docs/performance.md).
build/bench/decode build/bench/arrival: build/bench/%: bench/%.c bench/hand.c bench/hand.h bench/pictures.c bench/pictures.h \
		$(BENCH_COMMON) $(C_PICTURES) $(LIBRARY) | build/.setup-bench
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $(filter %.c %.o,$^) -Lbuild/lib -limgdl -lgif $(C_LIBS) -Wl,-rpath,$(CURDIR)/build/lib

.PHONY: bench-decode
bench-decode: build/.setup-bench build/bench/decode build/bench/arrival
	build/bench/decode
	build/bench/decode --thumbnails
	build/bench/arrival
	bench/instructions build/bench/decode

# The whole of it against the limit program and the peers (docs/performance.md): `bench/compare --help` tells the options.
BENCH_PYTHON := build/bench/venv/bin/python
# The distribution's, which is built with optimisation: another that comes first on PATH may take twice as long.
DISTRIBUTION_PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
BENCH_ROUNDS ?= 9
.PHONY: bench-transfer
bench-transfer: build/.setup-bench build/bench/limit build/bench/limit-fields build/bench/imgdl build/bench/pixbuf build/bench/urlsession \
    build/bench/consumption build/bench/work/origin.txt
	bench/compare --rounds $(BENCH_ROUNDS)

# The library that counts what its branches do; swift build would not know that it is another one.
build/profile/libimgdl.so.$(MAJOR): $(LIBRARY_SOURCES) | build/.setup-build build/static/libstdc++.a
	@mkdir -p $(@D)
	$(NEEDS_SWIFT)
	rm -rf build/swift-profile
	$(call build_library,build/swift-profile,-ir-profile-generate=$(CURDIR)/build/profile) \
	    -Xlinker -u__llvm_profile_runtime \
	    -Xlinker $(TOOLCHAIN)/lib/swift/clang/lib/linux/libclang_rt.profile-$$(uname -m).a
	cp build/swift-profile/release/libimgdl.so $@

.PHONY: profile
profile: build/profile/libimgdl.so.$(MAJOR) build/bench/imgdl build/bench/engine build/bench/hits build/bench/work/origin.txt
	bench/profile $(TOOLCHAIN)/bin/llvm-profdata

.PHONY: function-order
function-order: build/bench/imgdl build/bench/work/origin.txt
	bench/function-order

build/bench/consumption: bench/consumption.c | build/.setup-bench
	@mkdir -p $(@D)
	$(CC) $(WARNINGS) $(CFLAGS) -o $@ $<

build/bench/limit: bench/clients/limit.c bench/clients/client.c bench/hand.c bench/clients/client.h bench/hand.h | build/.setup-bench
	@mkdir -p $(@D)
	$(CC) $(WARNINGS) $(CFLAGS) -o $@ $(filter %.c,$^) -lcurl -lgif $(C_LIBS)

build/bench/limit-fields: build/bench/limit include/imgdl.h
	$(CC) $(WARNINGS) $(CFLAGS) -DSENDS_FIELDS -Iinclude -o $@ bench/clients/limit.c bench/clients/client.c bench/hand.c \
	    -lcurl -lgif $(C_LIBS)

build/bench/imgdl: bench/clients/imgdl.c bench/clients/client.c bench/clients/client.h $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(C_FLAGS) $(CFLAGS) -o $@ $(filter %.c,$^) -Lbuild/lib -limgdl -pthread -Wl,-rpath,$(CURDIR)/build/lib

build/bench/pixbuf: bench/clients/pixbuf.c bench/clients/client.c bench/clients/client.h | build/.setup-bench
	@mkdir -p $(@D)
	$(CC) $(WARNINGS) $(CFLAGS) $$(pkg-config --cflags gdk-pixbuf-2.0) -o $@ $(filter %.c,$^) -lcurl \
	    $$(pkg-config --libs gdk-pixbuf-2.0)

build/bench/urlsession: $(shell find bench/peers/urlsession -name '*.swift') | build/.setup-bench
	@mkdir -p $(@D)
	$(NEEDS_SWIFT)
	swift build -c release -j $(JOBS) --package-path bench/peers/urlsession --scratch-path build/swift-urlsession
	cp build/swift-urlsession/release/urlsession $@

build/bench/venv/.installed: packaging/bench-python-packages | build/.setup-bench
	$(DISTRIBUTION_PYTHON) -m venv --clear build/bench/venv
	$(BENCH_PYTHON) -m pip install --quiet --requirement $<
	@touch $@

build/bench/work/origin.txt: bench/work build/bench/venv/.installed build/bin/imgdl-pictures
	$(BENCH_PYTHON) bench/work $(@D)

.PHONY: format-check
format-check: | build/.setup-build
	$(NEEDS_SWIFT)
	@swift format lint --strict --recursive Sources Tests Package.swift

# ---- Installing

# packaging/install says what goes where. These reach it, and no shell in between, so that they may hold spaces.
INSTALL_VARIABLES := PREFIX DESTDIR LIBDIR INCLUDEDIR BINDIR DATADIR MANDIR BASHCOMPLETIONDIR ZSHCOMPLETIONDIR
export $(INSTALL_VARIABLES)

build/man/.written: include/imgdl.h packaging/man-pages packaging/header.py docs/man/imgdl.3.in | build/.setup-build
	packaging/man-pages build/man/man3
	@touch $@

.PHONY: man
man: build/man/.written

.PHONY: install uninstall
# Where all of it is built nothing is asked for, as root's PATH may have no Swift.
INSTALLED := $(LIBRARY) build/man/.written build/bin/imgdl
install: $(if $(filter-out install,$(MAKECMDGOALS)),$(INSTALLED))
	@$(MAKE) -q -o build/.setup-build -o build/static/libstdc++.a $(INSTALLED) 2>/dev/null || \
	    $(MAKE) --no-print-directory $(INSTALLED)
	@packaging/install
uninstall:
	@packaging/install --uninstall

# ---- Documentation

# A link that leads nowhere, a name in Rust's that does not resolve and a public function without comment fail.
.PHONY: docs
docs: build/.setup-docs $(LIBRARY)
	cd bindings/rust && RUSTDOCFLAGS="-D warnings" CARGO_TARGET_DIR=$(CURDIR)/build/rust-docs cargo doc --offline --no-deps
	packaging/docs/build build/docs build/rust-docs/doc

.PHONY: clean
clean:
	rm -rf build .build

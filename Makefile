# The front door of Calyx: `make help` says what can be done here. The build
# itself is CMake's; see CMakePresets.json.

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
RUN    ?= urls
TIME   ?= 60

.PHONY: all run test check bench bench-module fuzz install amalgamation clean help
.NOTPARALLEL:

all: build/build.ninja
	@cmake --build build -j $(JOBS)

build/build.ninja:
	@dev/install-packages build
	@cmake --preset release >/dev/null

run: build/build.ninja
	@cmake --build build -j $(JOBS) --target example_$(RUN)
	@build/examples/$(RUN)

test:
	@dev/install-packages build test amalgamation
	@dev/test $(JOBS)

check:
	@dev/install-packages build test amalgamation check bench
	@dev/check-format
	@dev/check-layers
	@dev/check-header
	@dev/check-compilers
	@dev/check-tidy
	@CALYX_FUZZ=200000 dev/test $(JOBS)
	@dev/check-symbols
	@dev/check-memory

bench:
	@dev/install-packages build bench
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx-bench
	@build/calyx-bench $(BENCH)

# The server module against GET, in a real server.
bench-module:
	@dev/install-packages build test
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx_module
	@bench/module $(BENCH)

# Each fuzzer for TIME seconds, from the corpus; what it finds is left in
# build/fuzz/found.
fuzz:
	@dev/install-packages build check
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz -j $(JOBS)
	@dev/fuzz $(TIME)

# The manifest goes, lest root's `make install` leave a file that yours cannot
# write.
install: all
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"
	@rm -f build/install_manifest.txt

amalgamation:
	@dev/install-packages build amalgamation
	@dev/amalgamate build/amalgamation

clean:
	@rm -rf build

help:
	@echo 'make                 build the library, into build/'
	@echo 'make run             build and run a first example'
	@echo 'make test            run the tests: each processor level, sanitizers, package'
	@echo 'make check           the tests, and the checks before a change is sent'
	@echo 'make bench           measure the speed; BENCH=--quick for half a minute'
	@echo 'make bench-module    measure the server module; ten minutes the first time'
	@echo 'make fuzz            run each fuzzer for TIME ($(TIME)) seconds'
	@echo 'make install         install under PREFIX ($(PREFIX)), within DESTDIR'
	@echo 'make amalgamation    the library as one calyx.c and calyx.h'
	@echo 'make clean           remove build/'
	@echo 'Missing Debian packages are installed on the way; dev/packages lists them.'

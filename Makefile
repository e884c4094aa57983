# The front door of Calyx: `make help` says what can be done here. The build
# itself is CMake's; see CMakePresets.json.

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
TIME   ?= 60
PORT   ?= 8000

.PHONY: all run test quick check bench bench-command bench-exact bench-module bench-plain bench-python bench-go bench-node bench-sqlite mutants fuzz install uninstall deb amalgamation web web-serve npm clean help
.NOTPARALLEL:

all: build/build.ninja
	@cmake --build build -j $(JOBS)

build/build.ninja:
	@dev/install-packages build
	@cmake --preset release >/dev/null

# The tour of the command; with RUN=urls, that example instead.
run: build/build.ninja
	@cmake --build build -j $(JOBS) \
	    --target $(if $(RUN),example_$(RUN),calyx-command) \
	    $$([ -t 1 ] || echo -- --quiet)
	@$(if $(RUN),build/examples/$(RUN),dev/tour build/calyx)

test:
	@dev/install-packages build test amalgamation web
	@dev/test $(JOBS)

# While you edit: one build, and the tests that take little time; T=kernels for
# all tests of that name.
quick:
	@dev/quick $(JOBS) $(T)

check:
	@dev/install-packages build test amalgamation web check bench cross deb
	@dev/check-format
	@dev/check-layers
	@dev/check-names
	@dev/check-words
	@dev/check-header
	@dev/check-compilers
	@dev/check-spare
	@dev/check-platforms
	@dev/check-tidy
	@CALYX_FUZZ=200000 CALYX_HUGE=4200 CALYX_LONG=1 dev/test $(JOBS)
	@! test -f build/web/figures.txt || sort -n build/web/figures.txt
	@dev/check-symbols
	@dev/deb build/deb
	@dev/check-memory

# Figures and charts go to build/bench. To put them into bench/README.md:
# bench/charts bench build/bench/bench.json
bench:
	@dev/install-packages build bench
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx-bench
	@mkdir -p build/bench
	@build/calyx-bench --json build/bench/bench.json $(BENCH)
	@bench/charts build/bench build/bench/bench.json
	@! cmake --build build -j $(JOBS) --target calyx-bench-small 2>/dev/null >/dev/null || \
	    build/calyx-bench-small

# The command against a floor; COMMAND=--lines=5000000 for a tenth of it.
bench-command:
	@dev/install-packages build bench
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx-command calyx-lines
	@bench/command/run build/calyx build/calyx-lines $(COMMAND)

# The exact verbs against sort, awk and DuckDB, which npm installs if it is there;
# EXACT=--lines=2000000 for a tenth of it.
bench-exact:
	@dev/install-packages build bench
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx-command calyx-lines
	@bench/command/exact build/calyx build/calyx-lines $(EXACT)

# The server module against GET, in a real server.
bench-module:
	@dev/install-packages build test
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx_module
	@bench/module $(BENCH)

# Filters as plain strings against GET and SET, in a server without a module.
bench-plain:
	@dev/install-packages build test
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx-command
	@bench/plain $(BENCH)

# The binding for Python against its set; PYTHON=1e6 for fewer keys.
bench-python:
	@dev/install-packages build test bench
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx_python
	@PYTHONPATH=build/python /usr/bin/python3 bench/python.py $(PYTHON)

# The binding for Go against its map.
bench-go:
	@dev/install-packages build check
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target libcalyx.so
	@test/go/run build --bench

# The extension for SQLite against an index.
bench-sqlite:
	@dev/install-packages build test
	@cmake --preset release >/dev/null
	@cmake --build build -j $(JOBS) --target calyx_sqlite
	@/usr/bin/python3 bench/sqlite.py build/calyx_sqlite.so

# The npm package against JavaScript's Set.
bench-node: npm
	@node bench/node.mjs build/npm/package/node.js

# Each fuzzer for TIME seconds, from the corpus; what it finds is left in
# build/fuzz/found.
fuzz:
	@dev/install-packages build check
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz -j $(JOBS)
	@dev/fuzz $(TIME)

# Deliberate bugs, each of which a test must notice; M=join for the bugs of that name.
mutants:
	@dev/install-packages build test check web
	@dev/mutants $(JOBS) $(M)

# The manifest goes, lest root's `make install` leave a file that yours cannot
# write.
install: all
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"
	@rm -f build/install_manifest.txt

uninstall: all
	@dev/uninstall build "$(PREFIX)" "$(DESTDIR)"

# Debian packages, into build/deb.
deb:
	@dev/install-packages build test deb
	@dev/deb build/deb

amalgamation:
	@dev/install-packages build amalgamation
	@dev/amalgamate build/amalgamation

# The page, into build/web/site; then on http://localhost:8000, or PORT. SITE is
# where it will be, for link previews.
web:
	@dev/install-packages web
	@web/build build/web $(SITE)

# Not again unless one of its sources is newer.
ifneq ($(filter web-serve,$(MAKECMDGOALS)),)
.DELETE_ON_ERROR:
build/web/site/index.html: $(shell find web node src include -type f)
	@echo "building the page, which takes a minute" >&2
	@$(MAKE) --no-print-directory web
endif

web-serve: build/web/site/index.html
	@python3 -m http.server --directory build/web/site --bind localhost $(PORT)

# The npm package, build/npm/calyx-VERSION.tgz.
npm:
	@dev/install-packages web
	@node/build build/npm

clean:
	@rm -rf build

help:
	@echo 'make                 build the command, the library and the server module, into build/'
	@echo 'make run             build it, and take a tour of the calyx command'
	@echo 'make test            run the tests: each processor level, sanitizers, package'
	@echo 'make quick           the short tests, while you edit: 10 seconds; T=kernels: one'
	@echo 'make check           the tests, and the checks before a change is sent: 40 minutes'
	@echo 'make bench           measure the speed: half an hour; BENCH=--quick: a minute'
	@echo 'make bench-command   measure the command on 50 million lines, 3 GB'
	@echo 'make bench-exact     measure the exact verbs on 40 million lines: half an hour'
	@echo 'make bench-module    measure the server module; ten minutes the first time'
	@echo 'make bench-plain     measure filters as plain strings'
	@echo 'make bench-python    measure the binding for Python'
	@echo 'make bench-go        measure the binding for Go'
	@echo 'make bench-node      measure the npm package'
	@echo 'make bench-sqlite    measure the extension for SQLite'
	@echo 'make fuzz            run each fuzzer for TIME ($(TIME)) seconds'
	@echo 'make mutants         deliberate bugs, which tests must notice: 10 minutes; M=join: some'
	@echo 'make install         install under PREFIX ($(PREFIX)), within DESTDIR'
	@echo 'make uninstall       remove what that installed'
	@echo 'make deb             Debian packages, into build/deb'
	@echo 'make amalgamation    the library as one calyx.c and calyx.h'
	@echo 'make web             the page: plan, see, try, inspect, in a browser'
	@echo 'make web-serve       serve it, on http://localhost:$(PORT)'
	@echo 'make npm             the package for Node.js and browsers'
	@echo 'make clean           remove build/'
	@echo 'Missing Debian packages are installed on the way; dev/packages lists them.'

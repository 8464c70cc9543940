# The two commands: `make demo` shows what this is, `make test` proves it. Both do all set-up.
.PHONY: build install package demo test sanitize sanitize-libraries gpu-check figures budget tidy tidy-changed format clean

JOBS ?= $(shell nproc)
BUILD = build/release
GAUNTLET = $(BUILD)/gauntlet

build: setup-build
	@tools/build.sh release gauntlet

# Below PREFIX, or below DESTDIR for whoever packs it.
PREFIX ?= /usr/local
install: setup-build
	@tools/build.sh release gauntlet command_pages
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX) --strip

# build/gauntlet_<version>_<architecture>.deb
package: setup-package
	@tools/build.sh release gauntlet command_pages
	@tools/package.sh $(BUILD)

demo: build
	$(GAUNTLET) analyze --quick --artifacts-dir artifacts

# All tests; the report's in a real browser, too.
test: setup-test
	@tools/build.sh release all
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE "gpu|slow"

# The libraries' tests under clang's sanitizers: all with those of addresses and undefined behaviour, those of threads with
# that of threads. Shorter than `sanitize`, which builds the program and its tests as well.
ASAN_TESTS = core_test model_test engine_test server_test load_test
TSAN_TESTS = core_test engine_test server_test load_test
# What is left out needs programs that are not built here.
LIBRARY_TESTS = -L cpu -LE "gpu|slow" -E "^(add_a_pair|fuzz_|serving_|gpu_record)"
sanitize-libraries: setup-sanitize
	@tools/build.sh asan $(ASAN_TESTS)
	ctest --test-dir build/asan --output-on-failure -j $(JOBS) $(LIBRARY_TESTS)
	@tools/build.sh tsan $(TSAN_TESTS)
	ctest --test-dir build/tsan --output-on-failure -j $(JOBS) $(LIBRARY_TESTS)

# The CPU tests under clang's sanitizers.
sanitize: setup-sanitize
	@tools/build.sh asan all
	ctest --test-dir build/asan --output-on-failure -j $(JOBS) -L cpu -LE "gpu|slow"
	@tools/build.sh tsan all
	ctest --test-dir build/tsan --output-on-failure -j $(JOBS) -L cpu -LE "gpu|slow"

# Runs on a GPU what the record does not cover and records it: docs/gpu-record.md. GPU_CHECK="--all" runs everything.
gpu-check: setup-build
	@tools/build.sh release gpu_stamp
	tools/gpu_check.sh $(GPU_CHECK) $(BUILD)

# What the build cost, and its program's size, against the budgets.
budget: build
	@tools/build_budget.sh $(BUILD)

# Corrects the tables of the pages by the committed records: tests/records/README.md
figures: setup-build
	@tools/build.sh release whole_test
	GAUNTLET_WRITE_FIGURES=1 $(BUILD)/tests/whole_test --gtest_filter='DocFigures.are_*'

# clang-tidy over every host source; CI looks at what changed.
tidy: setup-tidy
	@tools/tidy.sh
tidy-changed: setup-tidy
	@tools/tidy.sh --changed --at-most 24

setup-%:
	@tools/setup.sh $*

format:
	git ls-files '*.cc' '*.h' '*.cu' '*.cuh' | xargs clang-format-19 -i

clean:
	rm -rf build

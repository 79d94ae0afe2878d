# The commands a newcomer types. Everything real is in CMake.
# SPDX-License-Identifier: Apache-2.0
BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: all run test rig asan tsan install docs format format-check setup setup-all setup-rig clean help
.NOTPARALLEL:

# $(call configure,folder,options): once; a failure leaves nothing that looks configured.
define configure
	@cmake -S . -B $(1) $$(command -v ninja >/dev/null 2>&1 && echo "-G Ninja") $(2) > $(1).log 2>&1 \
	    || { cat $(1).log; rm -rf $(1).log $(1)/CMakeCache.txt; exit 1; }
	@rm -f $(1).log
endef
# $(call tests,folder): two at a time, for a test may have more ranks than there are cores.
define tests
	@cd $(1) && ctest --output-on-failure --parallel 2 --label-exclude rig
endef

all: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel $(JOBS)

$(BUILD)/CMakeCache.txt: | setup
	$(call configure,$(BUILD),)

# softib's own tests build and run it under the sanitizers; programs it is slipped under bring none.
build-asan/CMakeCache.txt: | setup
	$(call configure,build-asan,-DFISHPLATE_SANITIZE=address$(comma)undefined -DFISHPLATE_SOFTIB=OFF)

build-tsan/CMakeCache.txt: | setup
	$(call configure,build-tsan,-DFISHPLATE_SANITIZE=thread -DFISHPLATE_SOFTIB=OFF)

comma := ,

setup:
	@tools/setup

setup-all:
	@tools/setup --all

setup-rig:
	@tools/setup --rig

# Only what the benchmark needs is built: the tests can wait.
run: setup $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel $(JOBS) --target fishplate mpiexec
	@$(BUILD)/bin/mpiexec -n 4 $(BUILD)/bin/fishplate bench --short

test: setup-all all
	$(call tests,$(BUILD))

# Looking for leaks takes seconds in every process, so only the unit tests do (tests/unit/CMakeLists.txt asks for it).
asan: export ASAN_OPTIONS := detect_leaks=0
asan: setup-all build-asan/CMakeCache.txt
	@cmake --build build-asan --parallel $(JOBS)
	$(call tests,build-asan)

# Jobs on the kernel's soft-RoCE in a QEMU guest; what cannot be installed here is skipped, with the reason.
rig: setup-rig all
	@cd $(BUILD) && ctest --output-on-failure --label-regex rig

tsan: setup-all build-tsan/CMakeCache.txt
	@cmake --build build-tsan --parallel $(JOBS)
	$(call tests,build-tsan)

install: all
	@cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

format:
	@tools/check-format --fix

format-check:
	@tools/check-format

docs: all
	@$(BUILD)/bin/fishplate info --tunables --markdown > docs/tunables.md

clean:
	@rm -rf build build-asan build-tsan

help:
	@echo "make            build into build/bin and build/lib"
	@echo "make run        install what is missing, build, and run the main benchmark on 4 ranks"
	@echo "make test       the same set-up, then all tests"
	@echo "make rig        the network tests on the kernel's soft-RoCE, in a QEMU guest"
	@echo "make asan       all tests under the address and undefined-behaviour sanitizers"
	@echo "make tsan       all tests under the thread sanitizer"
	@echo "make install PREFIX=/opt/fishplate"
	@echo "make format     clang-format over everything"
	@echo "make docs       write docs/tunables.md anew from the library"

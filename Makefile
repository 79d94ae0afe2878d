# The commands a newcomer types. Everything real is in CMake.
# SPDX-License-Identifier: Apache-2.0
BUILD  ?= build
PREFIX ?= /usr/local
GENERATOR := $(shell command -v ninja >/dev/null 2>&1 && echo "-G Ninja")

.PHONY: all run test asan tsan install format format-check setup clean help

all: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel

$(BUILD)/CMakeCache.txt: | setup
	@cmake -S . -B $(BUILD) $(GENERATOR) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

setup:
	@tools/setup

run: setup all
	@$(BUILD)/bin/mpiexec -n 4 $(BUILD)/bin/fishplate bench --short

test: setup all
	@cd $(BUILD) && ctest --output-on-failure --parallel 2

asan: setup
	@cmake -S . -B build-asan $(GENERATOR) -DFISHPLATE_SANITIZE=address,undefined > /dev/null
	@cmake --build build-asan --parallel
	@cd build-asan && ctest --output-on-failure --parallel 2

tsan: setup
	@cmake -S . -B build-tsan $(GENERATOR) -DFISHPLATE_SANITIZE=thread > /dev/null
	@cmake --build build-tsan --parallel
	@cd build-tsan && ctest --output-on-failure --parallel 2

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

format-check:
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror

clean:
	@rm -rf build build-asan build-tsan

help:
	@echo "make            build into build/bin and build/lib"
	@echo "make run        install what is missing, build, and run the main benchmark on 4 ranks"
	@echo "make test       the same set-up, then all tests"
	@echo "make asan       all tests under the address and undefined-behaviour sanitizers"
	@echo "make install PREFIX=/opt/fishplate"
	@echo "make format     clang-format over everything"

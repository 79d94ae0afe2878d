# The commands a newcomer types. Everything real is in CMake.
# SPDX-License-Identifier: Apache-2.0
BUILD  ?= build
# Where `make install` installs; the build folder remembers the last one, /usr/local at first.
PREFIX ?=
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
# Tests at a time: few, for a test may have more ranks than there are cores, but many wait for clocks and daemons. A sample
# of 109 under the address sanitizer took 119 s with three on two cores, which were idle for a seventh of it, and 104 s with four.
TEST_JOBS ?= 4

.PHONY: all configure run lab test gpu clang clang-build fresh rig asan asan-build tsan tsan-build coverage faults soak fuzz fuzz-long install deb dist docs format format-check setup setup-all setup-deb \
        setup-rig clean help
.NOTPARALLEL:

# $(call tests,folder,labels): TESTS=pattern runs only the tests whose names match; the shell reads it, since a "$" in it means
# nothing to make. In CI a test that fails runs once more; `.ci/run` names those that needed it, for each is a defect that waits
# to be found.
define tests
	@cd $(1) && ctest --output-on-failure --parallel $(TEST_JOBS) $(2) $(if $(CI),--repeat until-pass:2) --no-tests=error -R "$${TESTS:-.}"
endef

all: configure
	@cmake --build $(BUILD) --parallel $(JOBS)

configure: setup
	@tools/configure $(BUILD)
	@$(if $(PREFIX),cmake -DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX)) $(BUILD) >/dev/null)

setup:
	@tools/setup

setup-all:
	@tools/setup --all

setup-deb:
	@tools/setup --deb

setup-rig:
	@tools/setup --rig

# Builds only what the benchmark needs. Ranks on one node communicate through shared memory; on virtual nodes every message
# crosses InfiniBand, on an adapter of this machine or in software.
run: configure
	@tools/progress build cmake --build $(BUILD) --parallel $(JOBS) --target fishplate mpiexec softib softib_tool
	@$(BUILD)/bin/mpiexec -n 4 $(BUILD)/bin/fishplate bench --short --summary --output $(BUILD)/bench-node.txt
	@$(BUILD)/bin/mpiexec -n 4 -vnodes 4 $(BUILD)/bin/fishplate bench --short --summary --output $(BUILD)/bench-vnodes.txt
	@echo "Tables: $(BUILD)/bench-node.txt, $(BUILD)/bench-vnodes.txt. Next: bench/peers compares with MPICH and Open MPI;"
	@echo "$(BUILD)/bin/mpicc examples/ring.c -o ring && $(BUILD)/bin/mpiexec -n 4 ./ring runs a program."

# Simulator, figures of the papers, studies of protocols: a program of its own.
lab: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target fishplate-lab

test: setup-all configure
	@cmake --build $(BUILD) --parallel $(JOBS) $$(tools/test-targets $(BUILD) "$${TESTS:-.}")
	$(call tests,$(BUILD),--label-exclude rig)

# The tests of GPU memory on the GPU of this machine instead of softcuda.
gpu: export TESTS ?= ^gpu/
gpu: configure
	@cmake -B $(BUILD) -DFISHPLATE_TEST_GPU=ON >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) $$(tools/test-targets $(BUILD) "$$TESTS")
	$(call tests,$(BUILD),)
	@cmake -B $(BUILD) -DFISHPLATE_TEST_GPU=OFF >/dev/null

# Tests that go through every state there is.
EXHAUSTIVE := _all$$|test_(gate|choice)$$

# Everything with the other compiler, unoptimised: it warns of other things. A few tests show that the code it makes runs; not
# those that try every case there is, which take long without optimisation and would find the same as in $(BUILD).
clang: export TESTS ?= ^(examples/|unit/)
clang: clang-build
	$(call tests,build-clang,--label-exclude rig --exclude-regex '$(EXHAUSTIVE)|test_(rendezvous|random)$$')

clang-build: setup-all
	@CC=clang CXX=clang++ tools/configure build-clang -DCMAKE_BUILD_TYPE=Debug -DFISHPLATE_WERROR=ON
	@cmake --build build-clang --parallel $(JOBS)

# The README's commands on a bare Debian, in a folder; what cannot be made here is skipped, with the reason. In CI, where
# $(BUILD) was made from the same commit, the libraries must be the same bytes.
fresh:
	@tools/setup --fresh
	@tests/fresh/fresh.py --folder $(BUILD)/fresh $(if $(CI),--compare $(BUILD)) || { status=$$?; [ $$status = 77 ] || exit $$status; }

# Looking for leaks takes seconds in every process, so only the unit tests do (tests/unit/CMakeLists.txt asks for it).
# Every program once over shared memory and once over softib, the transport's own tests with every tunable; the rest of
# the runs would execute the same code again (`ctest --test-dir build-asan` runs them too).
# Checks of the source and of packages have nothing that a sanitizer watches.
# Programs that softib is slipped under, and that bring no sanitizer, are left to the plain build. So is what runs other tests'
# parts once more: commands of the documentation, the laboratory's programs (its unit tests do run), the model checker, messages beyond
# 2 GiB, the benchmarks with a second number of ranks, Slurm's own daemons, collectives on GPU memory with two more numbers of ranks; and
# $(EXHAUSTIVE), state machines without memory of their own.
asan asan-build: export ASAN_OPTIONS := detect_leaks=0
asan: asan-build
	$(call tests,build-asan,--label-exclude 'rig|sweep' --exclude-regex '^(source|packaging|spin|pages)/|^lab/(papers|kernels|bcast|sim|ib)$$|^mpi/large/|^tools/bench/4$$|^launcher/slurm$$|^gpu/collectives/(3|4/vnodes)$$|$(EXHAUSTIVE)')

asan-build: setup-all
	@tools/configure build-asan -DFISHPLATE_SANITIZE=address,undefined
	@cmake --build build-asan --parallel $(JOBS)

# Jobs on the kernel's soft-RoCE in a QEMU guest; what cannot be installed here is skipped, with the reason. The guest runs
# them first, a line for each, and each is then a test that tells what became of it. A guest that does not boot ends it all.
rig: setup-rig all
	@python3 -B tests/rig/rig.py --build $(BUILD) all || { status=$$?; [ $$status = 77 ] || exit $$status; }
	@cd $(BUILD) && ctest --output-on-failure --label-regex rig --exclude-regex '^rig.boot$$' --fixture-exclude-setup rig

# What has threads: programs of MPI_THREAD_MULTIPLE and of the progress thread, the event thread of the InfiniBand
# transport, softib's engine. Not its parsers, which are fed by one thread.
tsan tsan-build: export TSAN_OPTIONS := exitcode=66 halt_on_error=1 suppressions=$(CURDIR)/tests/tsan.supp
tsan: TEST_JOBS := 6 # half of them wait for clocks
tsan: tsan-build
	$(call tests,build-tsan,--label-regex 'threads|softib' --label-exclude sweep --exclude-regex 'fuzz_(frame|wire)$$')

tsan-build: setup-all
	@tools/configure build-tsan -DFISHPLATE_SANITIZE=thread
	@cmake --build build-tsan --parallel $(JOBS) --target thread_tests

# Which lines the tests execute, folder by folder. TESTS=PATTERN counts only what those tests execute. Counting makes programs
# slow: a test that takes too long then does not keep the others' lines from being reported. What a process executed that is
# killed, or that ends by _exit, is not counted.
coverage: setup-all
	@tools/configure build-coverage -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="--coverage -Og -fprofile-update=atomic"
	@cmake --build build-coverage --parallel $(JOBS)
	-$(call tests,build-coverage,--label-exclude 'rig|sweep')
	@tools/coverage build-coverage

# Every kill point and every fault in every situation, a quarter of an hour; docs/faults.md says what each means. SEED=n damages other ranks at other
# moments.
SEED ?= 1
faults: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target faults_programs
	@python3 -B tests/faults/points.py --build $(BUILD)
	@python3 -B tests/faults/faults.py --build $(BUILD) --seed $(SEED)

# Mixed traffic, connections opened and closed under a budget: SECONDS=3600 of it; fails when memory grows.
SECONDS ?= 3600
soak: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target soak mpiexec softib
	@python3 -B tests/soak/soak.py --build $(BUILD) --seconds $(SECONDS) --svg $(BUILD)/soak.svg
	@echo "The curves are in $(BUILD)/soak.svg."

# Every parser of bytes from outside, SECONDS=60 each: with libFuzzer where clang has it, else with seeded changes of the
# kept inputs.
fuzz: setup
	@if echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n > 9; }' | \
	    clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null; then \
	    CC=clang CXX=clang++ tools/configure build-fuzz -DFISHPLATE_FUZZER=ON -DFISHPLATE_SANITIZE=address,undefined,fuzzer-no-link; \
	else \
	    tools/configure build-fuzz -DFISHPLATE_SANITIZE=address,undefined; \
	fi
	@cmake --build build-fuzz --parallel $(JOBS) --target fuzz_targets
	@python3 -B tests/fuzz/fuzz.py --build build-fuzz $(if $(RUNS),--runs $(RUNS) --record build-fuzz/fuzz.txt,--seconds $(if $(filter file,$(origin SECONDS)),60,$(SECONDS)))

# The long walk of docs/fuzzing.md, some hours: 10^7 inputs to each target without sanitizers, then 10^6 with them. Figures go to
# $(BUILD)/fuzz.txt and build-fuzz/fuzz.txt as each target ends.
fuzz-long: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target fuzz_targets
	@nice -n 19 python3 -B tests/fuzz/fuzz.py --build $(BUILD) --runs 10000000 --seed 13 --record $(BUILD)/fuzz.txt
	@nice -n 19 $(MAKE) --no-print-directory fuzz RUNS=1000000

install: configure
	@tools/progress build cmake --build $(BUILD) --parallel $(JOBS) --target installed
	@cmake --install $(BUILD)

deb: setup-deb configure
	@tools/progress build cmake --build $(BUILD) --parallel $(JOBS) --target installed
	@cd $(BUILD) && cpack -G DEB > cpack.log || { cat cpack.log; exit 1; }
	@ls $(BUILD)/fishplate*.deb

# What is committed, the same bytes each time; VERSION.git says which commit.
DIST ?= .
dist:
	@version=$$(sed -n 's/^project(fishplate VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt) && name=fishplate-$$version && \
	    head=$$(mktemp -d) && trap 'rm -rf "$$head"' EXIT && git rev-parse HEAD > "$$head/VERSION.git" && \
	    touch -d "@$$(git log -1 --format=%ct)" "$$head/VERSION.git" && \
	    git archive --format=tar --prefix=$$name/ --add-file="$$head/VERSION.git" HEAD | gzip -n9 > "$(DIST)/$$name.tar.gz" && \
	    echo "$(DIST)/$$name.tar.gz"

format:
	@tools/check-format --fix

format-check:
	@tools/check-format

docs: all
	@$(BUILD)/bin/fishplate info --tunables --markdown > docs/tunables.md

clean:
	@rm -rf build build-asan build-tsan build-clang build-fuzz build-coverage

help:
	@echo "make            build into build/bin and build/lib"
	@echo "make run        install what is missing, build, and run the main benchmark on 4 ranks"
	@echo "make lab        build the laboratory, fishplate-lab: simulator, figures of the papers, studies"
	@echo "make test       the same set-up, then all tests"
	@echo "make test TESTS=PATTERN    only the tests whose names match, and only what they need is built"
	@echo "make clang      everything built with clang, and a few tests"
	@echo "make fresh      the README's commands on a bare Debian in a folder (root)"
	@echo "make rig        the network tests on the kernel's soft-RoCE, in a QEMU guest"
	@echo "make asan       the tests under the address and undefined-behaviour sanitizers, softib included"
	@echo "make tsan       what has threads, softib's engine included, under the thread sanitizer"
	@echo "make coverage   which lines of each folder the tests execute"
	@echo "make faults     the fault matrix: every fault in every situation (SEED=n)"
	@echo "make soak       an hour of mixed traffic, memory of every rank as a curve (SECONDS=n)"
	@echo "make fuzz       the parsers of bytes from outside, SECONDS=60 each"
	@echo "make install PREFIX=/opt/fishplate"
	@echo "make deb        Debian packages, for /opt/fishplate"
	@echo "make dist       an archive of what is committed"
	@echo "make format     clang-format over everything"
	@echo "make docs       write docs/tunables.md anew from the library"

# The commands of README and CONTRIBUTING. CMake builds; this file only calls CMake, ctest and tools/setup.
# SPDX-License-Identifier: Apache-2.0
BUILD  ?= build
# Prefix of `make install`. The build folder remembers the last one; the default is /usr/local.
PREFIX ?=
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
# Number of tests that run in parallel. Many tests have more ranks than there are cores, others wait for timers and daemons. 109 tests
# under the address sanitizer took 119 s with three in parallel on two cores (idle for a seventh of the time), and 104 s with four.
TEST_JOBS ?= 4

.PHONY: all configure run lab test gpu clang clang-build fresh rig asan asan-build tsan tsan-build coverage faults soak fuzz fuzz-long install deb dist docs format format-check setup setup-all setup-deb \
        setup-rig clean help
.NOTPARALLEL:

# $(call tests,folder,labels): TESTS=pattern runs only the tests whose names match. The shell expands TESTS, because make would
# interpret a "$" in the pattern. In CI a failed test runs a second time; `.ci/run` lists the tests that needed it.
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

# Builds only the targets of the benchmark. Ranks on one node communicate through shared memory; between virtual nodes every message
# crosses InfiniBand, through an adapter of this machine or through softib.
run: configure
	@tools/progress build cmake --build $(BUILD) --parallel $(JOBS) --target fishplate mpiexec softib softib_tool
	@$(BUILD)/bin/mpiexec -n 4 $(BUILD)/bin/fishplate bench --short --summary --output $(BUILD)/bench-node.txt
	@$(BUILD)/bin/mpiexec -n 4 -vnodes 4 $(BUILD)/bin/fishplate bench --short --summary --output $(BUILD)/bench-vnodes.txt
	@echo "Tables: $(BUILD)/bench-node.txt, $(BUILD)/bench-vnodes.txt. Next: bench/peers compares with MPICH and Open MPI;"
	@echo "$(BUILD)/bin/mpicc examples/ring.c -o ring && $(BUILD)/bin/mpiexec -n 4 ./ring runs a program."

# Simulator, figures of the papers, studies of protocols: the program fishplate-lab.
lab: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target fishplate-lab

test: setup-all configure
	@cmake --build $(BUILD) --parallel $(JOBS) $$(tools/test-targets $(BUILD) "$${TESTS:-.}")
	$(call tests,$(BUILD),--label-exclude rig)

# Runs the tests of GPU memory on the GPU of this machine instead of softcuda.
gpu: export TESTS ?= ^gpu/
gpu: configure
	@cmake -B $(BUILD) -DFISHPLATE_TEST_GPU=ON >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) $$(tools/test-targets $(BUILD) "$$TESTS")
	$(call tests,$(BUILD),)
	@cmake -B $(BUILD) -DFISHPLATE_TEST_GPU=OFF >/dev/null

# Tests that explore all states of a state machine.
EXHAUSTIVE := _all$$|test_(gate|choice)$$

# Compiles everything with clang, unoptimised, because clang warns of other defects than gcc. A few tests show that the result runs.
# Exhaustive tests are left out: they take long without optimisation and show nothing that they do not show in $(BUILD).
clang: export TESTS ?= ^(examples/|unit/)
clang: clang-build
	$(call tests,build-clang,--label-exclude rig --exclude-regex '$(EXHAUSTIVE)|test_(rendezvous|random)$$')

clang-build: setup-all
	@CC=clang CXX=clang++ tools/configure build-clang -DCMAKE_BUILD_TYPE=Debug -DFISHPLATE_WERROR=ON
	@cmake --build build-clang --parallel $(JOBS)

# Runs the README's commands on a bare Debian root in a folder; prints the reason if the root cannot be made here. In CI, where
# $(BUILD) was built from the same commit, the libraries must have the same bytes.
fresh:
	@tools/setup --fresh
	@tests/fresh/fresh.py --folder $(BUILD)/fresh $(if $(CI),--compare $(BUILD)) || { status=$$?; [ $$status = 77 ] || exit $$status; }

# Leak detection takes seconds in every process, so only the unit tests enable it (tests/unit/CMakeLists.txt). Allocations that are
# too large fail as they do without the sanitizer.
# Each program runs once over shared memory and once over softib, the tests of the transport with every setting; other runs (label
# `sweep`) execute the same code again. `ctest --test-dir build-asan` runs them too.
# Left to the plain build: checks of the source and of packages; other projects' programs on softib, which are not compiled with a
# sanitizer; commands of the documentation; programs of the laboratory (its unit tests do run); the model checker; messages beyond 2 GiB;
# benchmarks with further numbers of ranks; Slurm's daemons; and $(EXHAUSTIVE), which allocate no memory.
asan asan-build: export ASAN_OPTIONS := detect_leaks=0:allocator_may_return_null=1
asan: asan-build
	$(call tests,build-asan,--label-exclude 'rig|sweep' --exclude-regex '^(source|packaging|spin|pages)/|^lab/(papers|kernels|bcast|sim|ib|rails)$$|^mpi/large/|^tools/bench/4$$|^launcher/slurm$$|$(EXHAUSTIVE)')

asan-build: setup-all
	@tools/configure build-asan -DFISHPLATE_SANITIZE=address,undefined
	@cmake --build build-asan --parallel $(JOBS)

# Jobs on the kernel's soft-RoCE in a QEMU guest; prints the reason if the guest cannot be installed here. The guest runs all jobs
# first and prints a line for each; ctest then reports the result of each job as a test. A guest that does not boot fails the target.
rig: setup-rig all
	@python3 -B tests/rig/rig.py --build $(BUILD) all || { status=$$?; [ $$status = 77 ] || exit $$status; }
	@cd $(BUILD) && ctest --output-on-failure --label-regex rig --exclude-regex '^rig.boot$$' --fixture-exclude-setup rig

# Tests of code with threads: MPI_THREAD_MULTIPLE, the progress thread, the event thread of the InfiniBand transport and softib's engine.
# Fuzzers of softib's parsers are left out: one thread calls the parsers.
tsan tsan-build: export TSAN_OPTIONS := exitcode=66 halt_on_error=1 suppressions=$(CURDIR)/tests/tsan.supp
tsan: TEST_JOBS := 6 # half of these tests wait for timers
tsan: tsan-build
	$(call tests,build-tsan,--label-regex 'threads|softib' --label-exclude sweep --exclude-regex 'fuzz_(frame|wire)$$')

tsan-build: setup-all
	@tools/configure build-tsan -DFISHPLATE_SANITIZE=thread
	@cmake --build build-tsan --parallel $(JOBS) --target thread_tests

# Prints the lines that the tests execute, folder by folder; TESTS=PATTERN counts the matching tests only. Instrumented programs are
# slow: the report is printed even if tests exceed their time limits. Lines executed by a process that is killed or calls _exit are
# not counted.
coverage: setup-all
	@tools/configure build-coverage -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="--coverage -Og -fprofile-update=atomic"
	@cmake --build build-coverage --parallel $(JOBS)
	-$(call tests,build-coverage,--label-exclude 'rig|sweep')
	@tools/coverage build-coverage

# Every kill point and every fault in every situation (docs/faults.md), a quarter of an hour. SEED=n selects other ranks and other
# moments.
SEED ?= 1
faults: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target faults_programs
	@python3 -B tests/faults/points.py --build $(BUILD)
	@python3 -B tests/faults/faults.py --build $(BUILD) --seed $(SEED)

# Mixed traffic for SECONDS=3600, with connections opened and closed under a limit; fails if memory grows.
SECONDS ?= 3600
soak: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target soak mpiexec softib
	@python3 -B tests/soak/soak.py --build $(BUILD) --seconds $(SECONDS) --svg $(BUILD)/soak.svg
	@echo "The curves are in $(BUILD)/soak.svg."

# Fuzzes every parser of external input for SECONDS=60: with libFuzzer if clang has it, else with seeded mutations of the stored
# inputs.
fuzz: setup
	@if echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n > 9; }' | \
	    clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null; then \
	    CC=clang CXX=clang++ tools/configure build-fuzz -DFISHPLATE_FUZZER=ON -DFISHPLATE_SANITIZE=address,undefined,fuzzer-no-link; \
	else \
	    tools/configure build-fuzz -DFISHPLATE_SANITIZE=address,undefined; \
	fi
	@cmake --build build-fuzz --parallel $(JOBS) --target fuzz_targets
	@python3 -B tests/fuzz/fuzz.py --build build-fuzz $(if $(RUNS),--runs $(RUNS) --record build-fuzz/fuzz.txt,--seconds $(if $(filter file,$(origin SECONDS)),60,$(SECONDS)))

# The long run of docs/fuzzing.md, some hours: 10^7 inputs for each target without sanitizers, then 10^6 with them. The results are
# appended to $(BUILD)/fuzz.txt and build-fuzz/fuzz.txt when a target ends.
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

# Archive of the commit HEAD, reproducible byte by byte; VERSION.git in the archive contains the commit.
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
	@echo "make run        install missing packages, build, run the main benchmark on 4 ranks"
	@echo "make lab        build the laboratory, fishplate-lab: simulator, figures of the papers, studies"
	@echo "make test       the same set-up, then all tests"
	@echo "make test TESTS=PATTERN    only the tests whose names match, and only what they need is built"
	@echo "make clang      everything built with clang, and a few tests"
	@echo "make fresh      the README's commands on a bare Debian in a folder (root)"
	@echo "make rig        the network tests on the kernel's soft-RoCE, in a QEMU guest"
	@echo "make asan       the tests under the address and undefined-behaviour sanitizers, softib included"
	@echo "make tsan       the tests of code with threads, softib included, under the thread sanitizer"
	@echo "make coverage   which lines of each folder the tests execute"
	@echo "make faults     the fault matrix: every fault in every situation (SEED=n)"
	@echo "make soak       an hour of mixed traffic, memory of every rank as a curve (SECONDS=n)"
	@echo "make fuzz       the parsers of bytes from outside, SECONDS=60 each"
	@echo "make install PREFIX=/opt/fishplate"
	@echo "make deb        Debian packages, for /opt/fishplate"
	@echo "make dist       a source archive of the last commit"
	@echo "make format     clang-format over everything"
	@echo "make docs       regenerate docs/tunables.md"

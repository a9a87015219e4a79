# redlockd. Start with `make help`.
#
# BUILD is the folder of one kind of build: build (the release), build/asan, build/coverage. The
# compiler records the headers of each object, so a changed header rebuilds what includes it.

# In a Turkish locale, tr and [a-z] take "i" for another letter.
export LC_ALL := C.UTF-8

VERSION := 0.2.0
SOVERSION := 0
BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
OBJCOPY ?= objcopy
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wconversion -Wstrict-prototypes
CPPFLAGS += -D_GNU_SOURCE -DREDLOCKD_VERSION='"$(VERSION)"' -I$(BUILD)/generated -I.
CFLAGS   ?= -O2 -g -fstack-protector-strong
# In sanitizer builds and tight builds, pools fill each new object with this byte.
ifneq ($(SANITIZE)$(TIGHT),)
CPPFLAGS += -DPOOL_FILL=0x5a
endif
ALL_CFLAGS = -std=c11 $(WARNINGS) $(CFLAGS) $(SANITIZE)
# The release is optimised across files, with more inlining than by default. This saves a fifth of
# all instructions (docs/design/performance-history.md). The vectorizer that merges struct members
# into pairs is off: with it, functions would begin with ten instructions that only a rare path
# needs.
# The objects contain machine code as well as the link-time form, so that tests link fast.
# If the user sets CFLAGS, or the compiler is not gcc, none of this applies. A package sets CFLAGS as
# well as WHOLE_PROGRAM=yes.
WHOLE_PROGRAM ?= $(and $(filter file,$(origin CFLAGS)),$(findstring gcc,$(CC)),yes)
ifeq ($(WHOLE_PROGRAM),yes)
WHOLE    := -O3 -fno-tree-slp-vectorize -flto=auto -ffat-lto-objects \
            --param max-inline-insns-auto=60 --param inline-unit-growth=100
PARTS    := -fno-lto
endif
LIBS     := -levent_openssl -levent_core -levent_extra -lhiredis -lyaml -lssl -lcrypto
TEST_LIBS := $(LIBS) -lcheck -lsubunit -lm -lrt -lpthread

SCRIPTS  := $(wildcard protocol/*.lua)
SOURCES  := $(wildcard protocol/*.c config/*.c engine/*.c engine/*/*.c server/*.c server/*/*.c)
OBJECTS  := $(patsubst %.c,$(BUILD)/%.o,$(filter-out server/main.c,$(SOURCES)))
CLIENT   := $(patsubst %.c,$(BUILD)/client/pic/%.o,\
                  $(wildcard client/c/*.c) protocol/address.c protocol/text.c protocol/token.c)
CLI      := $(patsubst %.c,$(BUILD)/%.o,$(filter-out client/cli/main.c,$(wildcard client/cli/*.c)))
UNIT     := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
E2E      := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/e2e/test_*.c))
FAKE_MASTER := $(wildcard tests/fake/*.c)
UNIT_SUPPORT := $(patsubst %.c,$(BUILD)/%.o,$(FAKE_MASTER) tests/runner.c tests/prng.c tests/history.c tests/certs.c tests/nameserver.c tests/replies.c \
                  $(filter-out tests/unit/session_fixture.c $(wildcard tests/unit/test_*.c),$(wildcard tests/unit/*.c)))
FUZZ     := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SUPPORT := $(patsubst %.c,$(BUILD)/%.o,\
                  $(filter-out $(wildcard tests/fuzz/fuzz_*.c),$(wildcard tests/fuzz/*.c)) \
                  $(wildcard tests/unit/cluster*.c) tests/replies.c $(FAKE_MASTER))
SIM      := $(BUILD)/tests/sim/sim
TEST_SIM := $(BUILD)/tests/sim/test_sim
SIM_SUPPORT := $(patsubst %.c,$(BUILD)/%.o,$(FAKE_MASTER) tests/prng.c tests/history.c \
                  $(filter-out tests/sim/sim.c tests/sim/test_%.c,$(wildcard tests/sim/*.c)))
SHIM     := $(BUILD)/tests/shim/clock.so
E2E_SUPPORT  := $(patsubst %.c,$(BUILD)/%.o,tests/runner.c tests/prng.c tests/history.c tests/certs.c \
                  tests/nameserver.c $(FAKE_MASTER) \
                  $(filter-out $(wildcard tests/e2e/test_*.c),$(wildcard tests/e2e/*.c)))
TORTURE  := $(BUILD)/tests/torture/test_torture
BENCH    := $(BUILD)/tests/bench/test_bench
INSTRUCTIONS := $(BUILD)/tests/bench/test_instructions
BENCH_PEERS := $(BUILD)/tests/bench/test_peers
BENCH_OVERLOAD := $(BUILD)/tests/bench/test_overload
BENCH_PROTOCOLS := $(BUILD)/tests/bench/test_protocols
PEERS    := $(BUILD)/peers
BENCH_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/bench/test_%.c,$(wildcard tests/bench/*.c)))
TORTURE_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/torture/*.c))

# The manual. Two of its pages are generated from docs/protocol.txt and redlockd.yaml.example.
PAGES    := $(wildcard docs/man/*.[1-8]) \
                  $(patsubst docs/man/%.in,$(BUILD)/man/%,$(wildcard docs/man/*.in))

# Environment of the tests on real masters: the programs they start, the compiler of their examples,
# and the commit for reports.
E2E_ENV = BUILD=$(BUILD) REDLOCKD=$(BUILD)/redlockd REDLOCK=$(BUILD)/redlock CLOCK_SHIM=$(SHIM) \
    CC='$(CC) $(SANITIZE)' \
    TORTURE_COMMIT=$$(git describe --always --dirty 2>/dev/null || echo unknown)
# Environment of the tests that run the examples of the manual.
EXAMPLES_ENV = PAGES='README.md $(PAGES)' LIBREDLOCK=$(BUILD)/libredlock.a

# A recipe that fails after it has written part of its target leaves nothing that looks up to date.
.DELETE_ON_ERROR:

all: $(BUILD)/redlockd $(BUILD)/redlock $(BUILD)/libredlock.a $(BUILD)/libredlock.so \
     $(BUILD)/redlock.pc $(PAGES)

help:
	@echo 'make demo       install missing packages, build, and demonstrate redlockd'
	@echo 'make check      every change must pass: unit and end-to-end tests, simulator, manual, style'
	@echo 'make audit      all other checks: sanitizers, mutants, tight limits, coverage, clang, fuzzers, packages, check-clients'
	@echo 'make            build $(BUILD)/redlockd, $(BUILD)/redlock and the client library'
	@echo 'make install    install into DESTDIR/PREFIX ($(DESTDIR)$(PREFIX))'
	@echo 'make uninstall  remove the installed files'
	@echo 'make deb        build the Debian packages, in $(BUILD)/deb'
	@echo 'make dist distcheck   write the source tarball; check that it builds without git'
	@echo 'make packages   install, upgrade and remove the packages in a Debian system with systemd (as root)'
	@echo 'make packages-trixie   the same with packages for Debian 13, in Debian 13 (as root)'
	@echo 'make deploy-test    follow docs/deploy.md on five Debian systems with systemd (as root): [VERBOSE=1]'
	@echo 'make deps       install the packages that make check needs (with apt, and sudo unless root)'
	@echo 'make unit e2e   run the unit tests; run the tests on real Redis masters'
	@echo 'make e2e-valkey e2e-redis8   run e2e on Valkey 9; on Redis 8 (fetched from later Debian releases)'
	@echo 'make examples   run the examples of the manual and of README.md'
	@echo 'make sim        run random schedules on virtual time: [SEED=n] [RUNS=n] [FAULTS=...] [TRACE=1]'
	@echo 'make sim-tight  run sim with limits so small that schedules reach them'
	@echo 'make sim-coverage   show which branches of the engine the schedules reach, and which never'
	@echo 'make mutants    remove rules from the code, one at a time; the simulator must find each'
	@echo 'make torture    inject faults; no two clients may hold one lock: SECONDS=60 SEED=n FAULTS=all'
	@echo 'make torture-clients    the same with the client packages of all languages and node-redlock: SECONDS=300 SEED=n'
	@echo 'make storm      kill redlock run at random; no two commands may run at once: RUNS=1000 SEED=n'
	@echo 'make bench      measure throughput, latency and processor time, relative to what Redis allows'
	@echo 'make bench-overload measure throughput, waits and fairness under too much load: [OVERLOAD_ONLY=9000 ONLY=clients REDLOCKD=program]'
	@echo 'make bench-protocols measure STATUS by the line protocol, by RESP and with redis-benchmark'
	@echo 'make bench-peers    run bench, and compare with node-redlock (npm), redis-py, redigo and etcd (apt)'
	@echo 'make instructions   count the instructions of the daemon for a LOCK and UNLOCK: [PROFILE=1 MISSES=1 CLIENTS=16x16]'
	@echo 'make check-clients  test client/go, and Redis clients of several languages (from npm and Debian)'
	@echo 'make asan       build with ASan and UBSan, in build/asan'
	@echo 'make clang      build the release with clang, in build/clang, for its warnings'
	@echo 'make coverage   measure the line coverage of the pure layers by the unit tests; at least 95 %'
	@echo 'make fuzz       fuzz the parsers of foreign input, each target for SECONDS=60'
	@echo 'make fuzz-smoke run the fuzz targets on the committed inputs'
	@echo 'make model      check the models of the algorithm in docs/design/model with spin'
	@echo 'make tidy       check formatting, layers, undocumented options and the manual'
	@echo 'make units      check the systemd units and their sandbox'
	@echo 'make installed  check that uninstall removes everything that install has installed'
	@echo 'make clean      remove build/'

# --- building -------------------------------------------------------------------------------------

$(OBJECTS) $(BUILD)/server/main.o: ALL_CFLAGS += $(WHOLE)

$(BUILD)/redlockd: $(BUILD)/server/main.o $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(WHOLE) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libredlockd.a: $(OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

# Headers that are generated before any compilation. With TIGHT=yes, this includes a limits.h with
# small limits.
GENERATED := scripts.h page_template.h $(if $(TIGHT),protocol/limits.h)

$(BUILD)/%.o: %.c Makefile | $(addprefix $(BUILD)/generated/,$(GENERATED))
	@mkdir -p $(@D)
	@echo '  CC   $@'
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The client library. The archive has one object, which exports only the interface of the library.
# Hiding the other symbols requires machine code, so the library is built without -flto.
$(BUILD)/client/pic/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo '  CC   $@'
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fno-lto -fPIC -MMD -MP -c -o $@ $<

$(BUILD)/client/pic/libredlock.o: $(CLIENT)
	@$(LD) -r -o $@ $^
	@$(OBJCOPY) --wildcard --keep-global-symbol='redlock_*' $@

$(BUILD)/libredlock.a: $(BUILD)/client/pic/libredlock.o
	@echo '  AR   $@'
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/libredlock.so.$(SOVERSION): $(CLIENT) client/c/redlock.map
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -shared -Wl,-soname,$(@F) \
	    -Wl,--version-script=client/c/redlock.map -o $@ $(CLIENT)

$(BUILD)/libredlock.so: $(BUILD)/libredlock.so.$(SOVERSION)
	@ln -sf $(<F) $@

# The command-line client. It shares only protocol/, which is pure, with the daemon.
$(BUILD)/redlock: $(BUILD)/client/cli/main.o $(CLI) $(BUILD)/libredlock.a $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^

WRITE_PC = sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|'

# The objects of the client library with all symbols, for unit tests.
$(BUILD)/libclient.a: $(patsubst %.c,$(BUILD)/%.o,$(wildcard client/c/*.c))
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/redlock.pc: client/c/redlock.pc.in Makefile
	@mkdir -p $(@D)
	@$(WRITE_PC) $< > $@

# Each Lua script becomes a C string, with the SHA1 by which EVALSHA names the script.
$(BUILD)/generated/scripts.h: $(SCRIPTS) protocol/scripts.sh
	@mkdir -p $(@D)
	@sh protocol/scripts.sh $(SCRIPTS) > $@

$(BUILD)/generated/protocol/limits.h: protocol/limits.h tests/sim/bounds.sh
	@mkdir -p $(@D)
	@sh tests/sim/bounds.sh $< > $@

# The status page becomes a C string.
$(BUILD)/generated/page_template.h: server/admin/page.html server/admin/page.sh
	@mkdir -p $(@D)
	@sh server/admin/page.sh $< > $@

$(BUILD)/man/redlock-protocol.7: docs/man/redlock-protocol.7.in docs/protocol.txt \
                                 docs/man/text.awk docs/man/protocol.awk
	@mkdir -p $(@D)
	@echo '  MAN  $@'
	@awk -f docs/man/text.awk -f docs/man/protocol.awk docs/protocol.txt $< >$@

$(BUILD)/man/redlockd.yaml.5: docs/man/redlockd.yaml.5.in redlockd.yaml.example \
                              docs/man/text.awk docs/man/yaml.awk
	@mkdir -p $(@D)
	@echo '  MAN  $@'
	@awk -f docs/man/text.awk -f docs/man/yaml.awk redlockd.yaml.example $< >$@

# The folders of packages have other files with such names.
-include $(shell find $(BUILD) \( -name deb -o -name packages \) -prune -o -type f -name '*.d' -print 2>/dev/null)

# The documents keep their folders, since they link to each other.
DOCUMENTS := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE redlockd.yaml.example $(wildcard docs/*.md docs/*/*.md docs/*.txt docs/design/model/README.md) \
                  packaging/prometheus.yaml packaging/alerts.yaml packaging/grafana-dashboard.json \
                  $(wildcard client/*/README.md) client/scenarios.md

# The files that `make install` installs, for `make uninstall`. `make installed` checks that the
# list is complete.
INSTALLED := $(addprefix $(LIBDIR)/,libredlock.a libredlock.so libredlock.so.$(SOVERSION) pkgconfig/redlock.pc) \
             $(addprefix $(PREFIX)/,sbin/redlockd bin/redlock include/redlock.h \
             lib/systemd/system/redlockd.service lib/systemd/system/redlockd.socket \
             share/bash-completion/completions/redlock share/zsh/site-functions/_redlock \
             $(addprefix share/doc/redlockd/,$(DOCUMENTS)) \
             $(foreach page,$(PAGES),share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page))))

# Programs find the library through the linker's cache. With DESTDIR, the package manager updates
# the cache later. A user without permission to update the cache gets a hint instead. After `su`,
# root's PATH may lack the folder of ldconfig.
TELL_LINKER = @PATH="$$PATH:/usr/sbin:/sbin"; \
    [ -n '$(DESTDIR)' ] || ! command -v ldconfig >/dev/null || ldconfig || \
    echo 'The linker cache was not updated: set LD_LIBRARY_PATH=$(LIBDIR)'

install: all
	install -d $(DESTDIR)$(PREFIX)/sbin
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 755 $(BUILD)/redlockd $(DESTDIR)$(PREFIX)/sbin/redlockd
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 755 $(BUILD)/redlock $(DESTDIR)$(PREFIX)/bin/redlock
	install -m 644 client/completion/redlock.bash \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/redlock
	install -m 644 client/completion/_redlock $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_redlock
	install -m 644 client/c/redlock.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(BUILD)/libredlock.a $(BUILD)/libredlock.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)
	ln -sf libredlock.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libredlock.so
	$(WRITE_PC) client/c/redlock.pc.in > $(BUILD)/to-install
	install -m 644 $(BUILD)/to-install $(DESTDIR)$(LIBDIR)/pkgconfig/redlock.pc
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/local/|$(PREFIX)/|' packaging/redlockd.service > $(BUILD)/to-install
	install -m 644 $(BUILD)/to-install $(DESTDIR)$(PREFIX)/lib/systemd/system/redlockd.service
	rm -f $(BUILD)/to-install
	install -m 644 packaging/redlockd.socket $(DESTDIR)$(PREFIX)/lib/systemd/system
	for document in $(DOCUMENTS); do \
	    install -D -m 644 $$document $(DESTDIR)$(PREFIX)/share/doc/redlockd/$$document || exit; \
	done
	sed 's|file:///usr/share/|file://$(PREFIX)/share/|' packaging/alerts.yaml > $(BUILD)/to-install
	install -m 644 $(BUILD)/to-install $(DESTDIR)$(PREFIX)/share/doc/redlockd/packaging/alerts.yaml
	rm -f $(BUILD)/to-install
	for page in $(PAGES); do \
	    to=$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}; \
	    install -d $$to && install -m 644 $$page $$to || exit; \
	done
	$(TELL_LINKER)

# Folders stay, except the documentation folder of redlockd once it is empty.
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	[ ! -d $(DESTDIR)$(PREFIX)/share/doc/redlockd ] || \
	    find $(DESTDIR)$(PREFIX)/share/doc/redlockd -depth -type d -empty -delete
	$(TELL_LINKER)

clean:
	rm -rf build

# --- releases -------------------------------------------------------------------------------------

RELEASE := redlockd-$(VERSION)

# The source tarball.
dist:
	@sh packaging/dist.sh $(RELEASE) $(BUILD)/$(RELEASE).tar.gz

# Check that the source tarball is complete: it builds, installs and makes itself again, without git.
distcheck:
	@sh tests/dist.sh

# The Debian packages, built from the source tarball. Settings of this make and of the user do not
# reach the build, since the packages must not depend on them.
deb: dist
	@sh tests/deps.sh deb
	@rm -rf $(BUILD)/deb
	@mkdir -p $(BUILD)/deb
	@tar -xzf $(BUILD)/$(RELEASE).tar.gz -C $(BUILD)/deb
	@cd $(BUILD)/deb/$(RELEASE) && env -i HOME="$$HOME" PATH="$$PATH" \
	    $${SOURCE_DATE_EPOCH:+SOURCE_DATE_EPOCH=$$SOURCE_DATE_EPOCH} \
	    dpkg-buildpackage --build=binary --no-sign -j2 >../build.log 2>&1 || { cat ../build.log; exit 1; }
	@rm -rf $(BUILD)/deb/$(RELEASE)
	@lintian --fail-on error,warning --allow-root $(BUILD)/deb/*.changes
	@ls $(BUILD)/deb/*.deb

# --- tests ----------------------------------------------------------------------------------------

$(BUILD)/tests/unit/test_cli_%: $(BUILD)/tests/unit/test_cli_%.o $(BUILD)/tests/runner.o \
    $(CLI) $(BUILD)/libredlock.a $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(UNIT_SUPPORT) $(BUILD)/libclient.a \
    $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -Wl,--wrap=_mark_point -o $@ \
	    $(filter %.o,$^) $(filter %.a,$^) $(TEST_LIBS)

$(BUILD)/tests/e2e/%: $(BUILD)/tests/e2e/%.o $(E2E_SUPPORT) $(BUILD)/libredlock.a \
    $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

# These tests have a clock of their own, instead of server/clock.c.
$(addprefix $(BUILD)/tests/unit/,test_sessions test_resp_sessions test_turns): $(BUILD)/tests/unit/session_fixture.o

# The libFuzzer driver contains main().
$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(FUZZ_SUPPORT) $(BUILD)/libclient.a \
    $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -Wl,--wrap=calloc,--wrap=free \
	    $(LDFLAGS) -o $@ $^ $(LIBS)

$(SIM): $(SIM).o $(SIM_SUPPORT) $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(TEST_SIM): $(TEST_SIM).o $(BUILD)/tests/runner.o $(SIM_SUPPORT) $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(TORTURE): $(TORTURE_OBJECTS) $(E2E_SUPPORT) $(BUILD)/libredlock.a $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(BUILD)/tests/bench/test_%: $(BUILD)/tests/bench/test_%.o $(BENCH_OBJECTS) $(E2E_SUPPORT) \
    $(BUILD)/libredlock.a $(BUILD)/libredlockd.a
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

# This library is preloaded into Redis masters. They are built without sanitizers, and so is the
# library.
$(BUILD)/tests/shim/clock.so: tests/shim/clock.c
	@mkdir -p $(@D)
	@echo '  CC   $@'
	@$(CC) $(CPPFLAGS) -std=c11 $(WARNINGS) -O2 -shared -fPIC -o $@ $< -ldl

.SECONDARY:

unit: $(UNIT)
	@sh tests/run.sh $(UNIT)

e2e: $(BUILD)/redlockd $(BUILD)/redlock $(SHIM) $(E2E) $(TORTURE)
	@$(E2E_ENV) sh tests/run.sh $(TORTURE) $(E2E)

# The same tests on Valkey 9 and Redis 8, from later Debian releases.
e2e-valkey e2e-redis8: e2e-%: $(BUILD)/servers/%/redis-server
	@PATH=$(abspath $(<D)):$$PATH $(MAKE) --no-print-directory e2e

.PRECIOUS: $(BUILD)/servers/%/redis-server
$(BUILD)/servers/%/redis-server: tests/servers.sh
	@sh tests/servers.sh $* $(@D)

examples: $(BUILD)/redlockd $(BUILD)/redlock $(BUILD)/libredlock.a $(PAGES)
	@$(E2E_ENV) $(EXAMPLES_ENV) sh tests/run.sh tests/examples.sh

# The slowest programs start first, some of them as several processes (tests/run.sh).
SLOWEST := e2e/test_run_killed e2e/test_run_lost:2 e2e/test_tls_masters:3 e2e/test_log \
           e2e/test_faults:2 e2e/test_operations:2 e2e/test_systemd e2e/test_guard:4 \
           e2e/test_guard_daemons:3 e2e/test_run_also e2e/test_hold:2 e2e/test_waits \
           e2e/test_tls e2e/test_tls_sessions e2e/test_fence:2 e2e/test_run_terminal \
           sim/test_sim e2e/test_tls_flood torture/test_torture e2e/test_run_surroundings \
           e2e/test_run_storm e2e/test_run_names e2e/test_resp_hold:3 e2e/test_attack \
           e2e/test_doc_clients
in_order = $(foreach slow,$(SLOWEST),$(if $(filter %/$(firstword $(subst :, ,$(slow))),$1),$(BUILD)/tests/$(slow))) \
    $(filter-out $(foreach slow,$(SLOWEST),%/$(firstword $(subst :, ,$(slow)))),$1)

# The tests of the client packages. Those of Go need a toolchain: `make check-clients` installs it.
PACKAGE_TESTS := tests/clients/node.sh tests/clients/python.sh \
    $(if $(shell command -v go 2>/dev/null),tests/clients/go.sh)

# These tests need more packages than the others, so only `make audit` runs them.
ONLY_IN_AUDIT := %/test_doc_clients %/test_page
TESTS = $(filter-out $(LEFT_OUT),$(TORTURE) $(TEST_SIM) $(E2E) $(UNIT))

# Redis clients in a scenario with a real daemon (tests/clients/test_redis_clients.py). The small ones
# are part of `make check`. The others have large runtimes, which `make check-clients` installs.
REDIS_CLIENTS := $(addprefix $(BUILD)/clients/,redis-cli hiredis redis-py)
MORE_REDIS_CLIENTS := $(addprefix $(BUILD)/clients/,ioredis node-redis redigo phpredis redis-rb perl-redis)
MORE_REDIS_PACKAGES := golang-go golang-github-gomodule-redigo-dev php-cli php-redis ruby-redis libredis-perl
HIREDIS_SCENARIO := $(BUILD)/tests/clients/redis/hiredis
NPM_CLIENTS := $(BUILD)/clients/npm
GO_SCENARIO := $(BUILD)/clients/redigo-scenario

$(REDIS_CLIENTS) $(MORE_REDIS_CLIENTS): tests/clients/test_redis_clients.py
	@mkdir -p $(@D)
	@ln -srf $< $@

$(BUILD)/clients/hiredis: | $(HIREDIS_SCENARIO)
$(HIREDIS_SCENARIO): $(HIREDIS_SCENARIO).o
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ -lhiredis

$(BUILD)/clients/ioredis $(BUILD)/clients/node-redis: | $(NPM_CLIENTS)/installed
$(NPM_CLIENTS)/installed: $(wildcard tests/clients/redis/*.mjs tests/clients/redis/*.json)
	@mkdir -p $(@D)
	@cp $^ $(@D)
	@cd $(@D) && npm ci --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Debian's packages of Go are no modules.
$(BUILD)/clients/redigo: | $(GO_SCENARIO)
$(GO_SCENARIO): tests/clients/redis/redigo.go
	@mkdir -p $(@D)
	@GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$(abspath $(BUILD))/clients/go go build -o $@ $<

check-clients:
	@sh tests/deps.sh check $(MORE_REDIS_PACKAGES) \
	    $$(command -v node >/dev/null || echo nodejs) $$(command -v npm >/dev/null || echo npm)
	@$(CHECK_BUILD) -j2 redis-clients
	@$(CHECK_BUILD) run-redis-clients

redis-clients: $(BUILD)/redlockd $(BUILD)/redlock $(REDIS_CLIENTS) $(MORE_REDIS_CLIENTS)
	@:

run-redis-clients:
	@$(E2E_ENV) sh tests/run.sh tests/clients/go.sh tests/clients/types.sh $(REDIS_CLIENTS) $(MORE_REDIS_CLIENTS)

test-programs: $(BUILD)/redlockd $(BUILD)/redlock $(BUILD)/libredlock.a $(SHIM) $(TESTS) $(PAGES) $(REDIS_CLIENTS)
	@:

tests: test-programs
	@$(E2E_ENV) $(EXAMPLES_ENV) sh tests/run.sh $(PACKAGE_TESTS) $(call in_order,$(TESTS)) tests/examples.sh \
	    $(REDIS_CLIENTS)

# The settings are SECONDS, SEED, FAULTS (see tests/torture/faults.h), and HISTORY, a file that
# records every event. Values from the environment are ignored, since a shell can export SECONDS.
torture_setting = $(if $(filter command%,$(origin $1)),$($1),$2)
torture: $(BUILD)/redlockd $(SHIM) $(TORTURE)
	@$(E2E_ENV) TORTURE_SECONDS=$(call torture_setting,SECONDS,60) \
	    TORTURE_SEED=$(call torture_setting,SEED,$$(date +%s)) \
	    TORTURE_FAULTS=$(call torture_setting,FAULTS,all) \
	    TORTURE_HISTORY=$(call torture_setting,HISTORY,) $(TORTURE)

# The torture with the client packages and node-redlock (tests/torture/guests.h). Its masters are
# durable, and no fault makes them lose data: against that, node-redlock has no guard.
GUESTS := $(BUILD)/guests
KEEPING_FAULTS := kill,stop,cut,scripts,full,proxy,partition,crash,pause,term
torture-clients:
	@sh tests/deps.sh check $$(command -v npm >/dev/null || echo npm) \
	    $$(command -v go >/dev/null || echo golang-go)
	@$(MAKE) --no-print-directory run-torture-clients

run-torture-clients: $(BUILD)/redlockd $(SHIM) $(TORTURE) $(GUESTS)/installed
	@$(E2E_ENV) TORTURE_PACKAGES=$(GUESTS) TORTURE_OVERCLAIM=$(OVERCLAIM) \
	    TORTURE_SECONDS=$(call torture_setting,SECONDS,300) \
	    TORTURE_SEED=$(call torture_setting,SEED,$$(date +%s)) \
	    TORTURE_FAULTS=$(call torture_setting,FAULTS,$(KEEPING_FAULTS)) \
	    TORTURE_HISTORY=$(call torture_setting,HISTORY,) $(TORTURE)

$(GUESTS)/guest-c: $(BUILD)/tests/torture/guests/guest.o $(BUILD)/libredlock.a
	@mkdir -p $(@D)
	@echo '  LINK $@'
	@$(CC) $(ALL_CFLAGS) $(PARTS) $(LDFLAGS) -o $@ $^ -lpthread

$(GUESTS)/guest-go: $(wildcard tests/torture/guests/go.mod tests/torture/guests/*.go client/go/*.go)
	@mkdir -p $(@D)
	@cd tests/torture/guests && GOFLAGS=-mod=mod GOCACHE=$(abspath $(GUESTS))/cache \
	    go build -o $(abspath $@) guest.go

$(GUESTS)/installed: $(GUESTS)/guest-c $(GUESTS)/guest-go $(PEERS)/installed
	@ln -sfn $(abspath $(PEERS))/node_modules $(GUESTS)/node_modules
	@touch $@

# tests/bench/bench.h lists the settings: BENCH_ROUNDS, BENCH_MS, BENCH_SOAK, BENCH_MARKDOWN, ...
bench: $(BUILD)/redlockd $(BENCH)
	@$(E2E_ENV) BENCH_COMMIT='$(COMMIT)' BENCH_JSON=$(or $(BENCH_JSON),$(BUILD)/bench.json) $(BENCH)

# tests/bench/overload.h lists the settings. REDLOCKD is another daemon to measure.
bench-overload: $(BUILD)/redlockd $(BENCH_OVERLOAD)
	@$(E2E_ENV) $(if $(REDLOCKD),REDLOCKD='$(REDLOCKD)') BENCH_COMMIT='$(COMMIT)' $(BENCH_OVERLOAD)

# STATUS by the line protocol and by RESP. tests/bench/test_protocols.c lists the settings.
bench-protocols: $(BUILD)/redlockd $(BENCH_PROTOCOLS)
	@$(E2E_ENV) $(BENCH_PROTOCOLS)

# Compares redlockd with node-redlock, redis-py, etcd and redigo. It installs them from npm and
# Debian. It only measures, so `make audit` does not include it. etcd writes to a tmpfs, since Redis
# also writes to no disk. BENCH_ONLY selects scenarios of test_peers.c, and leaves out Go.
bench-peers: $(BUILD)/redlockd $(BENCH_PEERS)
	@sh tests/deps.sh check etcd-server python3-redis golang-github-gomodule-redigo-dev \
	    $$(command -v npm >/dev/null || echo npm) $$(command -v go >/dev/null || echo golang-go)
	@$(MAKE) --no-print-directory $(PEERS)/installed
	@$(E2E_ENV) PEERS=$(PEERS) E2E_FOLDER=/dev/shm BENCH_COMMIT='$(COMMIT)' \
	    BENCH_JSON=$(or $(BENCH_JSON),$(BUILD)/bench-peers.json) $(BENCH_PEERS)
	@$(if $(BENCH_ONLY),:,BUILD=$(BUILD) ROUNDS=$(or $(BENCH_ROUNDS),5) sh tests/bench/peers/go/run.sh)

$(PEERS)/installed: $(wildcard tests/bench/peers/*.*)
	@mkdir -p $(@D)
	@cp $^ $(@D)
	@cd $(@D) && npm ci --prefer-offline --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# PROFILE=1 also counts the instructions of each function. MISSES=1 also counts cache misses.
# CLIENTS=16x16 measures only 16 connections with 16 requests in flight on each.
instructions: $(BUILD)/redlockd $(INSTRUCTIONS)
	@sh tests/instructions.sh $(BUILD)/redlockd $(INSTRUCTIONS)

# RUNS runs of `redlock run` under one lock, while its processes and the daemon are killed.
storm: $(BUILD)/redlockd $(BUILD)/redlock $(BUILD)/tests/e2e/test_run_storm
	@$(E2E_ENV) RUN_STORM=$(or $(RUNS),1000) RUN_STORM_SEED=$(or $(SEED),1) \
	    $(BUILD)/tests/e2e/test_run_storm

COMMIT = $(shell git describe --always --dirty 2>/dev/null || echo unknown)

sim: $(SIM)
	@FAULTS='$(FAULTS)' TRACE='$(TRACE)' COMMIT='$(COMMIT)' $(SIM) $(or $(SEED),1) \
	    $(or $(RUNS),$(if $(SEED),1,10000))

# The simulator with limits so small that schedules reach them (tests/sim/bounds.h).
TIGHT_BUILD = $(MAKE) --no-print-directory BUILD=build/tight TIGHT=yes CFLAGS='-O1 -g'
sim-tight:
	@$(TIGHT_BUILD) sim

tight-parts: $(SIM) $(TEST_SIM)
	@:

# One target, so that parallel targets that need this build do not all make it.
tight-build:
	@+$(TIGHT_BUILD) tight-parts

test-tight: tight-build
	@SIM_RUNS=3000 sh tests/run.sh build/tight/tests/sim/test_sim

# Coverage of the engine by simulator schedules only: lines, and branches taken.
sim-coverage:
	@$(MAKE) --no-print-directory BUILD=build/sim-coverage \
	    CFLAGS='-O0 -g --coverage -DNDEBUG -Wno-unused -Wno-return-type' build/sim-coverage/tests/sim/sim >/dev/null
	@find build/sim-coverage -name '*.gcda' -delete
	@$(MAKE) --no-print-directory BUILD=build/sim-coverage \
	    CFLAGS='-O0 -g --coverage -DNDEBUG -Wno-unused -Wno-return-type' sim RUNS=$(or $(RUNS),3000)
	@sh tests/sim/coverage.sh build/sim-coverage

mutants: $(SIM) tight-build
	@CC='$(CC) $(PARTS)' CPPFLAGS='$(CPPFLAGS)' LIBS='$(LIBS)' OBJECTS='$(SIM).o $(SIM_SUPPORT) $(OBJECTS)' \
	    bash tests/sim/mutants.sh $(BUILD) build/tight $(MUTANTS)

asan:
	@$(MAKE) --no-print-directory BUILD=build/asan \
	    CFLAGS='-O1 -g -fno-omit-frame-pointer' \
	    SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all' $(or $(GOAL),all)

# Builds with clang, where warnings are errors too. Then checks that a C++ program can include the
# header of the library.
clang:
	@$(MAKE) --no-print-directory BUILD=build/clang CC=clang all
	@clang++ -x c++ -std=c++98 -Wall -Wextra -Werror -Wno-unused -fsyntax-only client/c/redlock.h

# Fuzzing requires clang with libFuzzer.
SECONDS ?= 60
FUZZ_BUILD = $(MAKE) --no-print-directory BUILD=build/fuzz CC=clang \
    CFLAGS='-O1 -g -fno-omit-frame-pointer' \
    SANITIZE='-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all'

fuzz:
	@$(FUZZ_BUILD) -j2 fuzz-targets
	@$(FUZZ_BUILD) run-fuzz

fuzz-smoke:
	@$(FUZZ_BUILD) fuzz-targets
	@$(FUZZ_BUILD) run-fuzz-smoke

fuzz-targets: $(FUZZ)
	@:

run-fuzz:
	@sh tests/fuzz.sh long $(BUILD) $(SECONDS) $(FUZZ)

run-fuzz-smoke:
	@sh tests/fuzz.sh smoke $(BUILD) $(FUZZ)

# The checks for contributors. The build is not optimised across files, since that takes longer than
# the tests.
CHECK_BUILD = $(MAKE) --no-print-directory BUILD=build/check CFLAGS='-O1 -g' LEFT_OUT='$(ONLY_IN_AUDIT)'
check: deps
	@$(CHECK_BUILD) -j2 --output-sync=target test-programs tidy
	@RUN_STORM=50 $(CHECK_BUILD) tests

# All other checks, and all tests again with sanitizers. With these, a program takes more of the
# processors, so fewer run at a time.
audit:
	@sh tests/deps.sh audit
	@$(MAKE) --no-print-directory -j2 all $(SIM) $(INSTRUCTIONS) tight-build
	@$(MAKE) --no-print-directory -j2 --output-sync=target audit-parts
	@$(MAKE) --no-print-directory check-clients
	@JOBS=8 $(MAKE) --no-print-directory -j2 asan GOAL=tests

# None of these checks measures time, so they run in parallel. The mutants take longest.
audit-parts: mutants packages packages-trixie distcheck coverage test-tight clang fuzz-smoke units installed instructions

coverage:
	@mkdir -p build/coverage
	@find build/coverage -name '*.gcda' -delete
	@$(MAKE) --no-print-directory BUILD=build/coverage CFLAGS='-O0 -g --coverage' unit >build/coverage.log \
	    || { cat build/coverage.log; exit 1; }
	@sh tests/coverage.sh build/coverage 95

# `make audit` does not include this target, since it takes some minutes of processor time.
model:
	@sh tests/deps.sh audit
	@bash tests/model.sh

tidy: $(PAGES) house
	@CC='$(CC)' sh tests/tidy.sh $(PAGES)

# Check the layers and their dependencies in the objects of the build.
house: all
	@sh tests/house.sh $(BUILD)

# Check the unit files of systemd.
units:
	@sh tests/units.sh

# Check `make install` and `make uninstall`.
installed: all
	@sh tests/install.sh

# Check the Debian packages: those of this Debian release, and those of Debian 13 in Debian 13. The first
# target then follows docs/deploy.md with its packages.
packages:
	@sh tests/packages.sh
	@DEPLOY_BUILT=yes sh tests/deploy.sh

deploy-test:
	@sh tests/deploy.sh

packages-trixie:
	@sh tests/packages.sh trixie

# --- the machine ----------------------------------------------------------------------------------

deps:
	@sh tests/deps.sh check

demo:
	@sh tests/deps.sh demo
	@$(MAKE) --no-print-directory -s -j2 all
	@bash tests/demo.sh $(BUILD)/redlockd $(BUILD)/redlock

.PHONY: all help install uninstall dist distcheck deb packages packages-trixie deploy-test installed clean unit e2e e2e-valkey e2e-redis8 examples tests sim sim-tight test-tight tight-build tight-parts sim-coverage mutants torture torture-clients run-torture-clients storm \
        bench bench-overload bench-protocols bench-peers instructions asan clang check check-clients redis-clients run-redis-clients coverage tidy model deps demo fuzz fuzz-smoke fuzz-targets \
        run-fuzz run-fuzz-smoke units house audit audit-parts test-programs

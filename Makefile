# Weighbridge. One non-recursive Makefile; everything it makes is in build/. `make help` lists the targets.

CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
PREFIX ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0

B := build
ifneq ($(SANITIZER),)
comma := ,
B := build/$(subst $(comma),-,$(SANITIZER))
SAN := -fsanitize=$(SANITIZER) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef -Wno-unused-parameter
ifeq ($(DEVELOPER),1)
WARN += -Werror
endif
# -ffp-contract=off: the same answers on every machine.
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) $(SAN) -fno-common -fstack-protector-strong -ffp-contract=off \
	$(if $(SANITIZER),,-D_FORTIFY_SOURCE=2) -D_GNU_SOURCE -DWB_VERSION='"$(VERSION)"' -DWB_DATA_DIR='"$(DATA_DIR)"' -I. -MMD -MP
LIBS_LOAD := -ljansson -lyaml -lssl -lcrypto -llz4 -ldeflate -lz -lm -lpthread
LIBS := -ljansson -lsqlite3 -lmicrohttpd -lyaml -lcurl -lgit2 -lssl -lcrypto -lzstd -llz4 -ldeflate -lz -lm -lpthread

BASE_SRC := $(wildcard server/base/*.c)
WB_SRC := $(wildcard server/study/*.c server/engine/*.c server/collect/*.c server/record/*.c \
	server/analysis/*.c server/queue/*.c server/http/*.c server/cli/*.c provisioners/hosts/*.c provisioners/reach/*.c provisioners/forms/*.c runners/tools/*.c) \
	runners/load/laws.c runners/load/search.c runners/load/txn_text.c runners/load/protocols/names.c
LOAD_SRC := $(filter-out runners/load/main.c,$(wildcard runners/load/*.c runners/load/protocols/*.c)) runners/ask/rows.c
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
SUPPORT_SRC := $(wildcard tests/support/*.c)

BASE_OBJ := $(BASE_SRC:%.c=$B/obj/%.o)
WB_OBJ := $(WB_SRC:%.c=$B/obj/%.o)
LOAD_OBJ := $(LOAD_SRC:%.c=$B/obj/%.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$B/unit/%)
SUPPORT_BIN := $(SUPPORT_SRC:tests/support/%.c=$B/support/%)

SYSTEM_SRC := $(wildcard tests/system/*.c)
SYSTEM_BIN := $(SYSTEM_SRC:tests/system/%.c=$B/system/%)
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=build/fuzz/%)
DATA_DIR := $(PREFIX)/share/weighbridge


.PHONY: system-programs all help clean install check test unit style format lint demo demo-counts soak bench fuzz sanitize support packages
all: $B/weighbridge $B/wb-load $B/wb-ask ## build the programs

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

$B/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$B/libwbbase.a: $(BASE_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^
$B/libwb.a: $(WB_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^
$B/libwbload.a: $(LOAD_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^

$B/weighbridge: $B/obj/server/main.o $B/libwb.a $B/libwbbase.a
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS) $(LDFLAGS)
	@ln -sf weighbridge $B/wb
$B/wb-load: $B/obj/runners/load/main.o $B/libwbload.a $B/libwbbase.a
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS_LOAD) $(LDFLAGS)

$B/wb-ask: $B/obj/runners/ask/main.o $B/libwbload.a $B/libwbbase.a
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS_LOAD) $(LDFLAGS)

# Unit tests: every tests/unit/ROOM/test_*.c is one program.
$B/unit/%: $B/obj/tests/unit/%.o $B/libwbload.a $B/libwb.a $B/libwbbase.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed -lcmocka $(LIBS) $(LDFLAGS)
# Support programs (canned responders and the like): every tests/support/*.c is one program.
$B/support/%: $B/obj/tests/support/%.o $B/libwbload.a $B/libwbbase.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS_LOAD) $(LDFLAGS)
support: $(SUPPORT_BIN)

# Tests of whole programs, with what they need of C.
$B/system/%: $B/obj/tests/system/%.o $B/libwb.a $B/libwbbase.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS) $(LDFLAGS)

unit: $(UNIT_BIN) $(SUPPORT_BIN) $B/weighbridge $B/wb-load ## build and run the unit tests
	@tests/support/run-unit $(UNIT_BIN)

style: ## file and function length, banned calls, one module per header, DESIGN.md, scripts
	@tests/style/check

lint: ## clang-tidy and cppcheck over the product
	@tests/style/lint

check: ## the quick part: build with warnings as errors, unit tests, style
	@tests/support/need check
	@$(MAKE) --no-print-directory -j2 DEVELOPER=1 all
	@tests/support/summary check

test: ## everything: unit, style, and system tests on a real Docker Engine, redis-server and git
	@tests/support/need test
	@$(MAKE) --no-print-directory -j2 DEVELOPER=1 all
	@tests/support/summary test

# Programs of the benchmarks: every tests/bench/*.c is one.
$B/bench/%: $B/obj/tests/bench/%.o $B/libwbload.a $B/libwb.a $B/libwbbase.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS) $(LDFLAGS)

soak: ## system tests that kill, starve and disturb for many minutes, apart from test
	@tests/support/need test
	@$(MAKE) --no-print-directory -j2 DEVELOPER=1 all
	@tests/support/summary soak

system-programs: $(SYSTEM_BIN) $(SUPPORT_BIN)

DEMO = provisioners/with-docker env WB_STATE=build/demo/state WB_RECIPES=recipes \
	    build/weighbridge run recipes/redis/studies/forms.yaml --store build/demo/store.git --profile
demo: ## native x1 against docker x1 on Redis, with a verdict (root, Debian 12)
	@tests/support/need demo
	@$(MAKE) --no-print-directory -j2 all
	@$(DEMO) small

demo-counts: ## the same with 1, 2 and 4 instances in each form
	@tests/support/need demo
	@$(MAKE) --no-print-directory -j2 all
	@$(DEMO) counts

sanitize: ## unit tests under ASan+UBSan and under TSan
	@$(MAKE) --no-print-directory -j2 SANITIZER=address,undefined DEVELOPER=1 UNIT_LIMIT=600 unit
	@$(MAKE) --no-print-directory -j2 SANITIZER=thread DEVELOPER=1 UNIT_LIMIT=600 unit

bench: all support ## the benchmarks of tests/bench: ratios measured in one run
	@for b in tests/bench/*.sh; do echo "== $$b"; "$$b" || exit 1; done

FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang
FUZZ_OBJ := $(patsubst %.c,build/fuzz/obj/%.o,$(sort $(BASE_SRC) $(WB_SRC) $(LOAD_SRC)))
build/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -std=gnu11 -O1 -g -fsanitize=fuzzer-no-link,address,undefined -D_GNU_SOURCE \
	    -DWB_VERSION='"$(VERSION)"' -DWB_DATA_DIR='"$(DATA_DIR)"' -I. -MMD -MP -c -o $@ $<
build/fuzz/libwb.a: $(FUZZ_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^
build/fuzz/%: build/fuzz/obj/tests/fuzz/%.o build/fuzz/libwb.a
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS)
fuzz: $(FUZZ_BIN) ## each fuzz target for FUZZ_SECONDS (60)
	@for f in $(FUZZ_BIN); do mkdir -p build/corpus/$$(basename $$f); \
	    $$f -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -artifact_prefix=build/corpus/ \
	    build/corpus/$$(basename $$f) $$(find tests/fuzz/corpus -type d -name $$(basename $$f | cut -d_ -f2)) || exit 1; done

install: all ## into DESTDIR and PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(DATA_DIR)
	install -m 755 $B/weighbridge $B/wb-load $B/wb-ask $(DESTDIR)$(PREFIX)/bin
	ln -sf weighbridge $(DESTDIR)$(PREFIX)/bin/wb
	cp -R recipes web $(DESTDIR)$(DATA_DIR)/
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/sysusers.d
	sed 's|@PREFIX@|$(PREFIX)|g' dist/weighbridge.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/weighbridge.service
	install -m 644 dist/weighbridge.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/weighbridge.conf
	rm -rf $B/man && $B/weighbridge man --dir $B/man
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 644 $B/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	$B/weighbridge completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/weighbridge
	ln -sf weighbridge $(DESTDIR)$(PREFIX)/share/bash-completion/completions/wb
	$B/weighbridge completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_weighbridge

format: ## clang-format in place
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

clean: ## remove build products (not the download cache)
	rm -rf build/obj build/unit build/support build/system build/fuzz build/man build/*.a build/weighbridge build/wb build/wb-load build/wb-ask \
	    build/address-undefined build/thread

-include $B/obj/server/main.d $B/obj/runners/load/main.d $B/obj/runners/ask/main.d $(BASE_OBJ:.o=.d) $(WB_OBJ:.o=.d) $(LOAD_OBJ:.o=.d) $(UNIT_SRC:%.c=$B/obj/%.d) $(SUPPORT_SRC:%.c=$B/obj/%.d) $(SYSTEM_SRC:%.c=$B/obj/%.d) $(FUZZ_OBJ:.o=.d) $(FUZZ_SRC:%.c=build/fuzz/obj/%.d)
.SECONDARY:
V ?= 0
Q := $(if $(filter 1,$V),,@)

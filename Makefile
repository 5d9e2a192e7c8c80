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
	$(if $(SANITIZER),,-D_FORTIFY_SOURCE=2) -D_GNU_SOURCE -DWB_VERSION='"$(VERSION)"' -I. -MMD -MP
LIBS_LOAD := -ljansson -lcrypto -lz -lm -lpthread
LIBS := -ljansson -lyaml -lcurl -lgit2 -lcrypto -lzstd -lz -lm -lpthread

BASE_SRC := $(wildcard server/base/*.c)
WB_SRC := $(wildcard server/study/*.c server/engine/*.c server/collect/*.c server/record/*.c \
	server/analysis/*.c server/cli/*.c provisioners/hosts/*.c provisioners/reach/*.c provisioners/forms/*.c)
LOAD_SRC := $(filter-out runners/load/main.c,$(wildcard runners/load/*.c runners/load/protocols/*.c))
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
SUPPORT_SRC := $(wildcard tests/support/*.c)

BASE_OBJ := $(BASE_SRC:%.c=$B/obj/%.o)
WB_OBJ := $(WB_SRC:%.c=$B/obj/%.o)
LOAD_OBJ := $(LOAD_SRC:%.c=$B/obj/%.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$B/unit/%)
SUPPORT_BIN := $(SUPPORT_SRC:tests/support/%.c=$B/support/%)

.PHONY: all help clean install check test unit style format demo bench support
all: $B/weighbridge $B/wb-load ## build the programs

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

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

# Unit tests: every tests/unit/ROOM/test_*.c is one program.
$B/unit/%: $B/obj/tests/unit/%.o $B/libwbload.a $B/libwb.a $B/libwbbase.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed -lcmocka $(LIBS) $(LDFLAGS)
# Support programs (canned responders and the like): every tests/support/*.c is one program.
$B/support/%: $B/obj/tests/support/%.o $B/libwbload.a $B/libwbbase.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--as-needed $(LIBS_LOAD) $(LDFLAGS)
support: $(SUPPORT_BIN)

unit: $(UNIT_BIN) $(SUPPORT_BIN) $B/weighbridge $B/wb-load ## build and run the unit tests
	@tests/support/run-unit $(UNIT_BIN)

style: ## file and function length, banned calls, one module per header, DESIGN.md, shellcheck
	@tests/style/check

format: ## clang-format in place
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

clean: ## remove build products (not the download cache)
	rm -rf build/obj build/unit build/support build/*.a build/weighbridge build/wb build/wb-load

-include $(BASE_OBJ:.o=.d) $(WB_OBJ:.o=.d) $(LOAD_OBJ:.o=.d) $(UNIT_SRC:%.c=$B/obj/%.d) $(SUPPORT_SRC:%.c=$B/obj/%.d)
.SECONDARY:
V ?= 0
Q := $(if $(filter 1,$V),,@)

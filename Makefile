# The commands of this repository. `make test` is all that a fresh machine
# with Go and git needs.

GO       ?= go
AGENTS   ?= $(CURDIR)/.cache/agents/bin
NPM      ?= $(CURDIR)/.cache/npm
SITE     ?= $(CURDIR)/.cache/site
# What the tests find there: the coding CLIs, packages from npm, and promtool
# unless there is one on PATH.
REAL      = SIGNALBOX_TEST_AGENTS=$(AGENTS) SIGNALBOX_TEST_NPM=$(NPM) SIGNALBOX_SITE_NPM=$(SITE) PATH="$$PATH:$(CURDIR)/.cache/promtool"
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PACKAGES  = ./...
# Without the race detector, which doubles the time of what it is in: packages
# in which nothing of ours runs beside something else, and those whose tests
# drive whole processes, each part of which races in its own suite. make soak
# has it in all of them, and in the processes too.
SERIAL    = . ./api ./client ./cmd/... ./e2e/... ./scripts/... ./sim/... $(addprefix ./internal/,agentaddr callgraph conffile config cron dashboard doctor \
	filelock llm/anthropic llm/wire mask port seal store store/pack store/storetest/invariant strictjson testdisk testkit testport testserver toolconf)
FLAGS     = -vet=off -ldflags '-s -w' -timeout 18m
# Not in the C library that SQLite was translated to, in which the race detector
# works hard and finds nothing: nothing else waits by its atomics, and its memory
# is not Go's. make soak has it there too.
RACE      = -race -gcflags=modernc.org/...=-race=false
# Without the race detector here, which makes them up to ten times as long; with
# it in make soak. The suite of the engine on stores that race in suites of their
# own; the contract of all stores but one and random histories, a caller at a
# time; a crowd of calls, one after the other; answers and bodies of many MB;
# simulated hours of schedules; hundreds of programs that are ended.
NORACE    = ^TestSuiteOnEveryStore$$|^TestManyAgentsThatWait$$|^TestHistoriesAre|^TestCompare|^TestContract(Pipelined|Drafted|WithoutMemory|HandingOver|CustomBackend)?$$|^TestFullOfSchedules$$|^TestScheduleLimit$$|^Test(ToolList|Answer)BeyondLimit|^TestIncidentHugeResult$$|^TestAttackBombs|^TestEveryInstantIsAccountedFor$$|^TestIncidentClockJumpFiresTwice$$|^TestKillsOfDoubleForkers$$|^TestNothingSurvivesTheEnd$$|^TestANeighbourStartsAgain$$
# Simulated time with many goroutines, which the race detector's runtime does
# not bear (golang/go#78156); sim has nothing else.
BUBBLES   = ^TestBubble
# What has code of its own for Windows, with its tests, but for what wants SQLite, which
# would have to be compiled once more for it. make soak has the rest.
WINDOWS   = $(addprefix ./internal/,agentd agentd/runner cli command config doctor failpoint filelock gateway/command gateway/mcp llm proc \
	schedule/standalone seal serve testport testserver)
# What make check-fast tests: rules and readers, in memory.
FAST      = . ./api ./client ./steplimit ./toolqueue $(addprefix ./internal/,agentaddr cli conffile config cron engine/... execution/local \
	gateway httpguard identity lifecycle mask peers port schedule seal serve store store/memory store/pack store/verbs strictjson toolconf)
# Where tests have their files in make test, and PostgreSQL and Redis their data: in
# memory, where 4 GB are free and programs may be executed; else, and in make soak,
# on the disk, where half of the system's time goes into files that live for a
# second. What is built stays on the disk, from which it can be read again.
MEMORY   := $(shell ! grep -qs " /dev/shm [^ ]* [^ ]*noexec" /proc/mounts && test "$$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 2>/dev/null && echo /dev/shm)
# One package more at a time than there are processors: the tests of most wait as
# long as they work.
WIDE     := -p $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
LDFLAGS   = -s -w -X main.version=$(VERSION)
# Without the path of the checkout in them, packages compiled in one clone serve
# every other: a cold clone compiles and vets for ten minutes on two cores.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath

.PHONY: help build setup test check check-fast soak mutants bench fuzz release release-check site lint lines vuln clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

build: ## the binary, in bin/
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -ldflags '$(LDFLAGS)' -o bin/signalbox ./cmd/signalbox

setup: ## what the tests need and this machine lacks
	@$(REAL) scripts/setup.sh

.PHONY: formatted
formatted:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted with gofmt:"; gofmt -l $$(git ls-files '*.go'); exit 1; }

check: formatted ## formatting and vet
	$(GO) vet $(PACKAGES)
	$(GO) vet -tags mutants ./sim/mutants
	cd bench && $(GO) vet ./... && cd riversqlite && $(GO) vet . # modules of their own, for what ours is compared with
	GOOS=windows GOARCH=amd64 $(GO) vet $(WINDOWS)

check-fast: formatted ## what to run between two edits, in less than a minute: formatting, vet, and tests that need no other program
	$(GO) vet $(PACKAGES)
	$(GO) test $(FLAGS) -skip '$(NORACE)' $(FAST)

test: setup check ## every test in its short form; check has vetted
	@$(MAKE) --no-print-directory -k -j2 test-e2e test-race test-serial test-alone

# Two of these run at once: the first mostly waits for other processes. A race
# is reported before its process ends, so that none has to linger for it.
.PHONY: test-e2e test-race test-serial test-alone
test-e2e test-race test-serial test-alone: export SIGNALBOX_TEST_SERVERS = $(MEMORY)
ifneq ($(MEMORY),)
test-e2e test-race test-serial test-alone: export GOTMPDIR := $(or $(GOTMPDIR),$(TMPDIR),/tmp)
test-e2e test-race test-serial test-alone: export TMPDIR := $(MEMORY)
endif
test-e2e:
	$(REAL) $(GO) test $(FLAGS) ./e2e

test-race:
	$(REAL) GORACE=atexit_sleep_ms=0 $(GO) test $(FLAGS) $(WIDE) $(RACE) -skip '$(NORACE)' $$($(GO) list $(PACKAGES) | grep -vxF "$$($(GO) list $(SERIAL))")

test-serial:
	$(REAL) $(GO) test $(FLAGS) $(WIDE) $$($(GO) list $(SERIAL) | grep -vE '/(e2e|sim)$$')

# A fifth of the time of histories in memory was collecting garbage.
test-alone: export GOGC = 400
test-alone: # what the race detector is not for, or does not bear
	$(GO) test $(FLAGS) -run '$(NORACE)' ./internal/confine ./internal/httpapi ./internal/engine ./internal/gateway/mcp ./internal/schedule ./internal/store/...
	$(GO) test $(FLAGS) -run '$(BUBBLES)' ./internal/execution/push
	$(GO) test $(FLAGS) -v ./sim
	cd bench && $(GO) test -vet=off ./internal/measure ./internal/results ./internal/page # docs/benchmarks.md is what its figures make

soak: setup check ## every test in its long form; docs/development/tests.md says what only that finds
	GOOS=windows GOARCH=amd64 $(GO) vet ./cmd/signalbox ./internal/demo ./internal/httpapi ./internal/execution/... ./internal/gateway/... ./internal/serve/... ./internal/store/sqlite
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/signalbox
	SIGNALBOX_SOAK=1 $(REAL) $(GO) test -race -timeout 8h $(PACKAGES)
	$(GO) test -run '$(BUBBLES)' ./internal/execution/push
	SIGNALBOX_SOAK=1 $(GO) test -timeout 8h -v ./sim
	$(GO) test -tags mutants -timeout 3h ./sim/mutants

mutants: ## every hand-made bug against the tests that must catch it, for docs/development/mutants.md
	$(GO) test -tags mutants -timeout 3h -v -run 'TestMutants|TestTheRunner' ./sim/mutants -args -mutants.page $(CURDIR)/docs/development/mutants.md

bench: ## the figures of docs/benchmarks.md, measured here
	cd bench && $(GO) run . && $(GO) run . -docs ../docs/benchmarks.md

fuzz: ## every fuzz target, FUZZTIME (10s) each
	GO=$(GO) scripts/fuzz.sh

release: ## archives and packages for Linux and macOS of what is committed, in dist/
	$(GO) run ./scripts/release

release-check: ## builds them twice, far apart, and compares
	$(GO) run ./scripts/release -check

site: ## the documentation as a website, in build/site
	SIGNALBOX_SITE_NPM=$(SITE) scripts/build-site.sh

# go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0,
# which has gosec and staticcheck in it
lint: ## golangci-lint, with the reasons in .golangci.yml
	golangci-lint run

lines: ## how many lines of Go are in the binary, by folder, and in all
	@$(GO) list -deps -f '{{if and .Module .Module.Main}}{{$$d := .Dir}}{{range .GoFiles}}{{$$d}}/{{.}}{{"\n"}}{{end}}{{end}}' ./cmd/signalbox | grep . | xargs wc -l | \
		awk -v root="$(CURDIR)/" '$$2 != "total" { sub(root, "", $$2); if (!sub("/[^/]*$$", "", $$2)) $$2 = "."; n[$$2] += $$1; all += $$1 } END { for (d in n) print n[d] "\t" d | "sort -rn"; close("sort -rn"); print all "\tin all" }'

vuln: ## known holes in what the binary is built of; asks vuln.go.dev
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./cmd/signalbox

clean: ## what was built and cached
	rm -rf bin build .cache

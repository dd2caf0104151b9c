# The commands of this repository. `make test` is all that a fresh machine
# with Go and git needs.

GO       ?= go
AGENTS   ?= $(CURDIR)/.cache/agents/bin
NPM      ?= $(CURDIR)/.cache/npm
SITE     ?= $(CURDIR)/.cache/site
# Where the tests find the coding CLIs, the npm packages, and promtool if it is
# not on PATH.
REAL      = SIGNALBOX_TEST_AGENTS=$(AGENTS) SIGNALBOX_TEST_NPM=$(NPM) SIGNALBOX_SITE_NPM=$(SITE) PATH="$$PATH:$(CURDIR)/.cache/promtool"
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PACKAGES  = ./...
# Packages tested without the race detector, which doubles their time: packages
# without concurrent code of our own, and packages whose tests drive whole
# processes, whose parts are race-tested in their own suites. make soak uses it
# in all of them, and in the processes too.
SERIAL    = . ./api ./client ./cmd/... ./e2e/... ./scripts/... ./sim/... $(addprefix ./internal/,agentaddr callgraph conffile config cron dashboard doctor \
	filelock llm/anthropic llm/wire mask port seal store store/pack store/storetest/invariant strictjson testdisk testkit testport testserver toolconf)
FLAGS     = -vet=off -ldflags '-s -w' -timeout 18m
# The race detector is off in the C library that SQLite was translated to. It is
# slow there and cannot find anything: no other code synchronizes by its atomics,
# and its memory is not Go's. make soak uses it there too.
RACE      = -race -gcflags=modernc.org/...=-race=false
# Tests that run without the race detector, which makes them up to ten times
# slower; make soak runs them with it. They are: the engine suite on stores that
# are race-tested in their own suites; the contract of all stores except one and
# random histories, with a single caller; many sequential calls; parsing; answers
# and bodies of many MB; simulated hours of schedules; hundreds of killed programs.
NORACE    = ^TestSuiteOnEveryStore$$|^TestManyAgentsThatWait$$|^TestHistoriesAre|^TestCompare|^TestContract(Pipelined|Drafted|WithoutMemory|HandingOver|CustomBackend)?$$|^TestFullOfSchedules$$|^TestScheduleLimit$$|^Test(ToolList|Answer)BeyondLimit|^TestIncidentHugeResult$$|^TestAttackBombs|^TestEveryInstantIsAccountedFor$$|^TestIncidentClockJumpFiresTwice$$|^TestKillsOfDoubleForkers$$|^TestNothingSurvivesTheEnd$$|^TestANeighbourStartsAgain$$|^TestTheLargestResultIsRead$$|^TestOversizedAnswers$$|^TestRankedListMatchesSortedSlice$$|^TestSearchCountsOfMany$$|^TestBulkSaysThatMoreMatch$$|^TestEveryRouteForEveryCaller$$|^TestMCPPassesTheGateAndHasItsOwnRules$$|^TestToolCallsTakeLongArguments$$|^TestOpenAPI|^TestScheduleLifecycle$$|^TestMissedInstantsAreBounded$$|^TestHeldFiringsAdvanceInFewWrites$$
# Tests in simulated time with many goroutines, which crash the race detector's
# runtime (golang/go#78156); sim has only such tests.
BUBBLES   = ^TestBubble
# Packages with Windows-specific code, with their tests, except those that need
# SQLite, which would have to be compiled again for it. make soak has the rest.
WINDOWS   = $(addprefix ./internal/,agentd agentd/runner cli command config doctor failpoint filelock gateway/command gateway/mcp llm proc \
	schedule/standalone seal serve testport testserver)
# What make check-fast tests: rules and parsers, in memory.
FAST      = . ./api ./client ./steplimit ./toolqueue $(addprefix ./internal/,agentaddr cli conffile config cron engine/... execution/local \
	gateway httpguard identity lifecycle mask peers port schedule seal serve store store/memory store/pack store/verbs strictjson toolconf)
# Packages whose tests wait for minutes, for leases and restarts. They run first, so
# that the processors have other work meanwhile.
LONGEST   = $(addprefix ./internal/,agentd execution/push tickets store/postgres)
# Where make test keeps the files of tests and the data of PostgreSQL and Redis: in
# memory if 4 GB are free and programs may be executed there. Otherwise, and in make
# soak, they are on the disk, where half of the system time is spent on files that
# exist for a second. Build results stay on the disk, from which they can be reused.
MEMORY   := $(shell ! grep -qs " /dev/shm [^ ]* [^ ]*noexec" /proc/mounts && test "$$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 2>/dev/null && echo /dev/shm)
# Test one package more at a time than there are processors: most tests wait as
# long as they compute.
WIDE     := -p $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
LDFLAGS   = -s -w -X main.version=$(VERSION)
# With -trimpath, packages compiled in one clone are cached for all clones. Without
# the cache, a clone compiles and vets for ten minutes on two cores.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath

.PHONY: help build setup test check check-fast soak mutants bench fuzz release release-check site lint lines vuln clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

build: ## the binary, in bin/
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -ldflags '$(LDFLAGS)' -o bin/signalbox ./cmd/signalbox

setup: ## install what the tests need and this machine lacks
	@$(REAL) scripts/setup.sh

.PHONY: formatted
formatted:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted with gofmt:"; gofmt -l $$(git ls-files '*.go'); exit 1; }

check: formatted ## formatting and vet
	$(GO) vet $(PACKAGES)
	$(GO) vet -tags mutants ./sim/mutants
	cd bench && $(GO) vet ./... && cd riversqlite && $(GO) vet . # separate modules, for the systems that ours is compared with
	GOOS=windows GOARCH=amd64 $(GO) vet $(WINDOWS)

check-fast: formatted ## formatting, vet, and tests without other programs, in less than a minute, for use between edits
	$(GO) vet $(PACKAGES)
	$(GO) test $(FLAGS) -skip '$(NORACE)' $(FAST)

test: setup check ## every test in its short form, after check
	@$(MAKE) --no-print-directory -k -j2 test-e2e test-race test-serial test-alone

# Two of these run at once, because the first mostly waits for other processes. A
# race is reported before its process ends, so no process has to wait for it. With
# the default of GOGC a sixth of the time of most is spent in garbage collection.
.PHONY: test-e2e test-race test-serial test-alone
test-e2e test-race test-serial test-alone: export GOGC = 400
test-e2e test-race test-serial test-alone: export SIGNALBOX_TEST_SERVERS = $(MEMORY)
ifneq ($(MEMORY),)
test-e2e test-race test-serial test-alone: export GOTMPDIR := $(or $(GOTMPDIR),$(TMPDIR),/tmp)
test-e2e test-race test-serial test-alone: export TMPDIR := $(MEMORY)
endif
test-e2e:
	$(REAL) $(GO) test $(FLAGS) ./e2e

test-race:
	$(REAL) GORACE=atexit_sleep_ms=0 $(GO) test $(FLAGS) $(WIDE) $(RACE) -skip '$(NORACE)' $(LONGEST) $$($(GO) list $(PACKAGES) | grep -vxF "$$($(GO) list $(SERIAL))")

test-serial:
	$(REAL) $(GO) test $(FLAGS) $(WIDE) $$($(GO) list $(SERIAL) | grep -vE '/(e2e|sim)$$')

test-alone: # tests that need no race detector, or that crash it
	$(GO) test $(FLAGS) -run '$(NORACE)' ./internal/confine ./internal/httpapi ./internal/engine ./internal/execution/push ./internal/gateway/mcp ./internal/schedule ./internal/store/memory ./internal/store/postgres ./internal/store/redis ./internal/store/sqlite ./internal/store/storetest ./internal/store/storetest/model ./internal/store/storetest/stores ./internal/store/verbs
	$(GO) test $(FLAGS) -run '$(BUBBLES)' ./internal/execution/push
	$(GO) test $(FLAGS) -v ./sim
	cd bench && $(GO) test -vet=off ./internal/measure ./internal/results ./internal/page # docs/benchmarks.md must match its figures

soak: setup check ## every test in its long form; docs/development/tests.md says what only the long form finds
	GOOS=windows GOARCH=amd64 $(GO) vet ./cmd/signalbox ./internal/demo ./internal/httpapi ./internal/execution/... ./internal/gateway/... ./internal/serve/... ./internal/store/sqlite
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/signalbox
	SIGNALBOX_SOAK=1 $(REAL) $(GO) test -race -timeout 8h $(PACKAGES)
	$(GO) test -run '$(BUBBLES)' ./internal/execution/push
	SIGNALBOX_SOAK=1 $(GO) test -timeout 8h -v ./sim
	$(GO) test -tags mutants -timeout 3h ./sim/mutants

mutants: ## run each mutant against the tests that must catch it, for docs/development/mutants.md
	$(GO) test -tags mutants -timeout 3h -v -run 'TestMutants|TestTheRunner' ./sim/mutants -args -mutants.page $(CURDIR)/docs/development/mutants.md

bench: ## the figures of docs/benchmarks.md, measured here
	cd bench && $(GO) run . && $(GO) run . -docs ../docs/benchmarks.md

fuzz: ## every fuzz target, FUZZTIME (10s) each
	GO=$(GO) scripts/fuzz.sh

release: ## archives and packages of the commit for Linux and macOS, in dist/
	$(GO) run ./scripts/release

release-check: ## build them twice in different environments, and compare
	$(GO) run ./scripts/release -check

site: ## the documentation as a website, in build/site
	SIGNALBOX_SITE_NPM=$(SITE) scripts/build-site.sh

# go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0,
# which includes gosec and staticcheck
lint: ## golangci-lint, with the reasons in .golangci.yml
	golangci-lint run

lines: ## how many lines of Go are in the binary, by folder and in total
	@$(GO) list -deps -f '{{if and .Module .Module.Main}}{{$$d := .Dir}}{{range .GoFiles}}{{$$d}}/{{.}}{{"\n"}}{{end}}{{end}}' ./cmd/signalbox | grep . | xargs wc -l | \
		awk -v root="$(CURDIR)/" '$$2 != "total" { sub(root, "", $$2); if (!sub("/[^/]*$$", "", $$2)) $$2 = "."; n[$$2] += $$1; all += $$1 } END { for (d in n) print n[d] "\t" d | "sort -rn"; close("sort -rn"); print all "\tin all" }'

vuln: ## known vulnerabilities in the binary and its dependencies; queries vuln.go.dev
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./cmd/signalbox

clean: ## remove build results and caches
	rm -rf bin build .cache

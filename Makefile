# The commands of this repository. `make test` is all that a fresh machine
# with Go and git needs.

GO       ?= go
AGENTS   ?= $(CURDIR)/.cache/agents/bin
NPM      ?= $(CURDIR)/.cache/npm
# What the tests find there: the coding CLIs, packages from npm, and promtool
# unless there is one on PATH.
REAL      = SIGNALBOX_TEST_AGENTS=$(AGENTS) SIGNALBOX_TEST_NPM=$(NPM) PATH="$$PATH:$(CURDIR)/.cache/promtool"
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PACKAGES  = ./...
# Simulated time with many goroutines, which the race detector's runtime does
# not bear.
BUBBLES   = ^TestBubble
LDFLAGS   = -s -w -X main.version=$(VERSION)

.PHONY: help build setup test check soak bench lint clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

build: ## the binary, in bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/signalbox ./cmd/signalbox

setup: ## what the tests need and this machine lacks
	@$(REAL) scripts/setup.sh

check: ## formatting and vet
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted with gofmt:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet $(PACKAGES)

test: setup check ## every test, race detector on
	$(REAL) $(GO) test -race -timeout 18m $(PACKAGES)
	$(GO) test -run '$(BUBBLES)' ./internal/dispatch

soak: setup check ## the long loops, whole
	SIGNALBOX_SOAK=1 $(REAL) $(GO) test -race -timeout 8h $(PACKAGES)

bench: ## the figures of docs/benchmarks.md, measured here
	$(GO) run ./bench/store
	$(GO) run ./bench/http
	$(GO) run ./bench/idle
	$(GO) run ./bench/toolqueue
	$(GO) run ./bench/gateway
	$(GO) run ./bench/commands
	$(GO) run ./bench/schedules
	$(GO) run ./bench/dashboard

lint: ## golangci-lint, with the reasons in .golangci.yml
	golangci-lint run

clean: ## what was built and cached
	rm -rf bin .cache

# Everything CI does is a target here; `make` alone lists them.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# One flavour of the build cache for everything: no cgo, no -trimpath.
export CGO_ENABLED := 0

BIN     := $(CURDIR)/.cache/bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The version that the Kubernetes libraries show, and kubectl asks for.
KUBE_VERSION := 1.37.2
KUBE_LDFLAGS := -X k8s.io/component-base/version.gitVersion=v$(KUBE_VERSION) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37

LDFLAGS := $(KUBE_LDFLAGS) -X freshet/internal/base/version.version=$(VERSION) -X freshet/internal/base/version.commit=$(COMMIT)

# Packages that link no Kubernetes library: small enough for the race detector.
RACE := $(addsuffix /...,$(addprefix ./internal/,\
	base storage ensemble broker registry identity dataplane surfaces ops/audit ops/backup ops/quota))

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: build
build: ## Build bin/freshet
	@hack/first-build.sh
	go build -ldflags "$(LDFLAGS)" -o bin/freshet ./cmd/freshet

.PHONY: run
run: build ## Build and start a server with its data in ./freshet-data
	@exec bin/freshet serve --data-dir ./freshet-data

.PHONY: cluster-demo
cluster-demo: build ## Show three members on loopback under load; keys kill, pause and revive them
	@go build -o .cache/cluster-demo ./test/cluster/demo
	@FRESHET_BIN=$(CURDIR)/bin/freshet exec .cache/cluster-demo

.PHONY: quick-start
quick-start: build ## Paste the README's first five minutes into a shell, with a person's pauses, and time each step
	FRESHET_PAUSE=3s FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -timeout 10m -v -run TestQuickStart ./test/e2e/howto

##@ Check

# Clients that others wrote are modules of their own, so that nothing of them
# reaches the product. (The others are run by the tests that start their server.)
CLIENTS := $(patsubst %/go.mod,%,$(wildcard test/clients/pulsar/go.mod test/clients/dex/go.mod test/clients/operations/go.mod))

# The contract and end-to-end tests drive the real binary, some of them with the
# real kubectl; without these variables they would build both by themselves.
.PHONY: test
test: build $(BIN)/kubectl ## Run the whole suite: unit, contract, integration, end to end
	@hack/need.sh gcc gcc libc6-dev || echo "no C compiler: the client that needs one (librdkafka) is NOT TESTED" >&2
	@hack/need.sh node nodejs npm || echo "no Node.js: the registry and Kubernetes clients that need it are NOT TESTED" >&2
	@hack/need.sh python3 python3 python3-venv || echo "no Python: the clients that need it are NOT TESTED" >&2
	@hack/need.sh kcat kcat || echo "no kcat: it is NOT TESTED" >&2
	@hack/need.sh promtool prometheus || echo "no Prometheus: the generated rules and dashboard are NOT TESTED with it" >&2
	@hack/need.sh systemd-analyze systemd || echo "no systemd: the generated unit is NOT TESTED" >&2
	FRESHET_TEST_CLIENTS=1 FRESHET_BIN=$(CURDIR)/bin/freshet KUBECTL=$(BIN)/kubectl go test -timeout 15m ./...
	for module in $(CLIENTS); do FRESHET_BIN=$(CURDIR)/bin/freshet go -C $$module test ./...; done
	$(MAKE) test-console CONSOLE_TESTS=-short

.PHONY: test-console
test-console: build $(BIN)/kubectl ## Open every page of the console in a browser; screenshots in .cache/screenshots (make test: one theme of each width)
	@hack/need.sh chromium chromium || echo "no chromium: the console is NOT TESTED in a browser" >&2
	@hack/need.sh npm nodejs npm || echo "no npm: the console's accessibility is NOT TESTED" >&2
	FRESHET_BIN=$(CURDIR)/bin/freshet KUBECTL=$(BIN)/kubectl go -C test/console test -timeout 15m $(CONSOLE_TESTS) ./...

.PHONY: test-java
test-java: build ## Run the Java clients, Kafka's tools, Connect and Streams against the server
	@hack/need.sh python3 python3 python3-venv || echo "no Python: its part in test-java is NOT TESTED" >&2
	@if hack/java-libs.sh client-3.9 client-4 platform; then \
		FRESHET_TEST_JAVA=1 FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -timeout 15m ./test/clients/java; \
	else \
		echo "NOT TESTED: Java clients of Kafka, its command line tools, Connect, Streams, Avro from Java: no JDK, no Maven or no libraries" >&2; \
	fi

.PHONY: test-attack
test-attack: build ## Attack a running system for some minutes: attempts and successes
	FRESHET_BIN=$(CURDIR)/bin/freshet hack/tally.sh attack

.PHONY: test-faults
test-faults: build ## Break things under a running system for some minutes: lost, wrong, time to recover
	FRESHET_BIN=$(CURDIR)/bin/freshet hack/tally.sh fault

.PHONY: test-cluster
test-cluster: build ## Three members on loopback: every kind of fault once, failover, a rolling restart, moving up and back, clients of others (about 6 minutes)
	@hack/need.sh gcc gcc libc6-dev || echo "no C compiler: librdkafka is NOT TESTED with three members" >&2
	@hack/need.sh node nodejs npm || echo "no Node.js: KafkaJS is NOT TESTED with three members" >&2
	@hack/need.sh python3 python3 python3-venv || echo "no Python: its clients are NOT TESTED with three members" >&2
	@hack/need.sh kcat kcat || echo "no kcat: it is NOT TESTED with three members" >&2
	FRESHET_TEST_CLUSTER=1 FRESHET_TEST_CLIENTS=1 FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -v -p 2 -timeout 15m -run '^Test(Group|Attack|All|Quiet|Fault[^S])' \
		./test/cluster/chaos ./test/cluster/members ./test/cluster/migrate ./test/cluster/demo

.PHONY: chaos
CHAOS_TIME ?= 30m
chaos: build ## The same for CHAOS_TIME (default 30m), faults in an order by chance; FRESHET_SEED= does a run again
	FRESHET_TEST_CLUSTER=1 CHAOS_TIME=$(CHAOS_TIME) FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -v -timeout 24h -run '^TestGroupFaults$$' ./test/cluster/chaos

.PHONY: fixture
fixture: build ## Make a data directory of this version's formats for the tests of later ones: make fixture NAME=format-2
	hack/fixture.sh $(NAME)

.PHONY: race
race: ## Run the suites of everything but the resource API under the race detector
	@hack/need.sh gcc gcc libc6-dev
	CGO_ENABLED=1 go test -race -timeout 30m $(RACE)

.PHONY: race-engine
race-engine: ## Run the embedded engine's suites, and calls between members, under the race detector
	@hack/need.sh gcc gcc libc6-dev
	CGO_ENABLED=1 GOMEMLIMIT=3GiB go test -race -timeout 30m ./internal/storage/engine ./internal/storage/pebble/... ./internal/ensemble/remote ./internal/ensemble/sharded

.PHONY: race-group
race-group: ## Run what members share under the race detector: logs, journals, shards, leases (some minutes)
	@hack/need.sh gcc gcc libc6-dev
	CGO_ENABLED=1 go test -race -timeout 60m ./internal/ensemble/journal ./internal/ensemble/replicated ./internal/ensemble/natsserver ./internal/ensemble/membership/... ./internal/dataplane/...

.PHONY: lint
lint: $(BIN)/.linters ## Run the linters
	$(BIN)/golangci-lint run --allow-parallel-runners ./...
	hack/deadcode.sh

.PHONY: format
format: $(BIN)/.linters ## Format the code
	$(BIN)/golangci-lint fmt ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 10s)
	hack/fuzz.sh

##@ Generate

.PHONY: generate
generate: $(BIN)/.generators ## Regenerate checked-in code
	@hack/need.sh protoc protobuf-compiler || true
	hack/update-codegen.sh

.PHONY: cli-reference
cli-reference: build ## Write docs/reference/cli from what the commands say of themselves
	rm -f docs/reference/cli/*.md
	bin/freshet docs markdown docs/reference/cli

.PHONY: verify
verify: build $(BIN)/.generators ## Regenerate and fail if anything differs from what is checked in
	@hack/need.sh protoc protobuf-compiler || true
	hack/verify.sh

##@ Measure

# What BenchmarkCost compares the resource API with, besides itself.
PEER_ENV = FRESHET_BENCH_PEER=$(PEER) FRESHET_BENCH_PEER_TOKEN=$(PEER_TOKEN) FRESHET_BENCH_PEER_PID=$(PEER_PID) FRESHET_BENCH_BEFORE=$(BEFORE)

.PHONY: bench
bench: build ## Measure start-up, idle memory and the surfaces' speed; PEER= as for bench-cost
	go test -run '^$$' -bench . -timeout 60m ./internal/surfaces/messageapi ./internal/registry/schemas ./internal/surfaces/registryapi
	FRESHET_BIN=$(CURDIR)/bin/freshet $(PEER_ENV) go test -run '^$$' -bench . -timeout 60m ./bench/...

.PHONY: bench-cost
bench-cost: build ## Processor time of resource calls; beside PEER=https://HOST:PORT PEER_TOKEN=FILE PEER_PID=PID,PID (kube-apiserver, etcd) or BEFORE=BINARY
	FRESHET_BIN=$(CURDIR)/bin/freshet $(PEER_ENV) go test -run '^$$' -bench Cost -benchtime 1x -timeout 60m ./bench/resources

.PHONY: bench-messages
bench-messages: build ## Processor time of the server for calls of the message interface, beside a bare handler
	FRESHET_BIN=$(CURDIR)/bin/freshet go test -run '^$$' -bench ServerCost -benchtime 1x -timeout 30m ./bench/messages

.PHONY: bench-stream
bench-stream: build ## Measure the stream protocol beside Apache Kafka (fetched; needs Java); FRESHET_BENCH_ROWS='commit;idle' takes rows by parts of their names
	@hack/need.sh java default-jre-headless && hack/java-libs.sh platform || echo "no Java or no libraries: Apache Kafka is NOT MEASURED" >&2
	FRESHET_BIN=$(CURDIR)/bin/freshet FRESHET_BENCH_KAFKA=$$(test -d .cache/java/platform && echo $(CURDIR)/hack/kafka-peer.sh) \
		go test -run '^$$' -bench Stream -benchtime 1x -timeout 60m ./bench/stream

.PHONY: bench-journals
bench-journals: ## Append to a journal and read its end: embedded, and replicated by one and three servers
	go test -run '^$$' -bench Journal -benchtime 5s -timeout 30m ./internal/ensemble/journal

.PHONY: bench-group
bench-group: build ## Measure three members beside one server: processor time for each message, memory at rest, an empty member
	FRESHET_BIN=$(CURDIR)/bin/freshet go test -v -run '^$$' -bench Group -benchtime 1x -timeout 20m ./bench/group
	go test -run '^$$' -bench EmptyMember -benchtime 3x -timeout 20m ./internal/ensemble/replicated

.PHONY: bench-engine
bench-engine: ## Run the engine's benchmarks (for benchstat in .cache/bench-engine.txt)
	hack/bench-engine.sh .cache/bench-engine.txt

##@ Tools

.PHONY: tools
tools: $(BIN)/.linters $(BIN)/.generators $(BIN)/kubectl ## Build the pinned tools into .cache/bin

# Stamps, so that the tools are built again only when their pins change.
$(BIN)/.linters: tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	go -C tools build -o $(BIN)/ tool
	@touch $@

$(BIN)/.generators: tools/k8s/go.mod tools/k8s/go.sum
	@mkdir -p $(BIN)
	go -C tools/k8s build -o $(BIN)/ tool
	@touch $@

$(BIN)/kubectl: tools/k8s/go.mod tools/k8s/go.sum tools/k8s/kubectl/main.go
	@mkdir -p $(BIN)
	go -C tools/k8s build -ldflags "$(KUBE_LDFLAGS)" -o $@ ./kubectl
	@touch $@

.PHONY: clean
clean: ## Remove what was built; data directories stay
	rm -rf bin .cache

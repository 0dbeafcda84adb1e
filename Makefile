# Every check of CI is a target here; `make` alone lists the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# All builds share one configuration of the build cache: no cgo, no -trimpath.
export CGO_ENABLED := 0

BIN     := $(CURDIR)/.cache/bin
# From the file VERSION; docs/reference/versions.md has the rules.
VERSION := $(shell hack/version.sh)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The version that the Kubernetes libraries report and that kubectl reads.
KUBE_VERSION := 1.37.2
KUBE_LDFLAGS := -X k8s.io/component-base/version.gitVersion=v$(KUBE_VERSION) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37

LDFLAGS := $(KUBE_LDFLAGS) -X freshet/internal/base/version.version=$(VERSION) -X freshet/internal/base/version.commit=$(COMMIT)

# Packages that link no Kubernetes library, so that the race detector is fast enough.
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

.PHONY: build-cli
build-cli: ## Build bin/freshet-cli: the command line without the server
	go build -tags cli -ldflags "$(LDFLAGS)" -o bin/freshet-cli ./cmd/freshet

.PHONY: run
run: build ## Build and start a server with its data in ./freshet-data
	@exec bin/freshet serve --data-dir ./freshet-data

.PHONY: ensemble-demo
ensemble-demo: build ## Run three members on loopback under load; keys kill, pause and revive them
	@go build -o .cache/ensemble-demo ./test/ensemble/demo
	@FRESHET_BIN=$(CURDIR)/bin/freshet exec .cache/ensemble-demo

.PHONY: quick-start
quick-start: build ## Run the README's first five minutes in a shell, with pauses, and time each step
	FRESHET_PAUSE=3s FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -timeout 10m -v -run TestQuickStart ./test/e2e/howto

.PHONY: client-proxy
CLIENT_VERSION ?= v$(shell cat VERSION)
client-proxy: ## Write the Go client as a module proxy to dist/goproxy, for go get without a network
	go run ./hack/goproxy -version $(CLIENT_VERSION) client dist/goproxy

.PHONY: site
site: build ## Write the documentation as static pages for any web server to dist/site
	rm -rf dist/site
	bin/freshet docs site dist/site

##@ Release

# Each step is a command of tools/release. RELEASE='--only freshet_linux_amd64' builds some of the targets.
RELEASE_TOOL = go -C tools/release run .
RELEASE ?=

.PHONY: release
release: ## Build the files of a release into dist, signed with the key in FRESHET_RELEASE_KEY
	$(RELEASE_TOOL) binaries $(RELEASE)
	$(RELEASE_TOOL) notices $(RELEASE)
	$(RELEASE_TOOL) archives $(RELEASE)
	$(RELEASE_TOOL) packages $(RELEASE)
	$(RELEASE_TOOL) image $(RELEASE)
	$(RELEASE_TOOL) sbom $(RELEASE)
	$(RELEASE_TOOL) sums $(RELEASE)

.PHONY: test-packages-install
test-packages-install: build ## Install, start, upgrade and purge the packages under systemd, and run the image (needs root)
	@hack/need.sh rpm rpm || echo "no rpm: the rpm package is NOT TESTED" >&2
	test/release/packages.sh bin/freshet $(PREVIOUS)

.PHONY: test-archive-install
test-archive-install: ## Install the archive of this commit in an empty root over PREVIOUS=PROGRAM (needs root; builds the archive)
	$(MAKE) release RELEASE="--only freshet_linux_$$(go env GOARCH)"
	test/release/archive.sh "dist/freshet_$$(hack/version.sh)_linux_$$(go env GOARCH).tar.gz" $(PREVIOUS)

.PHONY: release-compare
release-compare: ## Build the release of this commit in two other folders and compare all bytes (RELEASE= as above)
	hack/release-compare.sh $(RELEASE)

.PHONY: tag
tag: ## Create the tag of the version in VERSION, after checking VERSION, CHANGELOG and hack/previous-version
	hack/tag.sh

##@ Check

# Third-party clients in separate modules, so that the product does not depend on them.
# (Other modules are run by the tests that start their server: that of the Go client by test/goclient.)
CLIENTS := $(patsubst %/go.mod,%,$(wildcard test/clients/pulsar/go.mod test/clients/dex/go.mod test/clients/operations/go.mod))

.PHONY: check
check: $(BIN)/.linters $(BIN)/vale ## Check the changed files in about 2 min: format, lint, prose, unit tests; SINCE=COMMIT
	hack/check.sh $(SINCE)

# The contract and end-to-end tests run the real binary, some of them with the real
# kubectl; without FRESHET_BIN and KUBECTL they would build both themselves.
.PHONY: test
test: build $(BIN)/kubectl ## Run the whole suite: unit, contract, integration, end to end
	@hack/need.sh gcc gcc libc6-dev || echo "no C compiler: the client that needs one (librdkafka) is NOT TESTED" >&2
	@hack/need.sh node nodejs npm || echo "no Node.js: the registry and Kubernetes clients that need it are NOT TESTED" >&2
	@hack/need.sh python3 python3 python3-venv || echo "no Python: the clients that need it are NOT TESTED" >&2
	@hack/need.sh kcat kcat || echo "no kcat: it is NOT TESTED" >&2
	@hack/need.sh promtool prometheus || echo "no Prometheus: the generated rules and dashboard are NOT TESTED with it" >&2
	@hack/need.sh systemd-analyze systemd || echo "no systemd: the generated unit is NOT TESTED" >&2
	$(MAKE) --jobs=2 --output-sync=line test-packages test-console CONSOLE_TESTS=-short

# Many packages mostly wait, so one more than the number of processors runs at once.
TEST_PACKAGES ?= $(shell expr $$(nproc) + 1)

.PHONY: test-packages
test-packages: build $(BIN)/kubectl
	FRESHET_TEST_CLIENTS=1 FRESHET_BIN=$(CURDIR)/bin/freshet KUBECTL=$(BIN)/kubectl \
		go test -p $(TEST_PACKAGES) -timeout 15m ./...
	for module in $(CLIENTS); do FRESHET_BIN=$(CURDIR)/bin/freshet go -C $$module test ./...; done

# make test runs it beside the other tests, with CONSOLE_TESTS=-short, which opens each page with one theme per width.
.PHONY: test-console
test-console: build $(BIN)/kubectl ## Test every page of the console in a browser; screenshots in .cache/screenshots
	@hack/need.sh chromium chromium || echo "no chromium: the console is NOT TESTED in a browser" >&2
	@hack/need.sh npm nodejs npm || echo "no npm: the console's accessibility is NOT TESTED" >&2
	FRESHET_BIN=$(CURDIR)/bin/freshet KUBECTL=$(BIN)/kubectl go -C test/console test -timeout 15m $(CONSOLE_TESTS) ./...

.PHONY: test-java
test-java: build ## Test with Java clients, Kafka's command line tools, Connect, MirrorMaker and Streams
	@hack/need.sh python3 python3 python3-venv || echo "no Python: the Python consumer of test-java is NOT TESTED" >&2
	@if hack/java-libs.sh client-3.9 client-4 platform; then \
		FRESHET_TEST_JAVA=1 FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -timeout 15m ./test/clients/java ./test/kafkadiff; \
	else \
		echo "NOT TESTED: Kafka's Java clients, command line tools, Connect, Streams, Avro in Java: no JDK, Maven or libraries" >&2; \
	fi

.PHONY: test-mirror
test-mirror: build ## Copy topics and groups with MirrorMaker 2 from Apache Kafka and back (5 min)
	@hack/java-libs.sh platform
	FRESHET_TEST_JAVA=1 FRESHET_TEST_MIRROR=1 FRESHET_BIN=$(CURDIR)/bin/freshet \
		go test -count=1 -v -timeout 15m -run '^TestMirrorMaker$$' ./test/clients/java

.PHONY: test-attack
test-attack: build ## Attack a running server for some minutes; prints attempts and successes
	@hack/need.sh chromium chromium || echo "no chromium: the attacks on the console are NOT RUN and count as failed" >&2
	FRESHET_BIN=$(CURDIR)/bin/freshet hack/tally.sh attack

.PHONY: test-faults
test-faults: build ## Inject faults into a running server for some minutes; prints losses, errors and recovery times
	FRESHET_BIN=$(CURDIR)/bin/freshet hack/tally.sh fault

.PHONY: test-ensemble
test-ensemble: build ## Test three members on loopback: faults, failover, damage, rolling restart, migration, clients (7 min)
	@hack/need.sh gcc gcc libc6-dev || echo "no C compiler: librdkafka is NOT TESTED with three members" >&2
	@hack/need.sh node nodejs npm || echo "no Node.js: KafkaJS is NOT TESTED with three members" >&2
	@hack/need.sh python3 python3 python3-venv || echo "no Python: its clients are NOT TESTED with three members" >&2
	@hack/need.sh kcat kcat || echo "no kcat: it is NOT TESTED with three members" >&2
	@hack/need.sh prometheus prometheus || echo "no Prometheus: alerts are NOT TESTED with three members" >&2
	FRESHET_TEST_CLUSTER=1 FRESHET_TEST_CLIENTS=1 FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -v -p 2 -timeout 15m -run '^Test(Ensemble|Attack|All|Quiet|Fault[^S])' \
		./test/ensemble/chaos ./test/ensemble/members ./test/ensemble/migrate ./test/ensemble/demo ./test/ensemble/damage

.PHONY: test-charts
test-charts: build ## Test the Helm chart: Helm, the validation of kube-apiserver, and its pods as processes (root only)
	FRESHET_BIN=$(CURDIR)/bin/freshet go -C test/charts test -count=1 -timeout 60m ./...
	FRESHET_BIN=$(CURDIR)/bin/freshet go -C test/charts/kubernetes test -count=1 ./...

.PHONY: test-upgrade
test-upgrade: build ## Upgrade three members of the previous version (hack/previous-version) one by one under load
	FRESHET_PREVIOUS="$$(hack/previous.sh)" FRESHET_TEST_CLUSTER=1 FRESHET_BIN=$(CURDIR)/bin/freshet \
		go test -count=1 -v -timeout 15m -run '^TestUpgrade$$' ./test/ensemble/chaos

.PHONY: test-release
test-release: ## Test that release files are reproducible, verify and compile for other systems (builds the command line)
	FRESHET_TEST_RELEASE=1 go test -count=1 -v -timeout 30m ./test/release

.PHONY: chaos
CHAOS_TIME ?= 30m
chaos: build ## Inject faults and damage in random order for CHAOS_TIME (default 30m); FRESHET_SEED= repeats a run
	FRESHET_TEST_CLUSTER=1 CHAOS_TIME=$(CHAOS_TIME) FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -v -timeout 24h -run '^TestEnsembleFaults$$' ./test/ensemble/chaos

# The tests of damaged files. DAMAGE_OUT=FILE sets the file of the results (JSON).
DAMAGE_TEST = FRESHET_TEST_CLUSTER=1 FRESHET_TEST_DAMAGE=1 FRESHET_BIN=$(CURDIR)/bin/freshet go test -count=1 -v -timeout 24h ./test/ensemble/damage -run

.PHONY: test-damage
test-damage: build ## Damage every class of file of a member in every way (2 h); DAMAGE_RUN=REGEXP selects, FRESHET_SEED= repeats
	DAMAGE_RUN='$(DAMAGE_RUN)' $(DAMAGE_TEST) '^TestDamage(Matrix|Together)$$'

.PHONY: damage-soak
DAMAGES ?= 200
damage-soak: build ## Damage files DAMAGES times (default 200) on rotating members of one ensemble; FRESHET_SEED= repeats
	DAMAGES=$(DAMAGES) $(DAMAGE_TEST) '^TestDamageSoak$$'

.PHONY: crash-images
CRASH_IMAGES ?= 20
crash-images: build ## Start all members from crash images of one instant, CRASH_IMAGES times (default 20)
	CRASH_IMAGES=$(CRASH_IMAGES) $(DAMAGE_TEST) '^TestCrashImages$$'

# A process runs one simulation at a time, so the seeds are distributed over as many processes as there are cores.
SIMULATE = FRESHET_SEED_WORKERS=$(if $(FRESHET_SEED),1,$(shell nproc)) go test -count=1 -v -timeout 24h ./test/ensemble/simulation -run

.PHONY: simulate
SEEDS ?= $(if $(FRESHET_SEED),20,1000)
simulate: ## Simulate members, logs, leases and faults for SEEDS seeds (default 1000); FRESHET_SEED= repeats one seed
	FRESHET_SEEDS=$(SEEDS) $(SIMULATE) '^TestSimulation$$'

.PHONY: simulate-mutants
simulate-mutants: ## Check that the simulation finds each of the bugs that are built into the code for this test
	FRESHET_TEST_MUTANTS=1 $(SIMULATE) '^TestMutants$$'

.PHONY: fixture
fixture: build ## Create a data directory of the current formats for later versions: make fixture NAME=format-2
	hack/fixture.sh $(NAME)

.PHONY: race
race: ## Run all suites except the resource API under the race detector
	@hack/need.sh gcc gcc libc6-dev
	CGO_ENABLED=1 go test -race -timeout 30m $(RACE)
	CGO_ENABLED=1 go -C client test -race -timeout 30m ./...

.PHONY: race-engine
race-engine: ## Run the engine's suites and calls between members under the race detector
	@hack/need.sh gcc gcc libc6-dev
	CGO_ENABLED=1 GOMEMLIMIT=3GiB go test -race -timeout 30m ./internal/storage/engine ./internal/storage/pebble/... ./internal/ensemble/remote ./internal/ensemble/sharded

.PHONY: race-ensemble
race-ensemble: ## Run the suites of an ensemble under the race detector: logs, journals, shards, leases
	@hack/need.sh gcc gcc libc6-dev
	CGO_ENABLED=1 go test -race -p 1 -timeout 60m ./internal/ensemble/journal ./internal/ensemble/replicated ./internal/ensemble/natsserver ./internal/ensemble/membership/... ./internal/dataplane/...

.PHONY: lint
lint: $(BIN)/.linters prose ## Run the linters
	$(BIN)/golangci-lint run --allow-parallel-runners ./...
	cd client && $(BIN)/golangci-lint run --allow-parallel-runners ./...
	hack/deadcode.sh

.PHONY: prose
prose: $(BIN)/vale ## Check the prose of pages, comments and messages against the rules in hack/prose/styles
	hack/prose/run.sh

.PHONY: format
format: $(BIN)/.linters ## Format the code
	$(BIN)/golangci-lint fmt ./...
	cd client && $(BIN)/golangci-lint fmt ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 10s)
	hack/fuzz.sh

##@ Generate

.PHONY: generate
generate: $(BIN)/.generators ## Regenerate checked-in code
	@hack/need.sh protoc protobuf-compiler || true
	hack/update-codegen.sh

.PHONY: cli-reference
cli-reference: build ## Generate docs/reference/cli from the commands' help
	rm -f docs/reference/cli/*.md
	bin/freshet docs markdown docs/reference/cli

.PHONY: verify
verify: build $(BIN)/.generators ## Regenerate and fail if a checked-in file differs
	@hack/need.sh protoc protobuf-compiler || true
	hack/verify.sh

.PHONY: screenshots
screenshots: build ## Make the pictures of the tutorial and the README in docs/images from a real server (needs chromium)
	hack/need.sh chromium chromium
	FRESHET_SCREENSHOTS=$(CURDIR)/docs/images FRESHET_BIN=$(CURDIR)/bin/freshet go -C test/console test -count=1 -run '^TestScreenshots$$' ./...

##@ Measure

# The servers that BenchmarkCost compares the resource API with.
# PEER=https://HOST:PORT PEER_TOKEN=FILE PEER_PID=PID,PID name a kube-apiserver and its etcd,
# BEFORE=BINARY another freshet binary.
PEER_ENV = FRESHET_BENCH_PEER=$(PEER) FRESHET_BENCH_PEER_TOKEN=$(PEER_TOKEN) FRESHET_BENCH_PEER_PID=$(PEER_PID) FRESHET_BENCH_BEFORE=$(BEFORE)

.PHONY: bench
bench: build ## Measure startup, idle memory and the speed of the surfaces; PEER= as for bench-cost
	go test -run '^$$' -bench . -timeout 60m ./internal/surfaces/messageapi ./internal/registry/schemas ./internal/surfaces/registryapi
	FRESHET_BIN=$(CURDIR)/bin/freshet $(PEER_ENV) go test -run '^$$' -bench . -timeout 60m ./bench/...

.PHONY: bench-cost
bench-cost: build ## CPU time of resource calls, compared with PEER= PEER_TOKEN= PEER_PID= or BEFORE=BINARY
	FRESHET_BIN=$(CURDIR)/bin/freshet $(PEER_ENV) go test -run '^$$' -bench Cost -benchtime 1x -timeout 60m ./bench/resources

.PHONY: bench-messages
bench-messages: build ## CPU time of calls of the message API, compared with a bare handler
	FRESHET_BIN=$(CURDIR)/bin/freshet go test -run '^$$' -bench ServerCost -benchtime 1x -timeout 30m ./bench/messages

.PHONY: bench-kafka
bench-kafka: build ## Compare with Apache Kafka (needs Java); FRESHET_BENCH_ROWS='commit;idle' selects rows
	@hack/need.sh java default-jre-headless && hack/java-libs.sh platform || echo "no Java or no libraries: Apache Kafka is NOT MEASURED" >&2
	FRESHET_BIN=$(CURDIR)/bin/freshet FRESHET_BENCH_KAFKA=$$(test -d .cache/java/platform && echo $(CURDIR)/hack/kafka-peer.sh) \
		go test -run '^$$' -bench Kafka -benchtime 1x -timeout 60m ./bench/kafka

.PHONY: bench-journals
bench-journals: ## Measure appends to a journal and reads of its end: embedded, and with one and three servers
	go test -run '^$$' -bench Journal -benchtime 5s -timeout 30m ./internal/ensemble/journal

.PHONY: bench-ensemble
bench-ensemble: build ## Compare three members with one server: CPU time per message, memory, starved members, an empty member
	FRESHET_BIN=$(CURDIR)/bin/freshet go test -v -run '^$$' -bench Ensemble -benchtime 1x -timeout 20m ./bench/ensemble
	go test -run '^$$' -bench EmptyMember -benchtime 3x -timeout 20m ./internal/ensemble/replicated

.PHONY: bench-engine
bench-engine: ## Run the engine's benchmarks; raw output for benchstat in .cache/bench-engine.txt
	hack/bench-engine.sh .cache/bench-engine.txt

##@ Tools

.PHONY: tools
tools: $(BIN)/.linters $(BIN)/.generators $(BIN)/kubectl ## Build the pinned tools into .cache/bin

# Stamp files, so that the tools are rebuilt only when their pinned versions change.
$(BIN)/.linters: tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	go -C tools build -o $(BIN)/ tool
	@touch $@

# Vale parses code with C libraries.
$(BIN)/vale: tools/vale/go.mod tools/vale/go.sum
	@mkdir -p $(BIN)
	@hack/need.sh gcc gcc libc6-dev
	CGO_ENABLED=1 CGO_CFLAGS="-O1 -w" go -C tools/vale build -o $(BIN)/vale tool
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
clean: ## Remove build outputs and caches; data directories stay
	rm -rf bin dist .cache

# Earlier names of targets, kept for one release.
.PHONY: cluster-demo test-cluster race-group bench-group bench-stream
cluster-demo: ensemble-demo
test-cluster: test-ensemble
race-group: race-ensemble
bench-group: bench-ensemble
bench-stream: bench-kafka

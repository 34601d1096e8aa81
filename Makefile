# For a newcomer: `make demo`, `make test-core`, `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test test-core lint bench docs clean

$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

# The reference package brings the OpenCV build with windows, which needs libGL; the plain one goes over it.
HEADLESS = $(BIN)/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps \
	'opencv-python-headless>=4.12,<5'

# An environment of its own, so that `make test` beside it does not bring the frameworks in.
CORE := .core-venv
$(CORE)/.core: pyproject.toml
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/pip install --quiet --disable-pip-version-check --editable '.[test-core]'
	$(subst $(BIN),$(CORE)/bin,$(HEADLESS))
	touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	$(HEADLESS)
	touch $@

$(VENV)/.lint: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test,lint]'
	$(HEADLESS)
	touch $@

demo: $(VENV)/.run  ## render every corruption of a built-in street scene
	$(BIN)/stormproof world --split val --count 8 --size 768x480 --format coco --out demo/street --overwrite
	$(BIN)/stormproof gallery demo/street/val2017/000000000007.png --out demo/gallery.png --overwrite
	@echo "Look at demo/gallery.png"

test: $(VENV)/.test  ## every test that needs no GPU
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not gpu" --doctest-modules tests src/stormproof

test-core: $(CORE)/.core  ## the same without torch, Ray and the like: tests that need them are skipped
	$(CORE)/bin/python -m pytest -n $(JOBS) --dist loadgroup -m "not gpu" tests

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Peers want older NumPy and Numba, so they get an environment of their own.
.bench-venv/.bench: pyproject.toml
	$(PYTHON) -m venv .bench-venv
	.bench-venv/bin/pip install --quiet --disable-pip-version-check --editable '.[test,bench]'
	$(subst $(BIN),.bench-venv/bin,$(HEADLESS))
	touch $@

bench: .bench-venv/.bench  ## ours beside its peers, in one run
	@missed=""; for file in benchmarks/*.py; do echo "== $$file"; \
		.bench-venv/bin/python $$file || missed="$$missed $$file"; done; \
	if [ -n "$$missed" ]; then echo "A bar was missed in:$$missed"; exit 1; fi

docs: $(VENV)/.test  ## remake the generated pages
	@for file in docs/make_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) $(CORE) .bench-venv demo

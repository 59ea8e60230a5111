"""The page of Semi-Structured Chain-of-Thought over a tiny file of each of its data sets, with a scripted model."""

import csv
import json
import re
import shlex

import pytest

from clew.core.errors import UsageError
from clew.core.types import Usage
from clew.evaluate.metrics import parse_metric
from clew.evaluate.run_folder import RunFolder, evaluate_recipes
from clew.evaluate.setup import EvaluationSettings, load_questions
from clew.papers.semicot import build_settings, describe_samples, plan_recipes
from command_line import run
from scripted import Reply, ScriptedServer
from sparql_servers import store_turtle

#: Film, director, the director's town, the town's mayor.
WORLD = [
    ("The Salt Orchard", "Ilse Varnholt", "Dunmere", "Wilmot Harker"),
    ("Low Water", "Emil Szarka", "Saltreach", "Jutta Kessel"),
    ("Glass Harvest", "Ruben Achterberg", "Port Ellery", "Ada Strake"),
]
#: What the model knows by heart of each question: its chain, and how it fills it.
CHAINS = {}
ANSWERS = {}
for film, director, town, mayor in WORLD:
    CHAINS[f"Where was the director of {film} born?"] = (
        f"{film} >> director >> #1; #1 >> place of birth >> #2; final answer: #2"
    )
    CHAINS[f"Who is the mayor of the birthplace of {director}?"] = (
        f"{director} >> place of birth >> #1; #1 >> mayor >> #2; final answer: #2"
    )
    CHAINS[f"The director of {film} was born in {town}."] = (
        f"{film} >> director >> #1; #1 >> place of birth >> #2; final answer: #answer"
    )
    ANSWERS |= {
        f"What is the director of {film}?": director,
        f"What is the place of birth of {director}?": town,
        f"What is the mayor of {town}?": mayor,
    }
# What no passage says and no graph holds.
del ANSWERS["What is the place of birth of Emil Szarka?"]
del ANSWERS["What is the mayor of Port Ellery?"]


def passages():
    """Yield title and sentence of each passage; those of what nobody knows say something else."""
    for film, director, town, mayor in WORLD:
        yield film, f"{film} is a film directed by {director} in the summer."
        yield director, f"{director} was a film director, born in the town of {town}."
        yield town, f"{town} is a town by the water, and its mayor is {mayor}."


def two_wiki():
    held = dict(passages())
    for film, director, town, _ in WORLD:
        yield {
            "_id": f"w-{film[:3]}",
            "type": "compositional",
            "question": f"Where was the director of {film} born?",
            "answer": town,
            "context": [[title, [text]] for title, text in held.items()],
            "supporting_facts": [[film, 0], [director, 0]],
            "evidences": [[film, "director", director], [director, "place of birth", town]],
        }


def musique():
    for number, (_, director, town, mayor) in enumerate(WORLD):
        paragraphs = [
            {"idx": n, "title": title, "paragraph_text": text, "is_supporting": title in {director, town}}
            for n, (title, text) in enumerate(passages())
        ]
        titles = [paragraph["title"] for paragraph in paragraphs]
        yield {
            "id": f"2hop__{number}" if number < 2 else f"3hop1__{number}",
            "paragraphs": paragraphs,
            "question": f"Who is the mayor of the birthplace of {director}?",
            "question_decomposition": [
                {
                    "question": f"{director} >> place of birth",
                    "answer": town,
                    "paragraph_support_idx": titles.index(director),
                },
                {
                    "question": "Who is the mayor of #1 ?",
                    "answer": mayor,
                    "paragraph_support_idx": titles.index(town),
                },
            ],
            "answer": mayor,
            "answer_aliases": [],
            "answerable": True,
        }


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The four files, as ``--data`` takes them."""
    folder = tmp_path_factory.mktemp("data")
    with (folder / "bamboogle.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [
                ("Question", "Answer"),
                *((f"Where was the director of {film} born?", town) for film, _, town, _ in WORLD),
            ]
        )
    claims = [
        {
            "id": n,
            "label": "SUPPORTS",
            "claim": f"The director of {film} was born in {town}.",
            "evidence": [],
        }
        for n, (film, _, town, _) in enumerate(WORLD)
    ]
    return {
        "2wikimultihopqa": lines(folder / "wiki.jsonl", two_wiki()),
        "musique": lines(folder / "musique.jsonl", musique()),
        "bamboogle": folder / "bamboogle.csv",
        "fever": lines(folder / "fever.jsonl", claims),
        "graph": graph(folder / "films.tsv"),
    }


def graph(path):
    path.write_text("".join(f"{film}\tdirector\t{who}\n" for film, who, *_ in WORLD), encoding="utf-8")
    return path


def reply(request):
    """Write chains as they should be, answer what the context holds, and remember nothing."""
    user = request.user
    question = re.findall(r"^(?:Question|Claim): (.*)$", user, re.M)[-1:]
    if "You rewrite a" in request.system:
        return CHAINS[question[0]]
    if "You turn a triple" in request.system:
        head, relation = re.findall(r'^Triplet: \("(.*?)", "(.*?)", \?\)', user, re.M)[-1]
        return f"What is the {relation} of {head}?"
    if "from the context alone" in request.system:
        answer = ANSWERS.get(question[0], "unknown")
        return answer if answer in user.rpartition("Context: ")[2] else "unknown"
    if "You fill in what is missing" in request.system:
        chain = user.rpartition("Reasoning Chain: ")[2].partition("\n")[0]
        label = "SUPPORTS" if "#" not in chain.partition("final")[0] else "NOT ENOUGH INFO"
        return chain.replace("#answer", label if "claim" in request.system else "unknown")
    if "whether a claim is true" in request.system:
        return "So the answer is: REFUTES" if "step by step" in request.system else "REFUTES"
    if "steps of Thought" in request.system:
        return "Thought: I know it.\nAction: Finish[Dunmere]"
    return "So the answer is: Dunmere" if "step by step" in request.system else "Dunmere"


def command(data, out, *more, names=("2wikimultihopqa", "musique", "bamboogle", "fever")):
    words = [word for name in names for word in ("--data", f"{name}={data[name]}")]
    return ["eval", "paper", "semicot", *words, "--encoder", "none", "--out", out, *more]


@pytest.fixture(scope="module")
def page(data, tmp_path_factory):
    """The folder of a whole page, its text, what the command said, and the requests that it took."""
    out = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(reply) as server:
        patch.setenv("CLEW_CACHE", str(out / "cache"))
        words = command(data, out, "--llm", server.llm, "--graph", data["graph"], "--graph", "oracle",
                        "--retriever", "bm25")  # fmt: skip
        output = run(*words).output
        text = (out / "page.md").read_text(encoding="utf-8")
        asked_ = len(server.requests)
        # The page names the command that makes it; nothing is asked twice.
        (again,) = re.findall(r"\A# .*?```console\nclew (.*?)\n```", text, re.S)
        run(*shlex.split(again))
        assert (out / "page.md").read_text(encoding="utf-8") == text and len(server.requests) == asked_
    return out, text, output


def values(page, folder, recipe, name):
    (result,) = RunFolder(page[0] / folder).load_runs([recipe])
    assert not result.errors
    return result.values(parse_metric(name))


BM25 = "retriever=bm25, "


@pytest.mark.slow
def test_the_chain_answers_what_graph_and_text_hold(page):
    wiki, two = "2wikimultihopqa-pooled", "musique-2hop-pooled"
    # The graph knows the directors, the passages all towns but one that the reader cannot name.
    for sources in ("kg,text,model", "text,kg,model", "text", "kg,text"):
        recipe = f"chain(reader=hops, {BM25}sources='{sources}')"
        assert values(page, wiki, recipe, "EM") == {"w-The": 1.0, "w-Low": 0.0, "w-Gla": 1.0}, sources
    hop = f"chain(choose=hop, reader=hops, {BM25}sources='kg,text,model')"
    assert values(page, wiki, hop, "EM") == {"w-The": 1.0, "w-Low": 0.0, "w-Gla": 1.0}
    # The graph has no birthplaces, and the model remembers nothing.
    for sources in ("kg", "model", "kg,model"):
        recipe = f"chain(reader=hops, {BM25}sources='{sources}')"
        assert set(values(page, wiki, recipe, "EM").values()) == {0.0}, sources
    assert values(page, wiki, "fewshot", "EM") == {"w-The": 1.0, "w-Low": 0.0, "w-Gla": 0.0}
    recipe = f"chain(reader=hops, {BM25}sources='kg,text,model')"
    assert values(page, two, recipe, "EM") == {"2hop__0": 1.0, "2hop__1": 0.0}
    # The oracle graph knows what no reader could say.
    assert set(values(page, f"oracle/{wiki}", recipe, "EM").values()) == {1.0}


@pytest.mark.slow
def test_claims_and_bamboogle_are_asked_as_the_paper_asks_them(page):
    label = "chain(reader=hops, sources='kg,model', task=claim)"
    assert set(values(page, "fever-none", label, "accuracy").values()) == {0.0}
    facts = RunFolder(page[0] / "bamboogle-none").facts
    assert "fewshot(exemplars=compositional, shots=4)" in facts["recipes"]
    assert not any("text" in fact or "selfask" in fact for fact in facts["recipes"])
    assert "Skipped: what searches: there is nothing to search" in page[1]


@pytest.mark.slow
def test_the_page_has_every_table_and_says_what_it_cost_before(page, data):
    _, text, output = page
    assert re.findall(r"^### (.*?)(?:, .*)?$", text, re.M) == [
        "Methods", "Sources and orders", "Oracle graph", "Single-round and multi-round retrieval",
        "Methods", "Sources and orders", "Single-round and multi-round retrieval",
        "Methods", "Sources and orders", "Methods", "Sources and orders", "Errors of the chain",
    ]  # fmt: skip
    assert "| oracle graph | 3 | 0 | 1.000 [1.000, 1.000] (+0.333" in text
    assert f"| graphs: {data['graph']} |" in text and "--graph oracle" in text
    foreseen = re.findall(
        r"^chain\(reader=hops, retriever=bm25, sources='text'\): about (\d+) calls", output, re.M
    )
    # A chain and a question for its first hop; of what the examples of a prompt are about, there is nothing to read.
    assert foreseen == ["6", "4"]
    assert re.search(r"rounds of bm25: about 3 calls", output)


@pytest.mark.slow
def test_errors_are_sorted_and_written_down(page):
    out, text, _ = page
    record = [json.loads(line) for line in (out / "errors.jsonl").read_text(encoding="utf-8").splitlines()]
    by_data = {(value["data"], value["id"]): value for value in record}
    item = by_data["2wikimultihopqa (pooled)", "w-Low"]
    assert (
        item["class"] == "unfilled"
        and item["values"] == {"#1": ["Emil Szarka"]}
        and item["gold"] == ["Saltreach"]
    )
    assert item["chain"] == "Low Water >> director >> #1; #1 >> place of birth >> #2; final answer: #2"
    assert (
        item["gold chain"][1] == ["Emil Szarka", "place of birth", "Saltreach"] and item["prediction"] == ""
    )
    assert by_data["musique-2hop (pooled)", "2hop__1"]["class"] == "unfilled"
    rows = dict(re.findall(r"^\| (unfilled|false negative|undecided) \| (.*?) \|$", text, re.M))
    assert rows["unfilled"] == "1 | 1 | 3 | 3" and rows["false negative"] == "0 | 0 | 0 | 0"


@pytest.mark.slow
def test_rounds_are_measured_over_the_pool_of_all(page):
    out, text, _ = page
    folder = out / "rounds-model" / "musique-2hop-pooled"
    (file,) = folder.glob("rounds-bm25-*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["id"] for record in records] == ["2hop__0", "2hop__1"]
    first, second = (record["rounds"] for record in records)
    assert first["multi-round, gold"]["queries"] == [
        "What is the place of birth of Ilse Varnholt?", "Who is the mayor of Dunmere ?"
    ]  # fmt: skip
    assert first["multi-round, hops"]["values"] == {"#1": "Dunmere"}
    assert set(first) == {"single round", "multi-round, gold", "multi-round, span", "multi-round, hops"}
    # Nine passages in all, each once though two files bring them.
    assert len(first["single round"]["found"]) <= 9
    assert "| musique-2hop (pooled), bm25 | single round | 2 | 0 |" in text
    pool = RunFolder(folder).facts["pool"]
    assert [item.partition("=")[0] for item in pool] == ["2wikimultihopqa", "musique"]
    assert second["multi-round, gold"]["values"] == {"#1": "Saltreach"}


def test_without_a_model_there_are_rounds(data, tmp_path):
    out = tmp_path / "out"
    words = command(data, out, "--retriever", "search", "--retriever", "bm25", names=("musique", "bamboogle"))
    run(*words)
    text = (out / "page.md").read_text(encoding="utf-8")
    assert text.count("Skipped: all that a model answers: needs --llm.") == 2
    assert (
        "| musique-2hop (pooled), search | multi-round, span | 2 | 0 |" in text and "errors.jsonl" not in text
    )
    # Killed within a line: what was whole stays, the rest is measured again, and the page is the same.
    (file,) = (out / "rounds" / "musique-2hop-pooled").glob("rounds-bm25-*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 40])
    run(*words)
    assert file.read_bytes() == whole and (out / "page.md").read_text(encoding="utf-8") == text


def test_what_makes_no_sense_is_said_before_anything_runs(data, tmp_path):
    out = tmp_path / "out"
    assert "Known: " in run("eval", "paper", "semicot", "--data", f"hotpotqa={data['musique']}", "--out", out,
                            status=2).output  # fmt: skip
    run(*command(data, out, "--graph", tmp_path / "none.tsv"), status=2)
    run(*command(data, out, "--corpus", "pooled"), status=2)
    run(*command(data, out, names=("musique", "musique")), status=2)
    assert not out.exists()
    with pytest.raises(UsageError, match="no pool"):
        load_questions(f"bamboogle={data['bamboogle']}", "none", None, 0, [f"musique={data['musique']}"])
    shown = " ".join(run("eval", "paper", "semicot", "--help").output.split())
    assert "oracle" in shown and "no model" in shown and "semicot" in run("eval", "paper", "--help").output


def test_retrievers_are_named_for_all_or_for_one(data):
    settings = build_settings((), ["bm25", "bamboogle=serpapi", "hybrid(a=bm25, b=search)"], (), None, 2)
    assert (
        settings.retriever_for("musique-2hop") == "bm25" and settings.retriever_for("bamboogle") == "serpapi"
    )
    assert settings.compared_retrievers(encoder=True) == ["bm25", "hybrid(a=bm25, b=search)"]
    assert build_settings((), (), (), None, 1).compared_retrievers(encoder=False) == ["search", "bm25", "kgp"]
    web = plan_recipes(settings.load_questions(f"bamboogle={data['bamboogle']}", None, 0), settings)
    assert web.has_search and web.chain == (
        "chain(exemplars=compositional, reader=hops, retriever=serpapi, samples=2, shots=4, sources='kg,text,model')"
    )
    # Of the file of 2- and 3-hop questions, two are asked, and the paragraphs of all are there.
    two = settings.load_questions(f"musique={data['musique']}", None, 0)
    assert [example.id for example in two.examples] == ["2hop__0", "2hop__1"] and two.pool == (
        f"musique={data['musique']}",
    )


def test_graphs_stand_beside_a_corpus_that_is_made(data, tmp_path):
    questions = load_questions(f"2wikimultihopqa={data['2wikimultihopqa']}", "pooled", 1, 0)
    messages = []
    with ScriptedServer(reply) as server:
        from clew.knowledge_base import registry

        bench = EvaluationSettings(
            registry.load_language_model(server.llm), llm_name=server.llm, graphs=(str(data["graph"]),)
        )
        folder = evaluate_recipes(
            tmp_path / "runs",
            questions,
            ["chain(sources=kg)"],
            bench,
            report_estimate=lambda *one: messages.append(one),
        )
    (record,) = folder.result_file("chain(sources=kg)").records()
    film = next(item for item in WORLD if item[0] in questions.examples[0].question)
    assert record["filling"]["values"] == {"#1": [film[1]]} and folder.facts["graphs"] == [str(data["graph"])]
    assert isinstance(messages[0][1], Usage) and messages[0][1].calls == 1
    with pytest.raises(UsageError, match="not to 'question'"):
        evaluate_recipes(
            tmp_path / "other", load_questions(questions.data, "question", 1, 0), ["chain(sources=kg)"], bench
        )
    twice = EvaluationSettings(graphs=(str(data["graph"]),) * 2)
    with pytest.raises(UsageError, match="two graphs are called 'films'"):
        evaluate_recipes(tmp_path / "twice", questions, ["read"], twice)


@pytest.mark.slow
def test_a_run_that_broke_goes_on_and_ends_as_if_it_had_not(data, tmp_path):
    broken = []

    def script(request):
        failing = broken and "You fill in what is missing" in request.system
        return Reply(status=418) if failing else reply(request)

    with ScriptedServer(script) as server:
        words = ["--llm", server.llm, "--graph", data["graph"]]
        broken.append(True)
        run(*command(data, tmp_path / "one", *words, names=("bamboogle",)))
        assert "| 0 | 3 |" in (tmp_path / "one" / "page.md").read_text(encoding="utf-8")
        broken.clear()
        run(*command(data, tmp_path / "one", *words, names=("bamboogle",)))
        run(*command(data, tmp_path / "two", *words, names=("bamboogle",)))
    errors, folders = zip(*((tmp_path / name / "errors.jsonl", tmp_path / name / "bamboogle-none")
                            for name in ("one", "two")), strict=True)  # fmt: skip
    assert errors[0].read_text() == errors[1].read_text() and errors[0].read_text().count("unfilled") == 3
    recipes = RunFolder(folders[0]).facts["recipes"]
    assert recipes == RunFolder(folders[1]).facts["recipes"]
    for recipe in recipes:
        held = [
            {id: (value.answer, value.hit_pieces, value.usage.calls) for id, value in item.results.items()}
            for item in (RunFolder(folder).load_runs([recipe])[0] for folder in folders)
        ]
        assert held[0] == held[1] and len(held[0]) == 3, recipe


@pytest.mark.slow
def test_a_graph_that_stays_where_it_is_is_mounted(data, tmp_path):
    pytest.importorskip("pyoxigraph")
    text = "".join(
        f'<x:{n}> <http://www.w3.org/2000/01/rdf-schema#label> "{film}" ; <x:director> <x:d{n}> .\n'
        f'<x:d{n}> <http://www.w3.org/2000/01/rdf-schema#label> "{who}" .\n'
        for n, (film, who, *_) in enumerate(WORLD)
    )
    place = str(
        store_turtle(
            tmp_path / "films",
            f'<x:director> <http://www.w3.org/2000/01/rdf-schema#label> "director" .\n{text}',
        )
    )
    questions = load_questions(f"2wikimultihopqa={data['2wikimultihopqa']}", "pooled", None, 0)
    with ScriptedServer(reply) as server:
        from clew.knowledge_base import registry

        bench = EvaluationSettings(
            registry.load_language_model(server.llm), llm_name=server.llm, graphs=(place,)
        )
        folder = evaluate_recipes(tmp_path / "runs", questions, ["chain(sources=kg)"], bench)
    held = {
        record["id"]: record["filling"]["values"]
        for record in folder.result_file("chain(sources=kg)").records()
    }
    assert held == {f"w-{film[:3]}": {"#1": [who]} for film, who, *_ in WORLD}
    assert folder.facts["graphs"] == [place]


def test_the_page_says_what_the_paper_does_not_say_of_samples():
    assert "neither their number nor the temperature" in describe_samples(1)
    assert "Here 5 are drawn at temperature 0.7" in describe_samples(5)

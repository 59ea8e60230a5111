import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import tiny_models
from clew.core.errors import MissingExtra, ModelError
from clew.core.protocols import Prompt
from clew.models import create_language_model
from clew.models.local import LocalModel, _Request
from tiny_models import TEMPLATE, save_model, tokenizer

try:
    import torch
    import transformers
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="needs the extra 'local' (torch and transformers)")
# Third-party warnings of the loading code are not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = "river boat bridge keeper gauge water stone captain bank harbour light tide".split()
PROMPTS = [
    Prompt("river boat bridge", max_tokens=6),
    Prompt("stone", max_tokens=9),
    Prompt("tide " * 9, max_tokens=4),
]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    words = tokenizer(WORDS)
    return save_model(tmp_path_factory.mktemp("llama"), tiny_models.llama(words), words)


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    words = tokenizer(WORDS, TEMPLATE)
    return save_model(tmp_path_factory.mktemp("chat"), tiny_models.llama(words), words)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    words = tokenizer(WORDS)
    return save_model(tmp_path_factory.mktemp("t5"), tiny_models.t5(words), words)


def greedy(folder, text, limit):
    """Decode one text by hand: the most likely token, one after the other, without padding."""
    words = transformers.AutoTokenizer.from_pretrained(folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = (
        transformers.T5ForConditionalGeneration
        if config.is_encoder_decoder
        else transformers.LlamaForCausalLM
    )
    model = kind.from_pretrained(folder).eval()
    input_ids = words(text, return_tensors="pt")["input_ids"]
    completions = []
    with torch.inference_mode():
        for _ in range(limit):
            if config.is_encoder_decoder:
                logits = model(
                    input_ids=input_ids, decoder_input_ids=torch.tensor([[0, *completions]])
                ).logits
            else:
                logits = model(
                    input_ids=torch.cat([input_ids, torch.tensor([completions], dtype=torch.long)], dim=1)
                ).logits
            completions.append(int(logits[0, -1].argmax()))
            if completions[-1] == config.eos_token_id:
                break
    return (
        words.decode(completions, skip_special_tokens=True).strip(),
        input_ids.shape[1],
        len([m for m in completions if m > 1]),
    )


@needs_torch
@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_a_batch_is_what_greedy_decoding_gives_one_by_one(kind, request):
    folder = request.getfixturevalue(kind)
    completions = LocalModel(str(folder)).complete(PROMPTS)
    for prompt, completion in zip(PROMPTS, completions, strict=True):
        text, input_ids, length = greedy(folder, prompt.user, prompt.max_tokens)
        assert completion.text == text
        assert completion.usage.tokens_in == input_ids
        assert completion.usage.tokens_out == length
        assert (completion.usage.calls, completion.usage.money, completion.usage.estimated) == (1, 0.0, False)
    assert any(completion.text for completion in completions)


@needs_torch
def test_batches_of_any_size_give_the_same(llama):
    one_by_one = [completion.text for completion in LocalModel(str(llama), batch_size=1).complete(PROMPTS)]
    assert [
        completion.text for completion in LocalModel(str(llama), batch_size=2).complete(PROMPTS)
    ] == one_by_one


@needs_torch
def test_the_chat_template_is_used_where_there_is_one(chat):
    (completions,) = LocalModel(str(chat)).complete([Prompt("river", "boat", max_tokens=5)])
    assert completions.text == greedy(chat, "<system> boat <user> river <assistant>", 5)[0]
    assert completions.usage.tokens_in == 5


@needs_torch
def test_without_a_template_the_rules_come_before_the_question(t5):
    (completions,) = LocalModel(str(t5)).complete([Prompt("river", "boat", max_tokens=5)])
    assert completions.text == greedy(t5, "boat\n\nriver", 5)[0]


@needs_torch
def test_text_ends_at_a_stop_string(llama):
    prompt = Prompt("river boat", max_tokens=12)
    full_text = LocalModel(str(llama)).complete([prompt])[0].text
    stop = next(word for word in full_text.split() if word != full_text.split()[0])
    (completions,) = LocalModel(str(llama)).complete([Prompt("river boat", max_tokens=12, stop=(stop,))])
    assert completions.text == full_text[: full_text.index(stop)].strip()


@needs_torch
def test_a_prompt_beyond_the_window_is_refused_not_cut(llama):
    with pytest.raises(ModelError, match=r"needs 70 tokens, .* has a window of 64"):
        LocalModel(str(llama)).complete([Prompt("tide " * 60, max_tokens=10)])


@needs_torch
def test_a_name_leads_to_it_and_a_wrong_one_is_an_error(llama, tmp_path):
    assert create_language_model(f"local:{llama}").complete(PROMPTS)[0].model == f"local:{llama}"
    with pytest.raises(ModelError, match="cannot load"):
        LocalModel(str(tmp_path)).complete(PROMPTS)


@pytest.mark.skipif(torch is not None, reason="torch is installed here")
def test_without_the_extra_the_line_that_installs_it_is_said():
    with pytest.raises(MissingExtra, match=r"pip install .*\[local\]'"):
        LocalModel("any").complete([Prompt("q")])


@needs_torch
def test_prompts_of_several_questions_are_generated_together_with_the_same_replies(llama, monkeypatch):
    alone = LocalModel(str(llama))
    prompts = [Prompt(f"{word} boat tide", max_tokens=6) for word in WORDS[:8]]
    expected = [alone.complete([prompt])[0].text for prompt in prompts]
    model = LocalModel(str(llama))
    model.complete(prompts[:1])
    sizes = []
    everyone_waits = threading.Event()
    generate = model._generate

    def generate_when_all_wait(batch):
        sizes.append(len(batch))
        assert everyone_waits.wait(60)
        return generate(batch)

    monkeypatch.setattr(model, "_generate", generate_when_all_wait)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(model.complete, [prompt]) for prompt in prompts]
        while len(model._waiting) < 7:
            time.sleep(0.001)
        everyone_waits.set()
        replies = [future.result()[0].text for future in futures]
    assert replies == expected and sizes == [1, 7]


@needs_torch
def test_a_prompt_that_is_too_long_spoils_no_other_of_its_batch(llama):
    model = LocalModel(str(llama))
    fitting, long = Prompt("river boat", max_tokens=4), Prompt("tide " * 200, max_tokens=4)
    model._waiting.extend([_Request(long), _Request(fitting)])
    refused, answered = model._waiting
    model._complete_next()
    assert isinstance(refused.error, ModelError) and "window" in refused.error.problem
    assert answered.completion is not None
    assert answered.completion.text == model.complete([fitting])[0].text

"""Twenty kinds of replies that are not what was asked for, as small and as large models give them.

    @pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
    def test_...(reply): ...

A method that gets one of them, for every prompt that it asks, answers or abstains, and never fails.
"""

MALFORMED: dict[str, str] = {
    "empty": "",
    "white space": " \n\t \r\n ",
    "only a thought": "<think>I should look for the arranger first, and then</think>",
    "a thought without an end": "<think>Okay, the user asks who taught the arranger. Let me",
    "cut off": "Thought 1: I need to find out who arranged the Simps",
    "JSON where text is wanted": '{"action": "Search", "query": {"text": ["arranger"]}, "final": null}',
    "broken JSON": '{"quotes": [{"source": "one", "text": "arranged by}], answer: ',
    "JSON of another kind": '[["Simpsons theme", "arranger", null], 3, {"answer": 7}]',
    "another language": "最终答案：阿尔夫·克劳森。 ответ не найден; لا أعرف.",
    "a loop": "Follow up: who is it? " * 300,
    "a loop of lines": "Search query: who?\nSearch[who?]\n" * 200,
    "huge": "The arranger of the theme lived in a village, and so did others before him. " * 1_000,
    "one huge word": "a" * 50_000,
    "control characters": "Search[\x00\x07\x1b[31mwho\x1b[0m]\x08 \u202efinal\u202c \ud83d answer: \udc00",
    "unbalanced brackets": "Action 1: Search[[who (is {it >> #1; ((final answer: [#2",
    "the prompt again": (
        "You answer questions as the examples show.\nQuestion: {{question}}\nContext: none yet\nSummary:\n"
        "Reasoning Chain: HEAD >> RELATION >> #1\nSUPPORTS, REFUTES or NOT ENOUGH INFO"
    ),
    "a refusal": "I'm sorry, but as an AI language model I can't help with that request.",
    "a fence": "```python\nprint('Search[who]')\n```",
    "a numbered list": "1. First, find the arranger.\n2) Then find who taught him.\n3. # 4. >> ; #answer",
    "nothing but marks": "**__``>> ;; :: #  ?! [] () \"\" '' […] —",
}

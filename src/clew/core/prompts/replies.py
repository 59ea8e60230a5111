"""Reading replies of language models: free text, and JSON however small the model.

JSON is read in two steps. *Parsing* is lenient about form: thoughts and prose around the value, code fences, single
quotes, bare keys, Python's ``None`` and ``True``, comments, trailing commas, line breaks inside strings, an end that
is cut off. *Validation* is strict about content: the value must be valid by the schema, and nothing is invented to
make it so. Of a value that is cut off, the incomplete part is dropped, because half a number is another
number; if the schema requires the dropped part, the reply is refused. That is why clew does not use json-repair: it
completes what is cut off (``[1, 23`` to ``[1, 23]``, ``{"a": `` to ``{"a": ""}``), so that the schema accepts values
that the model did not write.

The schemas are the subset of JSON Schema that endpoints understand: ``type`` (one or a list), ``properties``,
``required``, ``items``, ``enum``. Keys beyond ``properties`` are dropped. Three conversions lose nothing and
are made: ``"3"`` and ``3.0`` where an integer is required, ``"0.5"`` where a number is, ``"true"`` where a
boolean is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from clew.core.errors import BadCompletion
from clew.core.text import shorten_space

Schema = Mapping[str, Any]

_THOUGHT = re.compile(
    r"\A.*</(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)>", re.DOTALL
)
#: A thought that never ends: the reply contains nothing else.
_ENDLESS_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*\Z", re.DOTALL)
#: Control characters, and halves of surrogate pairs, which cannot be written to a file.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
#: Places tried as the start of the value: a reply full of brackets is not JSON with prose around it.
_MAX_STARTS = 40
_MAX_DEPTH = 60


#: What chat templates put around turns, where a server lets it through; and the channels of gpt-oss, of which the
#: last is the reply.
_TEMPLATE_TOKEN = re.compile(
    r"<\|(?:im_start|start_header_id|start)\|>\s*(?:assistant\b)?|<\|[\w ]{1,30}\|>"
    r"|\[/?INST\]|</?s>|<(?:start|end)_of_turn>(?:model\b|user\b)?"
)
_CHANNEL = re.compile(
    r"\A.*<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"|\A\s*(?:assistant\s*)?analysis.*assistant\s*final(?=\W|[A-Za-z0-9])",
    re.DOTALL,
)
#: The end of a turn, behind which a model may have gone on with the next one.
_TURN_END = re.compile(
    r"(?<=\S)\s*(?:</s>|<end_of_turn>|<\|(?:end|return|im_end|eot_id|endoftext)\|>).*", re.DOTALL
)
#: What is put around a whole reply: a tag, or a call of a tool; and what is boxed in it.
_TAG = re.compile(
    r"<(?P<tag>[a-z_]{1,20})>\s*(?P<inside>.*?)\s*(?:</(?P=tag)>\W*\Z|\Z)", re.DOTALL | re.IGNORECASE
)
_ANSWER_TAG = re.compile(r"<(answer|final_answer|output|result)>\s*([^<]{0,4000}?)\s*</\1>", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}")
#: A fence in a reply, with a line before it at most, and what is said behind it.
_ONE_FENCE = re.compile(r"\A[^\n`]{0,160}\s*```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```[^`]*\Z", re.DOTALL)
#: Marks of emphasis, of code, and quotation marks around all of a reply, with none of the kind in it.
_AROUND_ALL = re.compile(
    r"\A(?:\*\*([^*]+)\*\*|`([^`]+)`|“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»|「([^「」]+)」|\"([^\"]+)\")\.?\Z"
)
_BLOCKQUOTE = re.compile(r"^> ", re.MULTILINE)
#: "Sure! Here is what you asked for:" on a line of its own, or before the value on the same line.
_PREFACE = re.compile(
    r"\A\s*(?:(?:sure|certainly|of\s+course|okay|ok|absolutely)\b[^\n:]{0,40}[!.,]\s*)?"
    r"(?:here|below)(?:['’]s|\s+is|\s+are|\s+it\s+is|\s+you\s+go)\b[^\n:]{0,80}:(?:\*\*)?\s*",
    re.IGNORECASE,
)
#: "答案：", in the scripts that write a colon this wide.
_WIDE_LABEL = re.compile(r"\A[*_\s]*[^\W\d_]{1,12}[*_]*：[*_\s]*|\A(?:.*\n)?【[^】\n]{1,12}】\s*", re.DOTALL)
#: What a model says before it replaces its reply by another, on a line of its own.
_CORRECTION = re.compile(
    r"\A.*\n\s*(?:(?:oh\s+)?wait|hold\s+on|actually|correction|sorry|scratch\s+that|let\s+me\s+correct)\b"
    r"[^\n]*[:.]\s*\n+(?=\s*\S)",
    re.IGNORECASE | re.DOTALL,
)
#: Where a reply that reasons comes to its value: "Final score: 0.85" as its last paragraph.
_FINALLY = re.compile(
    r"[ \t*_]*final\s+(?!answer\b|thought|note|remark|word)[\w ]{1,30}:[*_ \t]*(?=\S)", re.IGNORECASE
)
#: A heading of Markdown, and those below which no value stands.
_HEADING = re.compile(r"^#{1,6}[ \t]+([^\n]{1,80})\n", re.MULTILINE)
_ASIDE = re.compile(r"\W*(?:reasoning|explanation|analysis|thoughts?|notes?|steps?)\b", re.IGNORECASE)
#: A further example that a base model writes behind its reply.
_OWN_EXAMPLE = re.compile(
    r"(?<=\S)\s*\n\s*(?:#+\s*|\*\*)?"
    r"(?:query(?=:\s*\n)|q(?=:)|instruction|input|question|claim|section|context|triplet|user|human|example)\b[^\n:]{0,12}:.*",
    re.IGNORECASE | re.DOTALL,
)


def clean_reply(reply: str) -> str:
    """Return a reply without what models put before, around and behind what they were asked for.

    These are thoughts, tags, a fence, marks of chat templates and of emphasis around all of it, "Here it is:", what
    is corrected further down, reasoning under a heading of its own, and further examples of the model's own.
    """
    return _clean(_OWN_EXAMPLE.sub("", remove_thoughts(reply)))


def _clean(reply: str) -> str:
    text = remove_thoughts(reply)
    if fence := _ONE_FENCE.match(text):
        text = fence[1].strip()
    if tags := _ANSWER_TAG.findall(text):
        text = tags[-1][1]
    elif wrapped := _TAG.match(text):
        text = wrapped["inside"]
    text = _WIDE_LABEL.sub("", _CORRECTION.sub("", _PREFACE.sub("", unescape(text))))
    text = _remove_asides(text)
    before, _, last = text.rstrip().rpartition("\n")
    if before and (final := _FINALLY.match(last)):
        text = last[final.end() :]
    boxed = _BOXED.findall(text)
    text = _BLOCKQUOTE.sub("", boxed[-1] if boxed else _text_in_json(text)).strip()
    around = _AROUND_ALL.match(text)
    return around[around.lastindex or 0].strip() if around else text


def remove_thoughts(reply: str) -> str:
    """Return a reply without the thoughts before it, marks of chat templates, and characters that are not text; a
    space that does not break is a space, and runs of white space are cut to 40."""
    text = reply.replace("\u200b", "").replace("\ufeff", "").replace("\xa0", " ").replace("\u202f", " ")
    return _remove_turns(_NOT_TEXT.sub(" ", text))


def _remove_turns(reply: str) -> str:
    text = _CHANNEL.sub("", shorten_space(reply))
    text = _TEMPLATE_TOKEN.sub("", _TURN_END.sub("", text))
    return _ENDLESS_THOUGHT.sub("", _THOUGHT.sub("", text)).strip()


def _remove_asides(text: str) -> str:
    """Return a text without the sections whose headings announce no value, if it has others."""
    headings = [*_HEADING.finditer(text)]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    values = [
        text[heading.start() : end]
        for heading, end in zip(headings, ends, strict=False)
        if not _ASIDE.match(heading[1]) and text[heading.end() : end].strip()
    ]
    before = text[: headings[0].start()] if headings else text
    return before + "".join(values) if values or before.strip() else text


#: Keys of JSON below which no value stands.
_ASIDE_KEY = re.compile(
    r".*(?:reason|reasoning|rationale|explanation|thoughts?|confidence|evidence|sources?)", re.I
)


def _text_in_json(text: str) -> str:
    """Return the text or number that a JSON object gives beside its reasons, also as a tool's argument; else the
    text."""
    if not text.startswith("{"):
        return text
    try:
        value = _LenientParser(text).parse()
    except _Unreadable:
        return text
    value = value.get("arguments", value)
    members = dict(value) if isinstance(value, dict) else {}
    if len(members) > 1:
        members = {key: each for key, each in members.items() if not _ASIDE_KEY.fullmatch(key)}
    if len(members) > 1:
        members.pop("question", None)
    values = list(members.values())
    return str(values[0]) if len(values) == 1 and isinstance(values[0], str | int | float) else text


# Refusals

#: What stands before a refusal. Where it names a source, it goes on to a comma, or to any word before that.
_LEAD_IN = re.compile(
    r"(?:unfortunately|sorry|i'?m sorry|i am sorry|i apologi[sz]e|however|but|well"
    r"|(?:as an ai|(?:based|according|judging|going) (?:solely |only )?(?:on|to|by|from) "
    r"|(?:in|from) (?:the|these|this) )(?P<source>[^,]*))",
    re.IGNORECASE,
)
_AFTER_LEAD_IN = re.compile(r" ?[,.:;–—-]? ")
_LACKING = (
    r"(?:known|stated|mentioned|specified|given|provided|available|found|listed|indicated|disclosed|clear|sure"
    r"|described|discussed|named|identified|included|present|possible|determined|determinable|applicable|reported"
    r"|answerable|certain|recorded|shown)"
)
_MATERIAL = (
    r"(?:context|passage|paragraph|text|document|source|evidence|information|article|excerpt|material|answer"
    r"|question|data|content|section|table|knowledge)s?"
)
_ADVERB = (
    r"(?:(?:explicitly|directly|specifically|clearly|currently|actually|yet|entirely|quite|also|really)\s+)?"
)
_NOT = r"(?:not|n['’]?t|never)"
_REFUSAL = re.compile(
    rf"""(?:
      (?:it\s+is\s+|it['’]s\s+|is\s+)?(?:unknown|unspecified|unclear|undetermined|undisclosed|unavailable)\Z
    | (?:unknown|unspecified|unclear|undisclosed)\s*(?:\(|\s(?:in|from|by|within|based|given|to\s+(?:me|us))\b)
    | none\s+of\s+(?:the|these|those)\s+(?:\w+\s+){{0,2}}?(?:passages|paragraphs|sources|documents|texts)\b
    | (?:none|nothing|null|nil|n\.?\s?/?\s?a|no\s+answer|no\s+idea|no\s+data|abstain|\?+|-+)\Z
    | {_NOT}\s+{_ADVERB}(?:{_LACKING}|enough|sufficient)(?:\s+(?:in|from|by|within|based|information|context|evidence
        |data|to|about|for|and|or|here|at)\b.*)?\Z
    | (?:there\s+(?:is|are|was|were|'s)\s+|(?:i|we)\s+(?:see|find|found|have|had)\s+|has\s+)?
      (?:no|insufficient|(?:not|n['’]t)\s+(?:enough|sufficient|any))\s+(?:\w+\s+){{0,2}}?
      (?:information|mention|evidence|data|context|details?|answer|indication|reference)s?
      (?:\Z|[,.;:]|\s+(?:about|on|of|for|in|to|that|is|was|are|were|available|provided|given|regarding|from|whether|which|as
        |here|at|found|stated|and|or|concerning)\b)
    | there\s+(?:isn|aren|wasn|weren)['’]?t\s+(?:enough|any|sufficient)\b
    | (?:i|we)(?:\s+am|['’]?m|\s+are|['’]?re|\s+was|\s+were)?\s+(?:really\s+|currently\s+|just\s+)?(?:
          (?:do|did|ca|could|wo|would)n?['’]?\s?(?:not|t)\b | cannot\b | can\s*not\b | unable\b
        | not\s+(?:able|sure|certain|aware|familiar|in\s+a\s+position)\b | have\s+(?:no|not\s+enough)\b
        | need\s+more\b        | would\s+need\b | lack\b )
    | (?:the|this|these|those|that|any|no|none\s+of\s+the|neither|my)?\s*
      (?:(?:given|provided|above|available|supplied|retrieved|quoted|numbered|following)\s+)*{_MATERIAL}
      (?:\s+(?:to|of|in|for)\s+(?:this|the|your)\s+\w+)?\s+(?:alone\s+)?(?:that\s+\w+\s+\w+\s+)?
      (?:(?:do|does|did|is|are|was|were|has|have|can|could)(?:\s+not\b|n['’]?t\b)|cannot\b|lacks?\b|fails?\b|never\b
         |(?:contains?|gives?|provides?|ha(?:s|ve)|makes?|offers?|mentions?|says?|states?)\s+(?:no|nothing)\b
         |(?:is|are|remains?)\s+(?:unknown|unclear|unspecified|insufficient|{_NOT}\s+{_ADVERB}{_LACKING}))
    | (?:it|this|that|which|(?:the|his|her|its|their)\s+(?:\w+\s+){{1,5}})\s*(?:is|are|was|were|has|have|can|could)?
      (?:\s*n['’]t|\s+not|not)\s+(?:been\s+|be\s+)?{_ADVERB}{_LACKING}\b
    | (?:it|this|that)\s+(?:does|do|did)(?:\s+not|n['’]?t)\s+(?:say|state|mention|specify|tell|contain|give)\b
    | (?:can\s?not|can['’]?t|could\s+not|couldn['’]?t|unable\s+to|impossible\s+to)\s+(?:be\s+)?(?:determin|answer|find
        |found|infer|verif|tell|say|provide|help|assist|deduc|conclud|known|identif)\w*
    | (?:it\s+is\s+|it['’]s\s+)(?:impossible|not\s+possible)\b
    | as\s+an\s+ai\b | i['’]?m\s+sorry\b | i\s+am\s+sorry\b | i\s+apologi[sz]e\b
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
#: Refusals in the other languages of the app.
_REFUSAL_ELSEWHERE = re.compile(
    r"""(?:
      lo\ siento | lamentablemente | desafortunadamente | desconocido\Z
    | no\ (?:lo\ )?(?:puedo|s[ée]|hay|se|es\ posible|consta|dispongo)\b
    | leider | (?:es\ )?tut\ mir\ leid | unbekannt\Z | nicht\ (?:angegeben|genannt|bekannt|erwähnt)
    | (?:ich|das|dies|es)\ (?:kann|weiß|lässt|steht|geht)\b.*\b(?:nicht|kein)
    | 抱歉 | 对不起 | 很遗憾 | 无法 | 未知 | 没有(?:提供|提及|足够|相关) | 未(?:提及|说明|提供)
    | 不(?:知道|清楚|详) | 根据.{0,12}无法
    | عذر | آسف | للأسف | لا\ (?:أعرف|يمكن|أستطيع|تتوفر|توجد|يوجد) | غير\ (?:معروف|مذكور|محدد)
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_BARE = " \t\r\n.!*_\"'“”`()[]"


def is_refusal(text: str) -> bool:
    """Return whether a short answer says, in whatever words, that there is none: it is no value.

    Only the beginning of a text decides, so that an answer with a reservation behind it stays an answer, and titles
    that begin like a refusal are not refusals.

    >>> is_refusal("The context does not say."), is_refusal("No Country for Old Men"), is_refusal("Not specified")
    (True, False, True)
    """
    bare = " ".join(text[:400].split()).strip(_BARE)
    words = [word for word in re.findall(r"[^\W\d_]+", bare) if len(word) > 1]
    # "I Don't Know How She Does It" is a film.
    if len(words) > 4 and all(word[0].isupper() for word in words if len(word) > 2):
        return False
    if not bare or refuses_in_other_language(bare):
        return True
    return any(_REFUSAL.match(bare, start) for start in _places_after_lead_ins(bare))


def refuses_in_other_language(text: str) -> bool:
    """Return whether a text begins like a refusal in one of the app's languages but English."""
    return _REFUSAL_ELSEWHERE.match(text) is not None


def _places_after_lead_ins(text: str) -> list[int]:
    """Return the places where a refusal may begin. They are followed one by one: an expression that repeats the
    lead-ins takes two to their number ("based on based on ...")."""
    places = [0]
    for place in places:
        if lead_in := _LEAD_IN.match(text, place):
            least = lead_in.end() if lead_in["source"] is None else lead_in.start("source")
            ends = range(least, lead_in.end() + 1)
            after = {match.end() for end in ends if (match := _AFTER_LEAD_IN.match(text, end))}
            places += sorted(after.difference(places))
    return places


# Free text

#: The words before a value, and those before free text, in the languages of the app.
_VALUE_WORDS = (
    r"(?:output|answer|response|result|score|rating|grade|verdict|antwort|ergebnis|bewertung|respuesta|resultado"
    r"|puntuación|calificación|الجواب|الإجابة|النتيجة|التقييم|الدرجة|\w{0,6}答案|回答|结果|分数|评分)"
)
_TEXT_WORDS = rf"(?:{_VALUE_WORDS}|summary|evidence|next\s+sentence|reasoning|fact|evidencia|证据)"
#: A label before a value, in the languages of the app: "Answer:", "Updated score:", "Die Antwort lautet daher:".
_LABEL = re.compile(
    rf"""(?:^[ \t*_\#>"'“]*|(?<=[.!?。][ ]))
    (?:(?!intermediate)[^\W\d_]+,?[ ]){{0,4}}{_VALUE_WORDS}(?:[ ](?:is|lautet|es|ist)\b|是)?(?:[ ][^\W\d_]+){{0,2}}
    [*_]*\s*(?:[:：]|[ ][–—-][ ])[*_ \t]*\n?(?=.*\S) | ^[ \t]*A:[ ] | ^[\#]{{4}}[ ]""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
#: A label at the beginning that announces free text.
_FIRST_LABEL = re.compile(
    rf"\A[\s*_#>\"'“]*(?:[^\W\d_]+\s+){{0,2}}{_TEXT_WORDS}[*_]*\s*[:：][*_\s]*", re.IGNORECASE
)
#: What stands before the last paragraph where each has a label in bold.
_BOLD_LABEL = re.compile(r"\A(?:\*\*[^*\n]+:\*\*[^\n]*\n\s*\n)+\*\*[^*\n]+:\*\*\s*(?=[^\n]+\Z)")
#: Where a labelled value ends: at an empty line or another label.
_VALUE_END = re.compile(r"\n\s*(?:\n|[*_#]*[^\W\d_]+[*_]*\s*[:：])")
#: A label with nothing behind it.
_OPEN_LABEL = re.compile(rf"(?:\A|\n)[^\n]{{0,60}}{_TEXT_WORDS}[^\n]{{0,20}}[:：]\s*\Z", re.IGNORECASE)
_REMARK = re.compile(
    r"\n\s*[*_#]*(?:let\s+me\s+know|i\s+hope|please\s+(?:let|note|feel)|note\s*:|feel\s+free|is\s+there\s+anything"
    r"|would\s+you\s+like|explanation\s*:|\(?note\b)[^\0]*\Z",
    re.IGNORECASE,
)
#: A line that announces what is below it.
_LINE = re.compile(r"\A[^\n]{0,120}(?:(?<=:)|(?<=:\*\*))[ \t]*\n+")
#: What stands before the only line of a reply where a model makes a list of one.
_LIST_MARK = re.compile(r"\A(?:[-*•–]|\(?\d{1,2}[.)])[ \t]+(?=\S[^\n]*\Z)")


def cut_remarks(text: str) -> str:
    """Return a reply without the remarks behind it: "Let me know if it helps!", "Explanation: ..."."""
    return _REMARK.sub("", text)


def labelled_value(text: str) -> str:
    """Return what stands behind the last label of a reply ("Answer:", "Updated score:"), "" if it has none."""
    labels = [*_LABEL.finditer(text)]
    value = text[labels[-1].end() :].strip() if labels else ""
    return value[: end.start()] if (end := _VALUE_END.search(value)) else value


def undress_value(reply: str) -> str:
    r"""Return the value that a reply gives, without a heading, label or list mark before it and remarks behind it.

    >>> undress_value("### Answer\n\nDunmore\n\n### Reasoning\n\nIt follows."), undress_value("答案：- Dunmore")
    ('Dunmore', 'Dunmore')
    """
    text = _without_heading(reply)
    if _OPEN_LABEL.search(text):
        return ""
    return _unwrap(labelled_value(text) or text)


def _without_heading(reply: str) -> str:
    text = cut_remarks(clean_reply(reply))
    heading = _HEADING.match(text)
    return text[heading.end() :].strip() or text if heading else text


def _unwrap(text: str) -> str:
    """Return a text without a label in bold, a list mark and quotation marks around all of it."""
    if paragraph := _BOLD_LABEL.match(text):
        text = text[paragraph.end() :]
    text = _LIST_MARK.sub("", text.strip())
    around = _AROUND_ALL.match(text)
    return around[around.lastindex or 0].strip() if around else text


def read_text(reply: str) -> str:
    r"""Return the words of a reply that was to be free text, "" if it refuses.

    Thoughts, "Here is a summary:", labels, fences, remarks to the reader, and further examples of the model's own
    invention are no part of it.

    >>> read_text("Here is the summary:\n\n**Summary:** The light was lit in 1871.\n\nLet me know if it helps!")
    'The light was lit in 1871.'
    """
    text = _without_heading(_LINE.sub("", clean_reply(reply)))
    text = "" if _OPEN_LABEL.search(text) else _unwrap(_FIRST_LABEL.sub("", text))
    return "" if is_refusal(text) else text


#: A label, a number or marks before a question.
_QUESTION_LABEL = re.compile(
    r"^(?:\W|\d+[.)])*(?:[^\W\d_]+(?: [^\W\d_]+){0,2} ?[:：][*_\s]*(?=[\"'“¿¡]*[A-ZÀ-Þ]))?"
)


def parse_question(reply: str) -> str:
    """Return the first line of a reply that is a question, "" if none is."""
    text = _clean(reply)
    if is_refusal(text):
        return ""
    lines = [_QUESTION_LABEL.sub("", line).strip(" \t*_\"'`”") for line in text.splitlines()]
    return next((line for line in lines if len(line) > 1 and line.endswith("?")), "")


def parse_json(reply: str, schema: Schema) -> Any:
    """Return the value in ``reply`` that is valid by ``schema``; the last, where a model corrects itself.

    Raises BadCompletion, which says why not.
    """
    problem = ""
    whole = _remove_turns(reply.removeprefix("\ufeff"))
    for text in dict.fromkeys((_OWN_EXAMPLE.sub("", _CORRECTION.sub("", whole)), whole)):
        # A value that was written into a string of JSON once more; in fences; anywhere.
        fences = "\n".join(fence[1] for fence in _FENCE.finditer(text))
        for piece in filter(None, (_read_string(text), fences, text)):
            values, why_not = _valid_values(piece, schema)
            if values:
                return values[-1]
            problem = problem or why_not
    shown = " ".join(reply.split())
    raise BadCompletion(
        f"the model's reply is not the JSON that was asked for: {problem or 'no JSON in it'}",
        f"It wrote: {shown[:200]}{'...' if len(shown) > 200 else ''}",
    )


def schema_instruction(schema: Schema) -> str:
    """Return the instruction to add to a prompt where an endpoint does not accept a schema."""
    return "Reply with one JSON value that is valid by this JSON schema, and nothing else:\n" + json.dumps(
        schema, ensure_ascii=False, separators=(", ", ": ")
    )


def _valid_values(text: str, schema: Schema) -> tuple[list[Any], str]:
    """Return the values in a text that are valid by a schema, in order, and why the first that is not is not. What
    stands inside a valid value is a part of it."""
    types = schema.get("type", ["object", "array"])
    openers = ("{" if "object" in types else "") + ("[" if "array" in types else "")
    starts = [opener.start() for opener in re.finditer(f"[{re.escape(openers)}]", text)] if openers else [0]
    values: list[Any] = []
    problem, end = "", 0
    for start in starts[:_MAX_STARTS]:
        if start < end:
            continue
        parser = _LenientParser(text[start:] if openers else text.strip())
        try:
            values.append(_validate(parser.parse(), schema, "reply"))
            end = start + parser.at
        except (_Unreadable, _Invalid) as error:
            # The problem is that of the outermost value, though an inner one may still be valid.
            problem = problem or str(error)
    return values, problem


def _read_string(text: str) -> str:
    """Return what a string of JSON says, "" if a text is none."""
    try:
        value = json.loads(text) if text.startswith('"') else ""
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


class _Unreadable(ValueError):
    """The text is not JSON, even by the lenient rules."""


class _Invalid(ValueError):
    """The value does not match the schema."""


class _Cut(Exception):
    """The text ended inside a value that is useless when incomplete."""


_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
# An apostrophe, or a quotation mark that should have been escaped, is followed by more of the sentence.
_STRING_END = re.compile(r"\s*(?:[,:}\]]|\Z|//|/\*)")
#: What closes a string that opened with each quotation mark.
_QUOTES = {'"': '"', "'": "'", "“": "”"}


@dataclass(slots=True)
class _LenientParser:
    """A lenient recursive-descent parser at position ``at`` of ``text``; ``cut``: the text ended too early."""

    text: str
    at: int = 0
    depth: int = 0
    cut: bool = False

    def parse(self) -> Any:
        try:
            return self._value()
        except _Cut:
            raise _Unreadable("the reply ends before the JSON does") from None

    def _value(self) -> Any:
        self._skip_space()
        char = self._peek()
        if char == "{":
            return self._nest(self._object)
        if char == "[":
            return self._nest(self._array)
        if char in _QUOTES:
            return self._string()
        return self._scalar()

    def _nest(self, read: Any) -> Any:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _Unreadable("it is nested too deeply")
        self.at += 1
        value = read()
        self.depth -= 1
        return value

    def _object(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while True:
            try:
                if self._at_closer("}"):
                    return members
                key = self._key()
                value = self._value()
            except _Cut:
                self.cut = True
                return members
            members[key] = value
            if self.cut:
                return members

    def _array(self) -> list[Any]:
        items: list[Any] = []
        while True:
            try:
                if self._at_closer("]"):
                    return items
                value = self._value()
            except _Cut:
                self.cut = True
                return items
            # An element that was cut off may have lost some of its keys, so it is dropped entirely.
            if self.cut:
                return items
            items.append(value)

    def _at_closer(self, closer: str) -> bool:
        self._skip_space()
        while self._peek() == ",":
            self.at += 1
            self._skip_space()
        if self._peek() != closer:
            return False
        self.at += 1
        return True

    def _key(self) -> str:
        if self._peek() in _QUOTES:
            key = self._string()
        elif word := _WORD.match(self.text, self.at):
            key, self.at = word.group(), word.end()
        else:
            raise _Unreadable(f"a key was expected at '{self.text[self.at : self.at + 20]}'")
        self._skip_space()
        if self._peek() != ":":
            raise _Unreadable(f"a colon was expected after '{key}'")
        self.at += 1
        return key

    def _string(self) -> str:
        closer = _QUOTES[self.text[self.at]]
        self.at += 1
        out: list[str] = []
        while (char := self._peek()) != closer or not _STRING_END.match(self.text, self.at + 1):
            self.at += 1
            out.append(self._escape() if char == "\\" else char)
        self.at += 1
        return "".join(out)

    def _escape(self) -> str:
        char = self._peek()
        self.at += 1
        if char != "u":
            return _ESCAPES.get(char, char)
        digits = self.text[self.at : self.at + 4]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            raise _Unreadable(f"'\\u{digits}' is no character")
        self.at += 4
        code = int(digits, 16)
        low = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self.text, self.at)
        if 0xD800 <= code < 0xDC00 and low:
            self.at = low.end()
            code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"

    def _scalar(self) -> Any:
        token = _NUMBER.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if not token:
            raise _Unreadable(f"a value was expected at '{self.text[self.at : self.at + 20]}'")
        # At the very end "12" may be the start of "123", unless nothing encloses it.
        if token.end() == len(self.text) and self.depth:
            raise _Cut
        self.at = token.end()
        word = token.group()
        if word in _WORDS:
            return _WORDS[word]
        try:
            return json.loads(word)
        except ValueError:
            raise _Unreadable(f"'{word[:20]}' is no JSON value") from None

    def _skip_space(self) -> None:
        if skipped := _SPACE.match(self.text, self.at):
            self.at = skipped.end()

    def _peek(self) -> str:
        if self.at >= len(self.text):
            raise _Cut
        return self.text[self.at]


def _validate(value: Any, schema: Schema, where: str) -> Any:
    value = _validate_type(value, schema.get("type"), where)
    if "enum" in schema and value not in schema["enum"]:
        raise _Invalid(f"{where} is {value!r}, not one of {schema['enum']}")
    if isinstance(value, dict) and "properties" in schema:
        properties = schema["properties"]
        # Some models begin each key with a capital.
        value = {key.casefold() if key not in properties else key: each for key, each in value.items()}
        if missing := [key for key in schema.get("required", ()) if key not in value]:
            raise _Invalid(f"{where} has no '{missing[0]}'")
        return {
            key: _validate(value[key], properties[key], f"{where}.{key}")
            for key in properties
            if key in value
        }
    if isinstance(value, list) and "items" in schema:
        return [_validate(item, schema["items"], f"{where}[{n}]") for n, item in enumerate(value)]
    return value


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _validate_type(value: Any, expected: str | list[str] | None, where: str) -> Any:
    if expected is None:
        return value
    kinds = [expected] if isinstance(expected, str) else expected
    for kind in kinds:
        if isinstance(value, _PYTHON_TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)):
            return value
    for kind in kinds:
        if (converted := _convert(value, kind)) is not None:
            return converted
    raise _Invalid(f"{where} is {type(value).__name__} {str(value)[:40]!r}, not {' or '.join(kinds)}")


def _convert(value: Any, kind: str) -> Any:
    text = str(value).strip()
    if isinstance(value, bool):
        return None
    if kind == "integer" and re.fullmatch(r"-?\d{1,15}(\.0+)?", text):
        return int(text.partition(".")[0])
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    if kind == "boolean" and text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    return None

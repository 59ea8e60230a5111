"""Languages: which one a text is written in, its function words, and the stems of its words.

A language is a code of ISO 639-1 (``de``, ``zh``); "" stands for one that is not known. The writing system decides
first. Where several languages share one (Latin, Cyrillic, Arabic), the function words of the text decide: they are a
third of the words of any running text, and few are shared. What has neither (a table of numbers, a list of names) has
no language, and is indexed as English is.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import snowballstemmer

if TYPE_CHECKING:
    from clew.core.protocols import Snapshot

ENGLISH = "en"

#: Function words: articles, pronouns, prepositions, conjunctions, auxiliaries, question words.
_FUNCTION_WORDS = {
    "en": """a about above after again against all also am an and any are as at be because been before being
        below between both but by can could did do does doing down during each few for from further had has have
        having he her here hers herself him himself his how i if in into is it its itself just me more most my
        myself no nor not now of off on once only or other our ours ourselves out over own same she should so
        some such than that the their theirs them themselves then there these they this those through to too
        under until up very was we were what when where which while who whom whose why will with would you your
        yours yourself yourselves""",
    "de": """aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein dem den
        denn der des dessen deren dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein
        eine einem einen einer eines er es euch euer für gegen hat hatte hatten haben habe ich ihm ihn ihr ihre
        ihrem ihren ihrer im in ins ist jede jedem jeden jeder jedes kann kein keine können man mein meine mit
        muss nach nicht nichts noch nur ob oder ohne sehr sein seine seinem seinen seiner seines seit sich sie
        sind so soll sondern über um und uns unser unter viel viele vom von vor während wann war waren warum was
        weil welche welchem welchen welcher welches wenn wer werden wie wieder wieviel will wir wird wo woher
        wohin womit worden wurde wurden zu zum zur zwischen wessen wem wen""",
    "fr": """à au aux avec avait avaient ce ceci cela ces cet cette ceux chez comme comment d dans de des dont
        du elle elles en entre est et étaient était être eu eux fut furent ici il ils je j l la le les leur
        leurs lui m ma mais même mes moi mon n ne ni nos notre nous on ont ou où par pas pendant peu plus pour
        pourquoi près qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont sous sur
        t ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y combien""",
    "es": """a al algo ante antes aunque bajo cada como cómo con contra cual cuál cuales cuáles cuando cuándo
        cuanto cuánto cuánta cuántos cuántas de del desde donde dónde durante e el él ella ellas ellos en entre
        era eran es esa esas ese eso esos esta está están estaba este esto estos estas fue fueron ha había han
        hasta hay la las le les lo los más me mi mientras muy nada ni no nos nosotros o os otra otro para pero
        por porque pues que qué quien quién quienes quiénes se según ser si sí sin sino sobre son su sus también
        tan tanto te tiene tras tu tú tus un una unas uno unos y ya yo""",
    "it": """a ad ai al alla alle allo anche che chi ci col come con contro cosa cui d da dagli dai dal dalla
        dalle dallo degli dei del della delle dello dentro di dove e è ed era erano essere fra fu furono gli ha
        hanno i il in io l la le lei li lo loro lui ma mentre mi mia mio ne negli nei nel nella nelle nello noi
        non nostro o ogni per perché più poi prima quale quali quando quanto quanti quella quelle quelli quello
        questa queste questi questo qui se sei senza si sia sono sotto stato su sua sue sugli sui sul sulla
        sulle suo suoi tra tu tutti tutto un una uno vi voi""",
    "pt": """à ao aos as às até com como contra da das de dela dele deles depois do dos e é ela elas ele eles em
        entre era eram essa essas esse esses esta está estas este estes eu foi foram há isso isto já lhe mais
        mas me mesmo meu minha muito na nas não nem no nos nós o onde os ou para pela pelas pelo pelos per por
        porque qual quais quando quanto quantos que quem são se sem ser seu seus só sobre sua suas também te tem
        têm teve tu um uma umas uns você vocês""",
    "nl": """aan al alle als bij dan dat de deze die dit doch doen door dus een en er ge geen haar had heb
        hebben heeft hem het hier hij hoe hun iets ik in is ja je kan konden kunnen maar me meer men met mij
        mijn moet na naar niet niets nog nu of om omdat onder ons ook op over te tegen toch toen tot tussen u
        uit uw van veel voor waar waarom wanneer want waren was wat we welk welke werd werden wie wij wil worden
        wordt zal ze zelf zich zij zijn zo zonder zou""",
    "sv": """alla allt att av blev bli blir da de dem den denna deras dess det detta dig din du där efter
        eftersom ej eller en er ett från för genom ha hade han hans har henne hennes hon hos hur här i icke in
        inte jag kan kunde man med mellan men mig min mot mycket ni nu när några och om oss på sedan sig sin
        sina sitt ska skulle som så till under upp ut utan vad var vara varför varit vem vi vid vilka vilken
        vilket än är åt över""",
    "da": """af alle alt at blev blive bliver da de dem den denne der deres det dette dig din du efter eller en
        end er et for fra gennem ham han hans har havde hende hendes her hos hun hvad hvem hvilke hvilken
        hvilket hvis hvor hvorfor hvornår i ikke ind jeg jer kan kunne man med meget mellem men mig min mod ned
        noget nogle nu når og også om op os over på selv sig sin skal skulle som så til ud uden under var ved vi
        vil været""",
    "no": """alle alt at av ble bli blir både da de dem den denne der deres det dette deg din du eller en enn er
        et etter for fordi fra gjennom ha hadde han hans har henne hennes her hos hun hva hvem hvilke hvilken
        hvilket hvis hvor hvorfor i ikke inn jeg kan kunne man med meg mellom men min mot mye ned noe noen nå
        når og også om opp oss over på seg selv sin sitt skal skulle slik som så til under ut uten var ved vi
        vil være vært""",
    "fi": """ei eivät ennen että hän heidän hänen he itse ja jo joka jonka jos jossa jota jotka kaikki kanssa
        keitä ketkä koska kuin kuinka kuitenkin kuka kun kunnes me mihin mikä miksi millä milloin minä minkä
        missä mistä mitä mukaan mutta muut myös ne niin niiden nyt ole oli olivat olla olleet ollut on ovat se
        sekä sen siellä sillä sinä sitä tai tämä tämän tässä te vaan vai vain vielä voi yli""",
    "pl": """a aby ale albo bez bo być był była było były by co czy dla do gdy gdzie i ich ile im ja jak jaka
        jaki jakie jako je jednak jego jej jest jeszcze już kiedy kim kto która które którego której który
        których którzy lub ma mi między mnie na nad nas nie niż o od on ona one oni ono oraz po pod przed przez
        przy są się sobie ta tak także tam te tego tej ten to tu tych tylko tym u w we wielu więc z za ze że
        żeby czego""",
    "cs": """a aby ale ani ano až bez bude by byl byla byli bylo být co či do i ja jak jako je jeho jej její
        jejich jen jenž již jsem jsme jsou já k kam kde kdo kdy kdyby když ke která které kterého který kteří ku
        mezi mi mnoho na nad nebo nebyl není než o od on ona oni po pod podle pro proč protože před při s se si
        tak také tedy ten tento této to tohoto tom tu u už v ve však z za ze že""",
    "hu": """a abban ahol aki akik amely amelyek amikor ami az azt azok be csak de e egy egyik el ez ezek ezt és
        fel ha hanem hogy hogyan hol ide is itt kell ki kik kinek le lehet lesz lett majd már meg melyik mert mi
        miért mikor milyen mint mit most nagyon nem nincs ő ők pedig sem ságos szerint számára van vannak vagy
        volt voltak után között által""",
    "ro": """a acest această aceste acestei acestui ai al ale am ar are asupra au avea ca când care cât câte
        câți ce cel cele celor cei cine cu cum da de decât despre din dintre după ea ei el ele era erau este eu
        fi fost în între îi îl își la le lor lui mai ne nici nu o pe pentru prin sa sau să se si și sub sunt său
        toate tot un una unde unei unor unui""",
    "tr": """acaba ama ancak bana bazı belki ben beni bir biz bu buna bunlar bunu çok çünkü da daha de defa
        değil diye en gibi göre hangi hem hep her hiç için ile ise kaç kadar kendi ki kim kimin mi mu mı mü
        nasıl ne neden nerede nereye niye o olan olarak oldu olduğu on ona onlar onu onun sen siz sonra şey şu
        tarafından tüm var ve veya ya yok zaman""",
    "id": """ada adalah agar akan antara apa apakah atau bagi bahwa bagaimana banyak beberapa belum berapa bisa
        bukan dalam dan dapat dari dengan di dia hanya harus hingga ia ini itu jika juga kapan karena ke kepada
        kita lagi lebih maka mana masih mengapa mereka namun oleh pada para saat sampai sangat saya sebagai
        sebuah secara sejak seorang seperti serta siapa suatu sudah tahun tanpa telah tentang terhadap tersebut
        tetapi tidak untuk yang""",
    "vi": """bị bởi các cái cho chỉ chúng có của cũng đã đang đây để đến đi điều đó được gì hai hay hơn khi
        không là lại làm lên mà mình một này nào năm nên nếu ngày người như những nhưng nơi ở ra rằng rất sau sẽ
        tại theo thì tôi trên trong trước từ và vào vẫn vì với""",
    "ru": """а без более был была были было быть в вам вас весь во вот все всего вы где да для до его ее её если
        есть еще ещё же за и из или им их к как какая какие какой каком какую когда кого кто куда ли между меня
        мне много может мы на над не него нее нет ни них но о об он она они оно от по под после потому почему
        при про с сам свои себя сколько со так также там те тем то того тоже той только том ты у уже чего чем
        что чтобы чьи эта эти это этого этой этом этот я""",
    "uk": """а або але без був була були було бути в вже вона вони воно ви від він всі де для до є є його її їх
        з за зі й і із інші коли кого котрі ким ким кожен куди між мене мені ми на над не ні ним них ну о об
        один по під після при про р саме своє свої себе скільки так також там те тим то того той тут ти у усі
        хто це цей ця ці цього чи чого чому що щоб як яка яке який якої яку які я""",
    "bg": """а ако без беше би бил била били било в вече ви във все всички да две до докато е едва един една
        едно за защо и из или им има как каква какво какъв като кога когато кого който които която което къде
        към ли между му на над не него нея ни ние но няма о от по под при с са само се си след със така там те
        тези това този той тя тях у че ще я""",
    "el": """αν από αλλά αυτά αυτές αυτή αυτό αυτοί αυτός για γιατί δεν εγώ εδώ είναι ένα έναν ένας ενώ έχει
        έχουν ή η ήταν θα και κατά με μετά μέσα μη μην μια μία να ο οι όπου όπως όταν ό,τι ου που πού ποια ποιο
        ποιος ποιοι πολύ πόσο πόσα προς πριν πως πώς σαν σε στη στην στις στο στον στους στα τα τη την της τι
        τις το τον του τους των ως""",
    "ar": """أب إذا إذ إلا إلى ألا أم أما أن إن أنا أنت أنه إنه أنها أو أي أية أين أول بعد بعض بل بين تحت تلك ثم
        حتى حول حيث حين خلال دون ذلك سوى عام عبر عدة عدد على عليه عليها عن عند عندما غير فإن فلا في فيه فيها قبل
        قد كان كانت كل كلا كم كما كي كيف لا لأن لكن لم لماذا لما لن له لها ليس ليست ما ماذا متى مثل مع من منذ
        منه منها مما نحو هذا هذه هل هم هن هنا هناك هو هي وقد وكان وكانت ولا ولم وهو وهي يكون التي الذي الذين
        اللذين بماذا بها به لمن فيما إليه إليها يا""",
    "fa": """از است اش اما ام این اینکه آن آنها آنچه ای با باید بر برای بسیار بعد به بود بودن بودند بی تا تر
        ترین چرا چگونه چند چه چون چیست خود خواهد در دارد دارند داشت را روی شد شده شدند شود کجا کدام کرد کرده
        کردند کند کنند که کسی کی ما می من نه نیز نیست های هر هم همه همین هیچ و ولی وی یا یک""",
    "ur": """اس اسے ان انہوں انہیں اور ایک اپنے اپنی بھی پر تک تھا تھی تھے تو جس جو جب جہاں خود رہا رہی سے طرح
        کا کی کے کب کس کسی کو کون کہ کہاں کیا کیوں گیا گئی لیے میں نے نہیں وہ ہر ہم ہو ہوا ہوئی ہوئے ہیں ہے یا
        یہ""",
    "he": """אבל או אותה אותו אותם אז אחר אחרי אחת אי איך איפה אך אל אלה אם אני אנחנו אף אשר את אתה בין בלי גם
        הוא היא היה היו היתה הם הן זה זו זאת זהו יש כאשר כדי כי כל כמה כמו כן לא לו לה להם למה לפי לפני מאוד מה
        מדוע מי מתי מן עד עוד על עם רק של שלה שלו שלהם תחת""",
    "hi": """अपना अपने अपनी आप इस इसके इसे उन उनके उनकी उस उसके उसकी एक ऐसे और का कब कर करने कहा कहाँ का कि
        कितना कितने कितनी किस किसने किसी की कुछ के को कौन क्या क्यों गई गया जब जहाँ जिस जो तक तथा तो था थी थे
        द्वारा नहीं ने पर बाद भी में यह यहाँ या ये रहा रहे लिए वह वाले वे सकते साथ से हम हुआ हुई हुए है हैं हो
        होता होती""",
    "zh": """的 了 在 是 和 与 也 就 都 而 及 或 这 那 这个 那个 什么 怎么 怎样 为什么 哪 哪个 哪些 谁 吗 呢 吧
        被 把 从 对 于 由 以 为 上 下 中 里 有 没有 不 他 她 它 我 你 们 他们 我们 多少""",
    "ja": """の に は を が と で も へ や か から まで より など この その あの どの これ それ あれ どれ ここ
        そこ どこ です ます した する いる ある れる られる ない なぜ いつ だれ 誰 何 どう""",
    "ko": """이 그 저 것 수 등 및 또는 그리고 하지만 그러나 무엇 누구 어디 언제 왜 어떻게 어느 어떤 몇""",
    "th": """ที่ และ ใน ของ เป็น มี ได้ ให้ จาก กับ ว่า ไม่ จะ นี้ นั้น ก็ หรือ แต่ อะไร ใคร เมื่อไร ที่ไหน ทำไม
        อย่างไร""",
}

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(words.casefold().split()) for code, words in _FUNCTION_WORDS.items()
}
"""Function words by language, casefolded."""

#: The Snowball stemmers of the languages that have one; the others are indexed by whole words.
_STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}

_NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
}

#: Writing systems, the letters of each, and the languages that function words decide between.
_SCRIPTS = {
    "kana": ("\u3040-\u30ff", ("ja",)),
    "han": ("\u3400-\u4dbf\u4e00-\u9fff", ("zh",)),
    "hangul": ("\uac00-\ud7af\u1100-\u11ff", ("ko",)),
    "thai": ("\u0e00-\u0e7f", ("th",)),
    "arabic": ("\u0600-\u06ff\u0750-\u077f", ("ar", "fa", "ur")),
    "hebrew": ("\u0590-\u05ff", ("he",)),
    "greek": ("\u0370-\u03ff", ("el",)),
    "cyrillic": ("\u0400-\u04ff", ("ru", "uk", "bg")),
    "devanagari": ("\u0900-\u097f", ("hi",)),
    "latin": (
        "a-zA-Z\u00c0-\u024f\u1e00-\u1eff",
        (
            "en",
            "de",
            "fr",
            "es",
            "it",
            "pt",
            "nl",
            "sv",
            "da",
            "no",
            "fi",
            "pl",
            "cs",
            "hu",
            "ro",
            "tr",
            "id",
            "vi",
        ),
    ),
}
_LETTERS = {name: re.compile(f"[{letters}]") for name, (letters, _) in _SCRIPTS.items()}
_WORD = re.compile(r"[^\W\d_]+")
_NO_WORD = re.compile(r"[\d_]")
#: The parts of a text that are looked at: its beginning may be a cover, its end a list of addresses.
_PARTS, _PART_LENGTH = 4, 3_000
#: A language other than English needs so many function words, and this share of all words; a few foreign names among
#: English words must not make a text foreign.
_MIN_HITS, _MIN_SHARE = 4, 0.12
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")
#: ... and so many times the weight of English.
_ADVANTAGE = 1.5
#: The share of kana from which Han characters are Japanese.
_KANA_SHARE = 0.05


def language_name(code: str) -> str:
    """Return the English name of a language.

    >>> language_name("de"), language_name("")
    ('German', 'unknown')
    """
    return _NAMES.get(code, code or "unknown")


def is_right_to_left(text: str) -> bool:
    """Return whether a text is written mostly from right to left.

    >>> is_right_to_left("تاج محل في أغرة"), is_right_to_left("Taj Mahal")
    (True, False)
    """
    leftward = sum(len(_LETTERS[name].findall(text)) for name in ("arabic", "hebrew"))
    return leftward > 0 and leftward > len(_LETTERS["latin"].findall(text))


def detect_language(text: str) -> str:
    """Return the language of a text, "" where it cannot be told.

    Of a long text four parts are looked at, which are evenly spread. A text in Latin letters counts as another
    language than English only where its function words say so clearly.

    >>> detect_language("Der Fluss entspringt in den Bergen und mündet nach 300 Kilometern in das Meer.")
    'de'
    >>> detect_language("多瑙河发源于黑森林"), detect_language("12.5 | 13.1 | 14.0")
    ('zh', '')
    """
    sample = _sample(text)
    counts = {name: len(pattern.findall(sample)) for name, pattern in _LETTERS.items()}
    if counts["kana"] > _KANA_SHARE * (counts["kana"] + counts["han"]):
        counts["kana"] += counts.pop("han")
    # A character of Han is about a word: a text with as many of them as of Latin words is Chinese.
    script = max(counts, key=lambda name: counts[name] * (3 if name in {"han", "kana", "hangul"} else 1))
    if not counts[script]:
        return ""
    languages = _SCRIPTS[script][1]
    if len(languages) == 1:
        return languages[0]
    # A consonant alone is an initial that a table repeats ("M. Quint"), seldom the French "m’".
    words = Counter(word for word in _WORD.findall(sample.casefold()) if word not in _CONSONANTS)
    weights = weigh_languages(words, languages)
    best = max(languages, key=lambda code: weights[code])
    if script != "latin":
        return best if weights[best] else languages[0]
    hits = sum(count for word, count in words.items() if word in FUNCTION_WORDS[best])
    if best == ENGLISH:
        return ENGLISH if hits else ""
    is_clear = hits >= max(_MIN_HITS, _MIN_SHARE * words.total())
    is_clear = is_clear and weights[best] > _ADVANTAGE * weights[ENGLISH]
    if is_clear:
        return best
    return ENGLISH if weights[ENGLISH] else ""


def weigh_languages(words: Counter[str], languages: Sequence[str]) -> dict[str, float]:
    """Return the weight of each language for casefolded words: a function word of n languages adds 1/n to each."""
    weights = dict.fromkeys(languages, 0.0)
    for word, count in words.items():
        having = [code for code in languages if word in FUNCTION_WORDS[code]]
        for code in having:
            weights[code] += count / len(having)
    return weights


def question_language(question: str, languages: Sequence[str]) -> str:
    """Return which of ``languages`` a question is written in: the first of them where its words do not tell.

    >>> question_language("Wer hat das gebaut?", ["en", "de"]), question_language("Revenue 2023", ["en", "de"])
    ('de', 'en')
    """
    if len(languages) < 2:
        return languages[0] if languages else ENGLISH
    scripts = {
        code: len(_LETTERS[name].findall(question))
        for name, (_, codes) in _SCRIPTS.items()
        for code in codes
        if code in languages
    }
    most = max(scripts.values(), default=0)
    candidates = [code for code in languages if most and scripts.get(code, 0) == most] or list(languages)
    words = Counter(_WORD.findall(question.casefold()))
    weights = weigh_languages(words, [code for code in candidates if code in FUNCTION_WORDS])
    return max(candidates, key=lambda code: weights.get(code, 0.0))


def document_languages(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the languages of the documents, those with most passages first; computed once per generation.

    Documents whose language is not known count as English: they are indexed so.
    """

    def count() -> tuple[str, ...]:
        sizes: Counter[str] = Counter()
        for document in snapshot.documents():
            sizes[document.language or ENGLISH] += document.nodes
        return tuple(sorted(sizes, key=lambda code: (-sizes[code], code))) or (ENGLISH,)

    languages: tuple[str, ...] = snapshot.memoize("documents/languages", count, documents_only=True)
    return languages


def foreign_language(question: str, snapshot: Snapshot) -> str:
    """Return the language of a question that is not in English, "" for one that is or may be.

    A short question in Latin letters is taken for another language only where documents are written in that.
    """
    languages = document_languages(snapshot)
    if languages == (ENGLISH,):
        language = detect_language(question)
    else:
        language = question_language(question, list(dict.fromkeys((*languages, ENGLISH))))
    return "" if language == ENGLISH else language


def _sample(text: str) -> str:
    if len(text) <= _PARTS * _PART_LENGTH:
        return text
    step = (len(text) - _PART_LENGTH) // (_PARTS - 1)
    return "\n".join(text[part * step : part * step + _PART_LENGTH] for part in range(_PARTS))


@cache
def _stemmer(language: str) -> snowballstemmer.stemmer | None:
    return snowballstemmer.stemmer(_STEMMERS[language]) if language in _STEMMERS else None


# A stemmer stores its current word in itself: a second thread would spoil both stems, and stems are cached.
_stemmer_lock = threading.Lock()


@lru_cache(maxsize=1 << 17)
def stem(word: str, language: str = ENGLISH) -> str:
    """Return the Snowball stem of a casefolded word. A word with digits is returned unchanged, and so is an English
    word outside ASCII and a word of a language without a stemmer.

    >>> stem("häuser", "de"), stem("häuser"), stem("houses")
    ('haus', 'häuser', 'hous')
    """
    # Vowel signs of Indian scripts are no letters: words of other languages are those without digits.
    is_word = word.isascii() and word.isalpha() if language == ENGLISH else not _NO_WORD.search(word)
    if not is_word:
        return word
    stemmer = _stemmer(language)
    if stemmer is None:
        return word
    with _stemmer_lock:
        return str(stemmer.stemWord(word))

import doctest
from collections import Counter

import pytest

from clew.core import languages, text
from clew.core.languages import detect_language, question_language


def test_examples_in_docstrings():
    assert doctest.testmod(languages).failed == 0


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("en", "The board met twice in March, and its minutes were kept by the secretary."),
        # Names and a loan word of another language are still English.
        ("en", "La Scala in Milan staged Der Rosenkavalier by Richard Strauss for the first time in 1911."),
        ("en", "Los Angeles, El Paso, San Diego and Las Vegas are in the south of the country."),
        ("", "Opel Corsa 1.4 Edition"),
        ("", "12.5 | 13.1 | 14.0"),
        ("de", "Der Mieter hat die Wohnung in dem Zustand zurückzugeben, in dem er sie erhalten hat."),
        ("fr", "Le locataire doit rendre les clés au propriétaire avant la fin du mois, sans autre délai."),
        ("es", "El inquilino debe devolver las llaves al dueño antes de que termine el mes."),
        ("pt", "O inquilino deve devolver as chaves ao dono antes do fim do mês, e não depois."),
        ("it", "L'inquilino deve restituire le chiavi al proprietario prima della fine del mese."),
        ("nl", "De huurder moet de sleutels voor het einde van de maand aan de eigenaar teruggeven."),
        ("sv", "Hyresgästen ska lämna tillbaka nycklarna till ägaren innan månaden är slut och inte efter."),
        ("pl", "Najemca musi oddać klucze właścicielowi przed końcem miesiąca, a nie po jego końcu."),
        (
            "tr",
            "Kiracı anahtarları ay sonundan önce ev sahibine geri vermek için bir gün daha istedi ve bu oldu.",
        ),
        ("ru", "Жилец должен вернуть ключи хозяину до конца месяца, а не после него."),
        ("uk", "Мешканець має повернути ключі власнику до кінця місяця, а не після того."),
        ("el", "Ο ενοικιαστής πρέπει να επιστρέψει τα κλειδιά στον ιδιοκτήτη."),
        ("ar", "يجب على المستأجر أن يعيد المفاتيح إلى المالك قبل نهاية الشهر"),
        ("fa", "مستاجر باید کلیدها را پیش از پایان ماه به صاحبخانه برگرداند"),
        ("he", "על השוכר להחזיר את המפתחות לבעל הבית לפני סוף החודש"),
        ("hi", "किरायेदार को महीने के अंत से पहले चाबियाँ लौटानी हैं"),
        ("zh", "租户必须在月底前把钥匙还给房东。"),
        ("ja", "借主は月末までに鍵を大家に返さなければならない。"),
        ("ko", "세입자는 월말까지 집주인에게 열쇠를 돌려주어야 한다."),
        ("th", "ผู้เช่าต้องคืนกุญแจให้เจ้าของก่อนสิ้นเดือน"),
    ],
)
def test_detected(language, written):
    assert detect_language(written) == language
    # The middle of a long document counts, whatever its cover says.
    assert detect_language("Report 2023\n" + f"{written}\n" * 400) == language


def test_initials_in_a_table_are_no_french():
    rows = [
        f"Mill {n},1929-03-{n},0.{n},{who}"
        for n in range(10, 30)
        for who in ("J. Ames", "M. Quint", "L. Okell")
    ]
    assert detect_language("\n".join(["station,date,stage_m,observer", *rows])) != "fr"


def test_question_language_is_of_the_base():
    assert question_language("Wer hat das gebaut?", ["en", "de", "nl"]) == "de"
    assert question_language("من بنى القصر؟", ["en", "ar"]) == "ar"
    assert question_language("谁建的？", ["en", "de"]) == "en"  # none of the base's: the first
    assert question_language("Umsatz 2023", ["de", "en"]) == "de"


@pytest.mark.parametrize(
    ("language", "written", "terms"),
    [
        ("de", "Die Häuser kosteten 1.234,50 Euro", ["die", "haus", "kost", "1234.50", "euro"]),
        ("de", "am 3.10.1990, 3,5 %", ["am", "3", "10", "1990", "3.5"]),
        ("fr", "l'eau de 2\u202f850 rivières", ["l", "eau", "de", "2850", "rivi"]),
        ("es", "las canciones", ["las", "cancion"]),
        ("ru", "книгами", ["книг"]),
        ("ar", "الكِتَابُ ٢٠٢٣", ["كتاب", "2023"]),
        ("th", "กรุงเทพ", ["กร", "รุ", "ุง", "งเ", "เท", "ทพ"]),
        ("zh", "三峡大坝", ["三峡", "峡大", "大坝"]),
        ("fi", "taloissa", ["talo"]),
    ],
)
def test_terms_of_a_language(language, written, terms):
    assert text.index_terms(written, language) == terms


def test_a_query_has_the_stems_of_every_language_of_the_base():
    assert text.query_terms("Was kosteten die Häuser?", ["de"]) == ["kost", "haus"]
    assert text.query_terms("Was kosteten die Häuser?", ["en", "de"]) == [
        "kost",
        "kosteten",
        "haus",
        "häuser",
    ]
    assert text.query_terms("What did the houses cost?", ["de", "en"]) == ["hous", "cost"]
    # A base of English is asked as before there were languages.
    assert text.query_terms("Die Häuser", ["en"]) == text.query_terms("Die Häuser") == ["die", "häuser"]


def test_count_terms_of_a_language():
    assert text.count_terms("Haus Häuser", "de") == Counter({text.hash_term("haus"): 2})

"""Mail: messages of Python's own writer and by hand, mailboxes, Outlook messages."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from bad_files import good_msg, sample
from clew.core.errors import UnreadableFile
from clew.parse.documents.limits import LIMITS
from clew.parse.documents.msg import unpack_rtf
from clew.parse.documents.reader import is_supported, member_files, read_file
from compound_writer import message_tree, write_compound_file
from parse_trees import outline, read, read_outline

HEAD = b"From: =?utf-8?q?Ines_C=C3=A4lder?= <ines@example.org>\nTo: jory@example.org\nSubject: Tolls\nMIME-Version: 1.0\n"  # noqa: E501


def members(data: bytes, name: str) -> dict[str, bytes]:
    return {file.name: file.read() for file in member_files(data, name)}


def test_headers_text_and_attachments() -> None:
    mail = EmailMessage()
    mail["Subject"] = "Zölle für Saltreach"
    mail["From"] = "Ines Cälder <ines@example.org>"
    mail["To"] = "Jory <jory@example.org>, bob@example.org"
    mail["Cc"] = "wenna@example.org"
    mail["Date"] = "Fri, 03 May 2024 14:05:00 +0200"
    mail.set_content("Dear Jory,\n\nthe tolls are:\n\n- coal\n- tin\n")
    mail.add_attachment(b"# Plan", maintype="text", subtype="markdown", filename="plän.md")
    mail.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="../../map.png")
    data = mail.as_bytes()
    document = read(data, "a.eml")
    assert document.title == "Zölle für Saltreach"
    assert outline(document) == [
        "# Zölle für Saltreach",
        "From: Ines Cälder <ines@example.org>\nTo: Jory <jory@example.org>, bob@example.org\nCc: wenna@example.org\n"
        "Date: Friday, 3 May 2024, 14:05 +0200",
        "Dear Jory,",
        "the tolls are:\n- coal\n- tin",
        "Attachments:\n- plän.md\n- ..-..-map.png",
    ]
    assert members(data, "a.eml") == {"plän.md": b"# Plan", "..-..-map.png": b"\x89PNG"}


def test_the_html_counts_and_pictures_in_it_are_no_attachments() -> None:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@example.org", "Tolls"
    mail.set_content("plain")
    mail.add_alternative("<p>Rich.</p><table><tr><th>Item<th>1928<tr><td>Coal<td>4</table>", subtype="html")
    mail.get_payload()[1].add_related(b"GIF89a", "image", "gif", cid="<logo>")
    assert read_outline(mail.as_bytes(), "a.eml")[2:] == ["Rich.", "| Coal: 1928: 4"]
    assert members(mail.as_bytes(), "a.eml") == {}


def test_a_forwarded_message_is_a_member_and_equal_names_are_told_apart() -> None:
    inner = EmailMessage()
    inner["From"], inner["Subject"] = "b@example.org", "Old/new tolls"
    inner.set_content("Inside.")
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@example.org", "Fwd"
    mail.set_content("See below.")
    for _ in range(2):
        mail.add_attachment(inner)
    files = members(mail.as_bytes(), "a.eml")
    assert list(files) == ["Old/new tolls.eml", "Old/new tolls (2).eml"]
    assert "Inside." in read(files["Old/new tolls.eml"], "b.eml").text


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"Content-Type: text/plain; charset=koi8-r\n\n\xed\xcf\xd3\xcb\xd7\xc1", "Москва"),
        (b"Content-Type: text/plain; charset=nonsense\n\nCaf\xc3\xa9", "Café"),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nQ2Fm!!w6k", "Caf"),
        (
            b"Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\nCaf=C3=A9 =\nnoir",
            "Café noir",
        ),
        (b"Content-Type: nonsense\n\nWords.", "Words."),
        (b'Content-Type: text/html; charset="utf\0-8"\n\n<p>Caf\xc3\xa9', "Café"),
        (b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nCut off", "Cut off"),
    ],
)
def test_strange_bodies_are_read(body: bytes, expected: str) -> None:
    assert expected in read(HEAD + body, "a.eml").text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"=?utf-8?b?wrong!?=", "=?utf-8?b?wrong!?="),
        (b"=?nonsense?q?Caf=C3=A9?=", "Café"),
        (b"Caf\xc3\xa9", "Café"),
        (b"=?u\0?q?Caf=C3=A9?=", "Café"),
        (b"  folded\n line", "folded line"),
        (b"", "(no subject)"),
    ],
)
def test_strange_subjects_are_read(value: bytes, expected: str) -> None:
    assert read(b"From: a@b\nSubject: " + value + b"\n\nWords.", "a.eml").title == expected


def test_a_mailbox_is_a_section_for_each_message() -> None:
    attached = (Path(__file__).parents[2] / "data" / "formats" / "attached.eml").read_bytes()
    line = b"From ines@example.org Fri May  3 14:05:00 2024\n"
    second = b"From: q@example.org\nSubject: Second\n\nFrom here on.\n>From there.\nFrom x 1999\n"
    sealed = b"From: q@example.org\nContent-Type: application/pkcs7-mime\n\nMIAG\n"
    data = b"\n".join([line + attached, line + second, line + sealed])
    document = read(data, "mails.mbox")
    assert document.title == "mails"
    assert [node.text for node in document.nodes if node.kind == "section"] == [
        "The Harbour of Brannick",
        "Second",
    ]
    assert "From here on.\nFrom there.\nFrom x 1999" in document.text
    assert document.notes == ("message 3 is an encrypted message",)
    assert list(members(data, "mails.mbox")) == ["1 The Harbour of Brannick/brannick.md"]


def test_an_outlook_message_with_a_message_in_it() -> None:
    inner = message_tree("Inner", body="Inside.", header=24, attachments={"deep.txt": b"Deep words."})
    long = b"# Plan\n\n" + b"Words. " * 1_000
    data = write_compound_file(
        message_tree("Tolls", html=b"<h1>Tolls</h1><p>Up.</p>", attachments={"plan.md": long, "inner": inner})
    )
    document = read(data, "a.msg")
    assert outline(document) == [
        "# Tolls",
        "From: Ines Calder <ines@example.org>\nTo: Jory Penhallow; Wenna\nDate: Friday, 3 May 2024, 12:05 +0000",
        "## Tolls",
        "Up.",
        "## Inner",
        "From: Ines Calder <ines@example.org>\nTo: Jory Penhallow; Wenna\nDate: Friday, 3 May 2024, 12:05 +0000",
        "Inside.",
        "Attachments:\n- plan.md\n- deep.txt",
    ]
    assert members(data, "a.msg") == {"plan.md": long, "deep.txt": b"Deep words."}


@pytest.mark.parametrize(
    ("page", "encoding", "subject", "name"),
    [
        (936, "gbk", "关于闸门的会议", "水位表.md"),
        (950, "big5", "關於閘門的會議", "水位表.md"),
        (932, "cp932", "水門についての会議", "水位.md"),
        (949, "cp949", "수문 회의", "수위.md"),
        (1251, "cp1251", "Сборы", "Уровни.md"),
        (20866, "koi8_r", "Сборы", "Уровни.md"),
        (1253, "cp1253", "Τέλη", "Στάθμες.md"),
        (1250, "cp1250", "Žlutý člun", "Řeka.md"),
        (28592, "iso8859_2", "Žlutý člun", "Řeka.md"),
        (65001, "utf_8", "Zölle 闸门", "Plän.md"),
    ],
)
@pytest.mark.parametrize("number", [0x3FFD, 0x3FDE])
def test_texts_of_8_bits_are_in_the_code_page_of_the_message(
    page: int, encoding: str, subject: str, name: str, number: int
) -> None:
    tree = message_tree(
        subject, body=f"{subject}: 4", attachments={name: b"x"}, encoding=encoding, pages={number: page}
    )
    # A message within states none: what holds it does.
    inner = message_tree(subject, body=f"{subject}: 5", header=24, encoding=encoding)
    tree |= {
        "__attach_version1.0_#00000001": {"__properties_version1.0": bytes(8), "__substg1.0_3701000D": inner}
    }
    data = write_compound_file(tree)
    document = read(data, "a.msg")
    assert document.title == subject
    assert f"{subject}: 4" in document.text and f"{subject}: 5" in document.text
    assert members(data, "a.msg") == {name: b"x"}


@pytest.mark.parametrize("page", [0, 1200, 99_999])
def test_without_a_known_code_page_the_long_text_tells_the_encoding_of_the_short_ones(page: int) -> None:
    body = (
        "各位同事：闸门将于六月关闭，请在五月底之前把船只移到下游的码头。水位表附后，如有问题请联系港务局。"
    )
    pages = {0x3FFD: page} if page else {}
    data = write_compound_file(message_tree("闸门关闭", body=body, encoding="gbk", pages=pages))
    document = read(data, "a.msg")
    assert document.title == "闸门关闭" and body in document.text


def test_html_is_in_its_own_code_page() -> None:
    tree = message_tree(
        "Tolls", html="<p>Сборы выросли.</p>".encode("koi8_r"), pages={0x3FFD: 1252, 0x3FDE: 20866}
    )
    assert "Сборы выросли." in read(write_compound_file(tree), "a.msg").text


def test_html_that_is_a_text_is_in_no_code_page() -> None:
    tree = message_tree("Tolls", pages={0x3FFD: 936})
    tree["__substg1.0_1013001F"] = "<p>Zölle für 闸门.</p>".encode("utf-16-le")
    assert "Zölle für 闸门." in read(write_compound_file(tree), "a.msg").text


@pytest.mark.parametrize(
    ("place", "number"), [(44, 2**31), (64, 2**31), (72, 2**31), (48, 2**31), (30, 2**31)]
)
def test_a_container_that_claims_more_than_it_has_is_refused(place: int, number: int) -> None:
    data = bytearray(good_msg())
    data[place : place + 4] = number.to_bytes(4, "little")
    with pytest.raises(UnreadableFile, match="damaged"):
        read(bytes(data), "a.msg")


def test_streams_that_claim_more_than_there_is_are_refused() -> None:
    data = good_msg()
    directory = (int.from_bytes(data[48:52], "little") + 1) * 512
    for entry in range(directory, directory + 4 * 128, 128):
        changed = bytearray(data)
        changed[entry + 120 : entry + 124] = (2**31).to_bytes(4, "little")
        with pytest.raises(UnreadableFile, match="damaged"):
            read(bytes(changed), "a.msg")


def test_very_many_attachments_and_those_in_their_order() -> None:
    files = {f"{number}.txt": b"%d" % number for number in range(300)}
    data = write_compound_file(message_tree("Tolls", body="See them.", attachments=files))
    assert list(members(data, "a.msg").items()) == list(files.items())


#: The example of [MS-OXRTFCP] 4.1.1.
PACKED = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)


def test_packed_rtf_is_unpacked() -> None:
    assert unpack_rtf(PACKED, LIMITS) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    data = write_compound_file(message_tree("Tolls", rtf=PACKED))
    assert read_outline(data, "a.msg")[2:] == ["hello world"]
    for end in range(0, len(PACKED), 3):  # whatever is cut off
        try:
            unpack_rtf(PACKED[:end], LIMITS)
        except UnreadableFile as error:
            assert "unpacked" in error.problem


def test_html_within_rtf() -> None:
    rtf = (
        rb"{\rtf1\ansi\ansicpg1252\fromhtml1 {\fonttbl{\f0 Arial;}}{\*\htmltag64 <p>}\htmlrtf \par \htmlrtf0 Caf\'e9"
        rb" \u8211? {\*\htmltag84 <b>}bold{\*\htmltag92 </b>}{\*\htmltag72 </p>}}"
    )
    header = (len(rtf) + 12).to_bytes(4, "little") + len(rtf).to_bytes(4, "little") + b"MELA" + bytes(4)
    data = write_compound_file(message_tree("Tolls", rtf=header + rtf))
    assert read_outline(data, "a.msg")[2:] == ["Café – bold"]


@pytest.mark.slow
def test_random_damage_to_mail_is_read_or_refused(tmp_path: Path) -> None:
    import random

    chance = random.Random(3)
    goods = ((good_msg(), "a.msg"), (sample("eml"), "a.eml"), (sample("mbox"), "a.mbox"), (sample("rtf"), "a.rtf"),
             (sample("tex"), "a.tex"), (sample("ipynb"), "a.ipynb"), (sample("json"), "a.json"), (sample("zip"), "a.zip"))  # fmt: skip  # noqa: E501
    refused = 0
    for number in range(160):
        data, name = goods[number % len(goods)]
        changed = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            start = chance.randrange(len(changed) - 1)
            end = min(start + chance.randint(1, 40), len(changed))
            changed[start:end] = chance.choice(
                [chance.randbytes(end - start), b"", bytes(changed[start:end]) * 2]
            )
        path = tmp_path / name
        path.write_bytes(bytes(changed))
        try:
            read_file(path, members=tmp_path)
        except UnreadableFile:
            refused += 1
    assert 20 < refused < 140


def test_a_page_that_a_browser_saved_as_one_file() -> None:
    page = (
        b"From: <Saved by Blink>\nSnapshot-Content-Location: https://a.example/\nSubject: Tolls\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/related; type="text/html"; boundary="x"\n\n--x\nContent-Type: text/html\n'
        b"Content-Transfer-Encoding: quoted-printable\n\n<h1>Tolls</h1><p>Five =E2=82=AC.</p>\n--x--\n"
    )
    assert read_outline(page, "page.mhtml")[-1] == "Five €."
    assert is_supported(Path("page.mht"))

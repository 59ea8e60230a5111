"""Azure Blob Storage: conditional writes, copies, reading where they lie and errors, against Azurite, its emulator.

Azurite is a program for Node (``npm install -g azurite``); where it is not installed, these tests are skipped.
"""

import base64
import hashlib
import hmac
import http.client
import os
import shutil
import subprocess
import time
from email.utils import formatdate

import pytest

from clew.core.errors import NotFound, StoreError
from clew.core.types import Question
from clew.knowledge_base.base_copy import copy_base
from clew.retrieve.lexical import BM25
from clew.store.object_store import open_object_store
from clew.store.remote.store import RemoteStore
from clew.store.store import Store
from kb_documents import HashEncoder, document, location
from object_server import free_port, race_for_writes

pytestmark = pytest.mark.slow
#: The account that every Azurite has; its key is in Azurite's documentation.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "container"


def make_container(port):
    """Make the container, by a request that is signed with the account's key; return whether it is there."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = ["PUT", *[""] * 11, *(f"{name}:{headers[name]}" for name in sorted(headers))]
    lines += [f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}", "restype:container"]
    mac = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
    headers |= {
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}",
        "Content-Length": "0",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("PUT", f"/{ACCOUNT}/{CONTAINER}?restype=container", headers=headers)
        return connection.getresponse().status == 201
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture(scope="module")
def azurite():
    pytest.importorskip("obstore", reason="obstore, of the extra scale, is not installed")
    program = os.environ.get("AZURITE") or shutil.which("azurite-blob")
    if program is None:
        pytest.skip("Azurite is not installed (npm install -g azurite), nor named by AZURITE")
    port = free_port()
    command = [program, "--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert any(make_container(port) or time.sleep(0.2) for _ in range(150))
        yield port
    finally:
        child.terminate()
        child.wait()


@pytest.fixture
def account(azurite, monkeypatch):
    for name, value in {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{azurite}/{ACCOUNT}",
        "AZURE_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)


def read_answers(store):
    """Return what a base answers: its digest, and hits with scores by words and vectors."""
    snapshot, encoder = store.snapshot(), HashEncoder()
    hits = [(hit.node.id, hit.score) for hit in BM25(snapshot).retrieve(Question("the river mill"), 10)]
    rows, scores = snapshot.vectors(encoder.name).search(encoder.encode(["mill"], query=True), 8)
    return store.digest(), hits, snapshot.ids(rows[0]), scores.tolist()


def test_a_copy_there_and_back_and_where_it_lies(account, tmp_path):
    address = f"az://{CONTAINER}/bases/kb"
    with Store.open(tmp_path / "kb", create=True) as store:
        for number in range(6):
            store.put_document(document(number), location(f"/docs/{number}.txt"))
        store.encode(HashEncoder())
        expected = read_answers(store)
    assert copy_base(str(tmp_path / "kb"), address, shards=2).digest == expected[0]
    assert copy_base(str(tmp_path / "kb"), address, shards=2).transferred == 0
    copy_base(address, str(tmp_path / "back"))
    with Store.open(tmp_path / "back") as back:
        assert read_answers(back) == expected
        back.remove(["/docs/0.txt"])
        changed = read_answers(back)
    with RemoteStore.open_url(address) as reader:
        assert read_answers(reader) == expected
        copy_base(str(tmp_path / "back"), address)
        assert reader.refresh() and read_answers(reader) == changed != expected


def test_each_conditional_write_has_one_winner(account):
    clients = [open_object_store(f"az://{CONTAINER}/turns") for _ in range(6)]
    content = race_for_writes(clients, 6)
    assert clients[0].sizes("") == {"manifest.json": len(content)}
    clients[0].delete(["manifest.json", "none"])
    assert clients[0].read("manifest.json") is None and clients[0].version("manifest.json") is None


def test_wrong_credentials_and_places_are_told(account, monkeypatch):
    with pytest.raises(NotFound, match="no bucket"):
        open_object_store("az://elsewhere/kb").read("manifest.json")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"another key").decode())
    with pytest.raises(StoreError, match="refuses these credentials"):
        open_object_store(f"az://{CONTAINER}/kb").read("manifest.json")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(StoreError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        open_object_store(f"az://{CONTAINER}/kb")

"""Takes from a process what a parser does not need: files, the network, other processes. Linux only.

- **Landlock** (Linux 5.13 and later): nothing can be created, removed, or written but /dev/null and what lies in a
  folder of the parent's choice, and nothing can be read but that folder, Python, its packages and the system's
  libraries; no TCP (6.7 and later), no signals and no abstract sockets to the rest of the machine (6.12 and later).
- **seccomp**: no sockets of any kind, no io_uring, no looking into other processes. On x86-64 and 64-bit ARM.

Both need no rights and no programs, hold for all that the process starts, and cannot be undone. What a parser is to
read, its parent opens and hands over.

Sources: the kernel's documentation, userspace-api/landlock and userspace-api/seccomp_filter. Decisions 31 and 50.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _RULE_PATH_BENEATH = 1, 1
#: Rights over files: to write one, to read one, to list a folder; to remove a folder or file, to create one of seven
#: kinds.
_WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 1, 1 << 2, 1 << 3
_READS = _READ_FILE | _READ_FOLDER
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
#: The rights that a later version of Landlock knows besides: to link into another folder, to cut a file.
_LATER_CHANGES = ((2, 1 << 13), (3, 1 << 14))
#: The versions from which on TCP, and then abstract sockets and signals, can be taken; each has two rights.
_NETWORK_VERSION, _SCOPE_VERSION, _BOTH = 4, 6, 0b11
_NO_NEW_PRIVILEGES = 38
_FILTER_MODE, _ALL_THREADS = 1, 1
#: By machine: the number that seccomp knows it by, that of the call seccomp, and those of the calls that are refused:
#: socket, ptrace, process_vm_readv, process_vm_writev, io_uring_setup.
_CALLS = {
    "x86_64": (0xC000003E, 317, (41, 101, 310, 311, 425)),
    "aarch64": (0xC00000B7, 277, (198, 117, 270, 271, 425)),
}
#: Calls of the form x32, which have other numbers, begin here.
_OTHER_FORM = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
#: What the system's libraries are read from, and what they read.
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew", "/proc", "/sys",
    "/dev/urandom", "/dev/zero", "/etc/ld.so.cache", "/etc/fonts", "/etc/localtime", "/etc/mime.types",
    "/etc/ssl/openssl.cnf",
)  # fmt: skip
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 13  # 13: permission denied


def confine_process(folder: Path | None = None) -> None:
    """Confine this process, and what it starts, as far as the system can; see :func:`confinement`.

    It may write in ``folder`` alone, temporary files included.
    """
    if folder is not None:
        tempfile.tempdir = str(folder)
        os.putenv("SQLITE_TMPDIR", str(folder))  # SQLite asks the system, not Python
    if sys.platform != "linux":
        return
    version = _landlock_version()
    if version or platform.machine() in _CALLS:
        _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if version:
        _forbid_files(version, folder)
    if platform.machine() in _CALLS:
        _forbid_calls(*_CALLS[platform.machine()])


def confinement() -> dict[str, bool]:
    """Return what this system says it can keep a process from: ``files`` (writing them), ``reading`` the files of
    others, and ``network``."""
    version = _landlock_version()
    has_filters = sys.platform == "linux" and platform.machine() in _CALLS and _has_seccomp()
    return {
        "files": version > 0,
        "reading": version > 0,
        "network": has_filters or version >= _NETWORK_VERSION,
    }


def try_confinement() -> dict[str, bool]:
    """Return what a process that is confined here is really kept from, by trying; the names are those of
    :func:`confinement`."""
    with tempfile.TemporaryDirectory(prefix="clew-") as folder:
        file = Path(folder) / "file"
        file.touch()
        child = subprocess.run(
            [sys.executable, "-c", _TRIAL, str(file)], capture_output=True, text=True, check=False
        )
    reached = set(child.stdout.split())
    return {what: child.returncode == 0 and what not in reached for what in ("files", "reading", "network")}


#: Prints what it reaches. A connection to a port where nobody listens is refused by whoever is asked first.
_TRIAL = """
import errno, socket, sys
from clew.parse.documents.sandbox import confine_process
confine_process()
for what, mode in (("files", "w"), ("reading", "r")):
    try:
        open(sys.argv[1], mode).close()
        print(what)
    except PermissionError:
        pass
try:
    with socket.socket() as client:
        if client.connect_ex(("127.0.0.1", 9)) not in (errno.EACCES, errno.EPERM):
            print("network")
except PermissionError:
    pass
"""


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _landlock_version() -> int:
    """Return the version of Landlock in this system; 0 where it has none, or it is switched off."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def _has_seccomp() -> bool:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123 - no file of ours
        return any(line.startswith("Seccomp:") for line in status)


def _forbid_files(version: int, folder: Path | None) -> None:
    changes = _CHANGES | sum(right for first, right in _LATER_CHANGES if version >= first)
    fields = [changes | _READS]
    if version >= _NETWORK_VERSION:
        fields.append(_BOTH)
    if version >= _SCOPE_VERSION:
        fields.append(_BOTH)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = _libc().syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if rules < 0:
        return
    try:
        _allow(rules, os.devnull, _WRITE_FILE | _READ_FILE)
        if folder is not None:
            _allow(rules, str(folder), changes | _READS)
        for place in _readable_places():
            _allow(rules, place, _READS)
        _libc().syscall(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    """Add to a set of rules that ``path``, a file or all in a folder, may be used so; nothing where it is missing."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= _WRITE_FILE | _READ_FILE  # the kernel takes no others for a file
    rule = struct.pack("=Qi", rights, place)
    _libc().syscall(_ADD_RULE, rules, _RULE_PATH_BENEATH, rule, 0)
    os.close(place)


def _readable_places() -> set[str]:
    """Return the folders and files that Python, its packages, and the system's libraries are read from.

    A script, and ``python -m``, put their own folder on Python's path, which may be the one with a person's
    documents: it is none of them, but packages that were imported from there are.
    """
    places = {*_SYSTEM, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    own = {Path(sys.argv[0]).resolve().parent, Path().resolve()}
    places.update(
        entry for entry in sys.path if Path(entry).is_absolute() and Path(entry).resolve() not in own
    )
    for name, module in sys.modules.copy().items():
        if "." not in name:
            places.update(getattr(module, "__dict__", {}).get("__path__", ()))
    # Libraries of a machine for computing may be anywhere; others of theirs lie beside them.
    maps = Path("/proc/self/maps").read_text("utf-8", "replace")
    mapped = (line.split(maxsplit=5)[-1] for line in maps.splitlines())
    places.update(str(Path(path).parent) for path in mapped if path.startswith("/") and ".so" in path)
    return places


def _forbid_calls(machine: int, seccomp: int, calls: tuple[int, ...]) -> None:
    program = [
        (_LOAD, 0, 0, 4),  # the machine that the call was made for
        (_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the number of the call
        (_AT_LEAST, len(calls) + 1, 0, _OTHER_FORM),
        *((_EQUAL, len(calls) - number, 0, call) for number, call in enumerate(calls)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    packed = b"".join(struct.pack("=HBBI", *step) for step in program)
    steps = ctypes.create_string_buffer(packed, len(packed))
    pointer = struct.pack("@HP", len(program), ctypes.addressof(steps))
    _libc().syscall(seccomp, _FILTER_MODE, _ALL_THREADS, pointer)

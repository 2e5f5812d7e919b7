"""Bytes made wrong: cut, flipped, other encodings; archives that lie, YAML that multiplies, CSV that closes no quote."""

from __future__ import annotations

import io
import random
import struct
import zipfile

BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def damaged(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Return *data* damaged in one way, and which."""
    kind = rng.choice(
        ("cut", "flip", "nul", "utf-16", "latin-1", "bom", "doubled", "reversed", "spliced", "blank", "junk", "lines")
    )
    place = rng.randrange(len(data) + 1)
    text = data.decode("utf-8", "replace")
    if kind == "cut":
        return data[:place], kind
    if kind == "flip":
        out = bytearray(data)
        for _ in range(rng.choice((1, 1, 3, 50)) if data else 0):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        return bytes(out), kind
    if kind == "nul":
        return data[:place] + b"\0" * rng.choice((1, 7)) + data[place:], kind
    if kind == "utf-16":
        return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32"))), kind
    if kind == "latin-1":
        return text.replace("a", "ä", 3).encode("latin-1", "replace"), kind
    if kind == "bom":
        return rng.choice(BOMS) + data, kind
    if kind == "doubled":
        return data + rng.choice((b"", b"\n", b",")) + data, kind
    if kind == "reversed":
        return data[::-1], kind
    if kind == "spliced":
        other = rng.randrange(len(data) + 1)
        return data[:place] + data[other:], kind
    if kind == "blank":
        return rng.choice((b"", b" \n", b"null", b"[]", b"{}", b"0", b'""', b"[[]]", b"[null]", b"\xef\xbb\xbf")), kind
    if kind == "junk":
        return data[:place] + rng.randbytes(rng.choice((1, 20, 2000))) + data[place:], kind
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines), kind


def zipped(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive of *members*, whatever their names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def archive(name: str, data: bytes, beside: list[tuple[str, bytes]], rng: random.Random) -> tuple[bytes, str]:
    """Return an archive that holds *data* in a hostile way, and in which."""
    kind = rng.choice(
        (
            "plain",
            "outside",
            "link",
            "encrypted",
            "bomb",
            "nested",
            "deep",
            "sizes",
            "cut",
            "flip",
            "twice",
            "names",
            "many",
            "side",
        )
    )
    members = [(name, data), *beside]
    if kind == "outside":
        members = [(rng.choice(("../../", "/etc/", "..\\..\\", "C:\\", "a/../../")) + name.rsplit("/", 1)[-1], data), *beside]
    elif kind == "bomb":
        members.append(("bomb.json", rng.choice((b"0", b"[", b" ", b"\0", b'{"a":')) * rng.choice((10**6, 3 * 10**6))))
    elif kind == "twice":
        return _twice(members), kind
    elif kind == "names":
        members.append(
            (
                rng.choice(("x" * 60_000 + ".json", "a/" * 500 + "b.json", "\u202ea.json", "a\nb.json", ".json", "run.json/")),
                data[:100],
            )
        )
    elif kind == "many":
        members += [(f"m{place}.json", b"{}") for place in range(rng.choice((10, 300)))]
    elif kind == "side":
        members.append((rng.choice(("shiftlog.yaml", "shiftlog.yml", "meta_env.json", "run.json")), sidecar(rng)))
    out = zipped(members, rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2)))
    if kind == "link":
        return _linked(name, data), kind
    if kind == "nested":
        return zipped([("inner.zip", out), (name, data)]), kind
    if kind == "deep":
        for _ in range(rng.choice((2, 3, 6))):
            out = zipped([("a.zip", out)])
        return out, kind
    return _dented(bytearray(out), kind, rng), kind


def _dented(data: bytearray, kind: str, rng: random.Random) -> bytes:
    directory = data.index(b"PK\x01\x02")
    if kind == "encrypted":
        data[6] |= 1
        data[directory + 8] |= 1
    elif kind == "sizes":
        for place in (directory + 20, directory + 24, 18, 22):
            if rng.random() < 0.6:
                data[place : place + 4] = struct.pack("<I", rng.choice((0, 1, 16, 2**31, 2**32 - 1)))
    elif kind == "cut":
        del data[rng.randrange(len(data)) :]
    elif kind == "flip":
        for _ in range(rng.choice((1, 5))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _linked(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        link = zipfile.ZipInfo("link.json")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        made.writestr(link, "/etc/passwd")
        made.writestr(name, data)
    return buffer.getvalue()


def _twice(members: list[tuple[str, bytes]]) -> bytes:
    """Return an archive whose first member stands in it twice (zipfile warns of that, so the name is mended afterwards)."""
    name, data = members[0]
    other = name[:-1] + "\x7f"
    return zipped([*members, (other, data)]).replace(other.encode(), name.encode())


def sidecar(rng: random.Random) -> bytes:
    """Return the bytes of a side file that no user would write."""
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{n}: &{n} [*{p},*{p},*{p},*{p},*{p},*{p},*{p},*{p},*{p}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return rng.choice(
        (
            b"",
            b"\0" * 1000,
            b"hardware: [1, 2]",
            b"hardware: {a: b}",
            b"no_such_key: 1",
            b"num_gpus: 1e9",
            b"num_gpus: -1",
            b"files: 3",
            b"files: {'*': 3}",
            b"files: {'[': {tp: 8}}",
            b"- a\n- b",
            b"hardware: h100\nhardware: h200",
            b"? [a, b]\n: c",
            b"timezone: ../../etc/passwd",
            b"timezone: /etc/passwd",
            b"timezone: Europe",
            b"timezone: " + b"a" * 500,
            b"measured_at: 2026-11-01",
            b"engine: !!python/object/apply:os.system ['true']",
            b"a" * 100_000,
            b"[" * 5000,
            b"{" * 60_000,
            b"a: &a [*a]",
            bomb.encode(),
            "hardware: h100\n".encode("utf-16"),
            b"model: \xff\xfe",
            b"%YAML 9.9\n---\na: b",
            b"--- a\n--- b",
            b"isl: 0x10",
            b"tp: ",
            b"<<: {tp: 8}",
            b'model: "\\ud800"',
            b'run_id: "a\\0b"',
            b'{"is_multinode": 3, "framework": [], "precision": null}',
            b'{"id": {}, "run_started_at": []}',
        )
    )


def yaml_text(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Return the YAML text *data* made hostile, and how."""
    kind = rng.choice(
        ("alias", "laughs", "tag", "deep", "flow", "merge", "documents", "tabs", "key", "float", "anchor", "directive")
    )
    text = data.decode("utf-8", "replace")
    laughs = "zz: &a0 [x]\n" + "".join(f"z{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    extra = {
        "alias": "zz: &a 1\nyy: *a\n",
        "laughs": laughs,
        "tag": rng.choice(
            (
                "zz: !!python/object/apply:os.system ['true']\n",
                "zz: !!binary aGk=\n",
                "zz: !x y\n",
                "zz: !!set {a}\n",
                "zz: !!timestamp 2026-01-01\n",
            )
        ),
        "deep": "zz: " + "[" * rng.choice((60, 70, 3000, 200_000)) + "\n",
        "flow": "zz: " + "{a: " * rng.choice((63, 2000)) + "\n",
        "merge": "zz: {<<: {a: 1}}\n",
        "documents": "---\na: 1\n",
        "tabs": "\tzz: 1\n",
        "key": rng.choice(
            ("? [a, b]\n: c\n", "? {a: b}\n: c\n", "1: 2\n", "null: 3\n", "1.5: x\n", "true: y\n", "2026-01-01: d\n")
        ),
        "float": f"zz: {rng.choice(('.nan', '.inf', '1e999', '1' * 5000, '0o17', '1:30:00', '0b1', '1_0', '~', '=', '-.inf'))}\n",
        "anchor": "&x zz: 1\n",
        "directive": "%TAG ! tag:x,2000:\n",
    }[kind]
    lines = text.split("\n")
    if kind == "float" and rng.random() < 0.7:
        places = [place for place, line in enumerate(lines) if ": " in line]
        if places:
            place = rng.choice(places)
            lines[place] = lines[place].split(": ", 1)[0] + ": " + extra.split(": ", 1)[1].strip()
            return "\n".join(lines).encode(), kind
    return (extra + text if rng.random() < 0.5 else text.rstrip("\n") + "\n" + extra).encode(), kind


def csv_text(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Return the CSV text *data* made hostile, and how."""
    kind = rng.choice(
        ("ragged", "huge", "quote", "nul", "header", "alike", "wide", "cr", "semicolon", "cell", "cell", "cell", "only", "rows")
    )
    lines = data.decode("utf-8", "replace").split("\n")
    place = rng.randrange(len(lines))
    cells = lines[place].split(",")
    if kind == "ragged":
        lines[place] = rng.choice((lines[place] + ",x", ",".join(cells[:-1]), ",", "x"))
    elif kind == "huge":
        lines[place] = lines[place] + "x" * rng.choice((200_000, 1_500_000))
    elif kind == "quote":
        lines[place] = lines[place].replace('"', "", 1) if rng.random() < 0.5 else lines[place] + '"'
    elif kind == "nul":
        lines[place] = lines[place][:3] + "\0" + lines[place][3:]
    elif kind == "header":
        lines[0] = lines[0].replace(",", rng.choice((";", "\t", ",,", ", ")), rng.choice((1, 99)))
    elif kind == "alike":
        lines[0] = lines[0] + "," + lines[0]
    elif kind == "wide":
        lines = [line + "," * 5000 for line in lines]
    elif kind == "cr":
        return "\r".join(lines).encode(), kind
    elif kind == "semicolon":
        return "\n".join(lines).replace(",", ";").encode(), kind
    elif kind == "cell":
        cells[rng.randrange(len(cells))] = rng.choice(
            ("", "nan", "inf", "1e999", "-1", "9" * 400, "x" * 70_000, '"a\nb"', "٣", "=1+1", "-0")
        )
        lines[place] = ",".join(cells)
    elif kind == "only":
        lines = lines[:1]
    else:
        lines += lines[1:] * rng.choice((3, 200))
    return "\n".join(lines).encode(), kind

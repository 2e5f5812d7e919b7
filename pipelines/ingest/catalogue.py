"""What is read, as text: the generated parts of docs/formats.md and the tables of `shiftlog formats`.

`python -m pipelines.ingest.catalogue docs/formats.md` writes the parts between the marks anew; a test holds the file to it.
Belongs here: showing. Does not: what a format reads (its `dictionary`), what a metric is (`metrics`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines.ingest import formats, metrics
from pipelines.ingest.declarations import KEYS
from pipelines.ingest.reading import RecordFormat

Row = tuple[str, ...]


def table(head: Row, rows: Sequence[Row]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)


def formats_part() -> str:
    """Return the sections of all formats."""
    return "\n\n".join(map(_section, formats.FORMATS))


def _section(record_format: RecordFormat) -> str:
    own = record_format.dictionary
    parts = [f"### {record_format.name}: {record_format.title}"]
    known = [f"`{key}`" for key in sorted(record_format.markers)]
    lacking = [f"`{key}`" for key in sorted(record_format.without)]
    parts.append(f"Known by {', '.join(known)}{' and by lacking ' + ', '.join(lacking) if lacking else ''}.")
    if own.text:
        parts.append(own.text.strip())
    if own.needs:
        parts.append(f"Never in the record, so declared where wanted: {', '.join(f'`{key}`' for key in own.needs)}.")
    if own.fields:
        rows = [
            (f"`{field.name}`", f"`{field.becomes}`", field.unit, "; ".join(filter(None, (field.note, _since(field.since)))))
            for field in own.fields
        ]
        parts.append(table(("field", "becomes", "unit there", "note"), rows))
    if own.left_out:
        parts.append("Left out: " + "; ".join(f"`{name}` ({why})" for name, why in own.left_out) + ".")
    if own.traps:
        parts.append("Traps:\n\n" + "\n".join(f"- {trap}" for trap in own.traps))
    return "\n\n".join(parts)


def _since(text: str) -> str:
    return f"since {text}" if text else ""


def metric_rows() -> list[Row]:
    """Return name, place, unit, what it includes, definition and sources of every metric."""
    return [
        (
            own.name,
            own.place,
            own.unit,
            _includes(own),
            own.definition,
            _sources(own.name, "{}".format),
        )
        for own in metrics.definitions().values()
    ]


def _sources(metric: str, shown: Callable[[str], str]) -> str:
    """Return which format writes a metric under which names, each name as *shown* shows it."""
    fields: dict[str, list[str]] = {}
    for name, field in metrics.sources(metric):
        told = shown(field.name + (f" (since {field.since})" if field.since else ""))
        if told not in fields.setdefault(name, []):
            fields[name].append(told)
    return ", ".join(f"{name} {' '.join(names)}" for name, names in fields.items())


def _includes(own: metrics.Definition) -> str:
    first = {True: "with the first token", False: "without the first token", None: ""}[own.first_token]
    counter = f"tokens by the {own.token_counter}" if own.token_counter else ""
    return ", ".join(filter(None, (first, counter)))


METRIC_HEAD = ("metric", "where", "unit", "includes", "definition", "written by")


def metrics_part() -> str:
    """Return the table of all metrics."""
    rows = [
        (f"`{name}`", f"`{place}`", *rest, _sources(name, "`{}`".format)) for name, place, *rest, _sources_told in metric_rows()
    ]
    return table(METRIC_HEAD, rows)


def key_rows() -> list[Row]:
    """Return name, meaning and example of every key that may be declared."""
    return [(key.name, key.meaning, key.example) for key in KEYS.values()]


def keys_part() -> str:
    """Return the table of the keys that may be declared."""
    return table(("key", "meaning", "example"), [(f"`{name}`", meaning, f"`{example}`") for name, meaning, example in key_rows()])


def overview_part() -> str:
    """Return the table of all formats."""
    rows = [(f"`{own.name}`", own.title, "`evals`" if own.kind == "eval" else "`points`") for own in formats.FORMATS]
    return table(("format", "what it is", "table"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "overview": overview_part,
    "keys": keys_part,
    "metrics": metrics_part,
    "formats": formats_part,
}


def rendered(text: str) -> str:
    """Return *text* with every part between its marks made anew."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}: generated -->", f"<!-- /{name} -->"
        made = f"{begin}\n\n{part()}\n\n{end}"
        head, _, rest = text.partition(begin)
        text = head + made + rest.partition(end)[2] if rest else text
    return text


def main() -> None:
    """Write the generated parts of the file that the command line names."""
    path = Path(sys.argv[1])
    path.write_text(rendered(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()

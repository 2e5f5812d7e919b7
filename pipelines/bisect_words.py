"""A bisection in plain words: what is in, what is left, what to run next. For terminals.

Belongs here: sentences from the object of `pipelines.bisecting.bisect`. Does not: working it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Answer = dict[str, Any]
LEVELS = {"old": "as before the shift", "new": "as after it", "skip": "cannot be told"}


def sentences(answer: Answer) -> Iterator[str]:
    """Yield the lines that tell a bisection."""
    yield f"{answer['shift_id']}  {answer['candidates']:,} changes of {answer['project']} lie between the two builds"
    yield f"Range: {answer['range_how']}"
    if answer["open_ended"]:
        yield "One end of it is not sure: the change may lie outside of what is halved here."
    yield from _results(answer["results"])
    if answer["contradiction"]:
        yield f"Stop: {answer['contradiction']}."
    elif answer["found"]:
        yield from _found(answer)
    elif answer["next"] is None:
        yield f"Nothing left to run: these {answer['remaining']['candidates']} changes cannot be told apart."
        yield from _changes(answer)
    else:
        yield from _next(answer)
    yield from _suspects(answer)


def _results(results: list[Answer]) -> Iterator[str]:
    for result in results:
        unused = "" if result["used"] else " (not used)"
        yield f"  {result['build']}: {LEVELS[result['level']]}{unused}; {result['how']}"


def _found(answer: Answer) -> Iterator[str]:
    yield "The results leave one change; run it and its parent once more before you say so:"
    yield from _changes(answer)


def _changes(answer: Answer) -> Iterator[str]:
    changes = answer["remaining"]["changes"]
    yield from (f"  {_change(change)}" for change in changes)
    more = answer["remaining"]["candidates"] - len(changes)
    if more > 0:
        yield f"  and {more:,} more"


def _change(change: Answer) -> str:
    return f"{change['commit'][:12]}  {change['title']}"


def _next(answer: Answer) -> Iterator[str]:
    step, left = answer["next"], answer["remaining"]["candidates"]
    yield f"{left:,} changes are left: about {answer['expected_runs']} builds to run{_each(answer['runs_each'])}."
    yield f"Next: {_change(step)} ({step['committer_date']}), which parts them {step['halves'][0]:,} : {step['halves'][1]:,}"
    if step["images"]:
        yield f"  image: {', '.join(step['images'])}"
    elif step["nightly"]:
        yield from (f"  {_nightly(one)}" for one in step["nightly"])
    else:
        yield "  no image of it is known: build it from source"
    if not step["images"] and answer["images"]:
        yield f"  images that lie in between: {', '.join(name for one in answer['images'] for name in one['images'][:1])}"
    if answer["nightly"]:
        yield f"  ({answer['nightly']})"
    yield "Ingest what it gives and run this again; or tell it: --result " + f"{step['commit'][:12]}=old, =new or =skip"


def _each(runs: int) -> str:
    return f", each {runs} times, because of the noise" if runs > 1 else ""


def _nightly(one: Answer) -> str:
    if one["gone"]:
        return f"its nightly image is gone (the newest {one['kept']} are kept): build it from source"
    return f"its nightly image, if one was made of it: {one['image']}"


def _suspects(answer: Answer) -> Iterator[str]:
    if not answer["suspects"] or answer["found"]:
        return
    yield "Or try a suspect by itself, the commit before it and the commit:"
    for suspect in answer["suspects"]:
        before = suspect["before"][:12] if suspect["before"] else "the older build"
        yield f"  {before} and {suspect['after'][:12]}  {suspect['title']} (rank {suspect['rank']})"

"""A benchmark's recipe log: its file, its dates, its git history, kinds of entries, and the one table that all of them make."""

import json
import random
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changelog import files
from changelog.benchmarks import benchmark, benchmark_of
from changelog.facts import UpstreamFact, UpstreamFault
from changelog.recipe_entries import LogEntry, PullRequest, pull_request, text_of
from changelog.recipe_files import BULK, MAX_ENTRY, date_facts, is_log, log_facts, pieces
from changelog.recipe_history import Version, facts, read_recipes
from changelog.recipe_images import images_named, is_named
from changelog.recipe_kinds import is_cause, judged, kind_of
from changelog.recipe_scope import confined_to
from changelog.tables import fold
from pipelines.ingest.intake import ingest
from pipelines.ingest.sides import Declared
from tests.frames import START
from warehouse.errors import InputError, UpstreamError
from warehouse.events import RecipeChanged, RunKey, Source, event_of
from warehouse.log import EventLog
from warehouse.schemas import RECIPES

NEW, OLD = "https://github.com/SemiAnalysisAI/InferenceX/pull", "https://github.com/InferenceMAX/InferenceMAX/pull"
LOG = f"""\
# entries of changes, the newest last
- config-keys:
    - dsr1-fp4-b200-sglang
    - dsr1-fp8-b200-sglang
  description:
    - "Update the image from v0.90.0 to v0.90.1"
    - 'Set --block-size 32'
  pr-link: {NEW}/7

- config-keys: ["gptoss*"]
  description:
    - Run it once more
  pr-link: {OLD}/8
  evals-only: true
  scenario-type:
    - fixed-seq-len
"""


def told(text: str) -> tuple[list[RecipeChanged], list[UpstreamFault]]:
    found = list(log_facts(text))
    payloads = [fact.payload for fact in found if isinstance(fact, UpstreamFact)]
    return [p for p in payloads if isinstance(p, RecipeChanged)], [f for f in found if isinstance(f, UpstreamFault)]


def test_an_entry_of_the_file_is_an_event_without_commits_and_dates() -> None:
    (first, second), faults = told(LOG)
    assert faults == []
    assert first.body() == {
        "config_keys": ["dsr1-fp4-b200-sglang", "dsr1-fp8-b200-sglang"],
        "description": ["Update the image from v0.90.0 to v0.90.1", "Set --block-size 32"],
        "pr_link": f"{NEW}/7",
        "append_only": False,
        "evals_only": False,
        "scenario_types": [],
    }
    assert (second.evals_only, second.scenario_types, second.config_keys) == (True, ("fixed-seq-len",), ("gptoss*",))


def test_an_event_from_before_keeps_its_subject_and_its_body() -> None:
    before = RecipeChanged(base_ref="b", head_ref="c", config_keys=("k",))
    assert before.subject == "recipe:c"
    assert before.body() == {"base_ref": "b", "head_ref": "c", "config_keys": ["k"], "description": []}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("- config-keys: [a]\n  description: [x, {y: z}]\n", "description: must be a list of texts"),
        ("- description: [x]\n", "config-keys: is missing or empty"),
        ("- config-keys: [a]\n  evals-only: perhaps\n", "evals-only: 'perhaps' is neither true nor false"),
        ("- config-keys: [a\n  pr-link: b\n", "not YAML"),
        ("- &a config-keys\n- *a\n", "alias"),
        ("- config-keys: [a]\n  config-keys: [b]\n", "a key stands twice"),
        ("- just words\n", "is not a mapping"),
        (f"- config-keys: [a]\n  description: ['{'x' * MAX_ENTRY}']\n", "an entry may have 200,000"),
        ("- " + "[" * 50 + "]" * 50 + "\n", "nested deeper"),
    ],
)
def test_an_entry_that_cannot_be_read_costs_no_other(entry: str, reason: str) -> None:
    entries, faults = told(LOG + "\n" + entry + LOG)
    assert len(entries) == 4
    assert any(reason in fault.reason for fault in faults)
    assert all(fault.position.startswith("entry ") and "(line " in fault.position for fault in faults)


def test_a_place_names_entry_and_line() -> None:
    assert [place for place, _piece in pieces(LOG)] == ["entry 1 (line 2)", "entry 2 (line 10)"]


def test_a_log_is_known_by_its_content() -> None:
    reader = files.recognise(LOG.encode())
    assert reader is not None and reader.name == "recipe-log"
    assert not is_log("rates:\n- gpu: h100\n") and not is_log("- name: a\n  description: b\n")
    dates = files.recognise(json.dumps([{"pr_link": "x", "commit": "c", "first_added_at": "t"}]).encode())
    assert dates is not None and dates.name == "recipe-dates"


def test_the_first_form_of_the_log_had_the_link_in_the_text() -> None:
    text = f"- config-keys:\n    - a\n  description: |\n    - One change: of\n      two lines\n    - Another\n    PR: {OLD}/95\n"
    ((entry,), faults) = told(text)
    assert faults == [] and entry.description == ("One change: of two lines", "Another") and entry.pr_link == f"{OLD}/95"


def test_one_pull_request_under_two_names() -> None:
    assert pull_request(f"{OLD}/95") == pull_request(f"{NEW}/95") == PullRequest("semianalysisai/inferencex", 95)
    assert pull_request(f"{NEW}/95/changes") == pull_request(f"{NEW}/95")
    assert pull_request(f"{NEW}/XXX") is None and pull_request("test") is None and pull_request(None) is None
    assert benchmark_of("Someone/Fork") == "someone/fork"


@pytest.mark.parametrize(("name", "known"), [("InferenceX", True), ("inferencemax.git", True), ("inferencex-results", False)])
def test_a_benchmark_is_known_by_its_whole_name(name: str, known: bool) -> None:
    assert (benchmark(name) is not None) is known


def dated(*rows: tuple[str, str, str]) -> list[RecipeChanged]:
    text = json.dumps([{"pr_link": link, "commit": commit * 40, "first_added_at": at} for link, commit, at in rows])
    found = [fact.payload for fact in date_facts(text) if isinstance(fact, UpstreamFact)]
    return [payload for payload in found if isinstance(payload, RecipeChanged)]


def test_a_commit_that_brought_many_dates_none() -> None:
    many = [(f"{NEW}/{n}", "a", "2025-12-17T23:11:02Z") for n in range(BULK)]
    few = [(f"{NEW}/{100 + n}", "b", "2025-12-18T00:00:00Z") for n in range(3)]
    assert [each.dated_by for each in dated(*many, *few)] == ["bulk"] * BULK + ["commit"] * 3
    assert dated((f"{NEW}/XXX", "a", "2026-01-01T00:00:00Z")) == []


def test_a_date_that_cannot_be_read_is_a_fault() -> None:
    text = json.dumps([{"pr_link": f"{NEW}/1", "commit": "a" * 40, "first_added_at": "yesterday"}, 7, {"pr_link": 1}])
    reasons = [fault.reason for fault in date_facts(text) if isinstance(fault, UpstreamFault)]
    assert len(reasons) == 3 and reasons[0].startswith("item 1: first_added_at") and "not a JSON object" in reasons[1]
    with pytest.raises(InputError, match="must be a list"):
        list(date_facts("{}"))


# The history.


def entry(number: int | str, text: str = "Set --flag 1", keys: str = "dsr1-fp4-b200-sglang", repository: str = NEW) -> str:
    return f'- config-keys:\n    - {keys}\n  description:\n    - "{text}"\n  pr-link: {repository}/{number}\n\n'


def added(*texts: str) -> list[tuple[str, str, str, str | None]]:
    """Return (commit, link's end, first line, dated by) of what successive texts brought."""
    versions = [
        Version(f"{n:040x}", (f"{n - 1:040x}",), f"2026-01-{n:02}T12:00:00+02:00", text) for n, text in enumerate(texts, 1)
    ]
    found = [fact.payload for fact in facts(versions) if isinstance(fact, UpstreamFact)]
    return [
        (str(p.head_ref)[-1], str(p.pr_link).rsplit("/", 1)[-1], p.description[0], p.dated_by)
        for p in found
        if isinstance(p, RecipeChanged)
    ]


def test_an_entry_is_of_the_commit_that_brought_it() -> None:
    assert added(entry(1), entry(1) + entry(2, "Set --flag 2")) == [
        ("1", "1", "Set --flag 1", "commit"),
        ("2", "2", "Set --flag 2", "commit"),
    ]


def test_what_was_moved_laid_out_anew_or_renamed_is_not_new() -> None:
    first = entry(1, repository=OLD) + entry(2, "B")
    again = entry(2, "B").replace("    - ", "  - ") + "# a comment\n" + entry(1).replace('"', "'")
    assert [row[:2] for row in added(first, again)] == [("1", "1"), ("1", "2")]


def test_an_edit_under_its_own_pull_request_is_not_new() -> None:
    assert added(entry(1), entry(1, "Set --flag 2"), entry(1, "Set --flag 2", keys="dsr1*")) == [
        ("1", "1", "Set --flag 1", "commit")
    ]


def test_a_number_that_came_later_is_the_entry_s_own() -> None:
    assert added(entry("XXX"), entry(12)) == [("1", "12", "Set --flag 1", "commit")]
    assert added(entry(11), entry(12)) == [("1", "12", "Set --flag 1", "commit")], "a wrong number was mended"


def test_an_entry_that_went_and_came_back_is_not_new_under_its_number_and_new_under_another() -> None:
    assert len(added(entry(1) + entry(2, "B"), entry(2, "B"), entry(1) + entry(2, "B"))) == 2
    assert added(entry(1), "", entry(9))[-1] == ("3", "9", "Set --flag 1", "commit")


def test_a_second_entry_of_one_pull_request_is_another_one() -> None:
    assert [row[0] for row in added(entry(1), entry(1) + entry(1, "And more"))] == ["1", "2"]


def test_many_at_once_are_not_dated() -> None:
    many = "".join(entry(n, f"Set --flag {n}") for n in range(1, BULK + 1))
    assert {row[3] for row in added(many)} == {"bulk"}
    assert added(many, many + entry(99, "C"))[-1] == ("2", "99", "C", "commit")


def test_what_a_clone_without_its_past_begins_with_is_not_dated() -> None:
    (fact,) = facts([Version("a" * 40, (), "2026-01-01T00:00:00Z", entry(1))])
    assert isinstance(fact, UpstreamFact) and isinstance(fact.payload, RecipeChanged)
    assert (fact.payload.base_ref, fact.payload.dated_by) == (None, "bulk")


def test_a_version_that_cannot_be_read_as_a_whole_costs_its_bad_entry_alone() -> None:
    bad = "- config-keys: [a\n  pr-link: b\n"
    assert [row[0] for row in added(entry(1), bad + entry(1) + entry(2, "B"), entry(1) + entry(2, "B"))] == ["1", "2"]
    found = list(facts([Version("a" * 40, ("b" * 40,), "2026-01-01T00:00:00Z", bad + entry(1))]))
    assert [type(each) for each in found] == [UpstreamFact, UpstreamFault]


@given(st.lists(st.permutations(range(4)), min_size=1, max_size=5))
def test_no_order_of_the_same_entries_is_new(orders: list[list[int]]) -> None:
    same = [entry(n, f"Set --flag {n}") for n in range(4)]
    assert {row[0] for row in added(*("".join(same[n] for n in order) for order in orders))} == {"1"}


class Clone:
    """A real git repository of a benchmark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, at: str = "2026-01-01T00:00:00Z") -> str:
        who = {f"GIT_{role}_{what}": "t" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        when = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "HOME": str(self.folder), "PATH": "/usr/bin:/bin:/usr/local/bin"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**who, **when},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, text: str | None, at: str, name: str = "perf-changelog.yaml") -> str:
        path = self.folder / name
        path.unlink() if text is None else path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x", at=at)
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    made = Clone(tmp_path_factory.mktemp("git") / "InferenceX")
    made.commit("a benchmark", "2025-12-30T00:00:00Z", "README")
    made.commit(entry(1), "2026-01-01T10:00:00+02:00")
    made.commit("more", "2026-01-02T00:00:00Z", "README")
    made.commit(entry(2, "B") + entry(1), "2026-01-03T00:00:00Z")
    return made


def history(clone: Clone) -> list[RecipeChanged]:
    known = benchmark("inferencex")
    assert known is not None
    found = [fact.payload for fact in read_recipes(str(clone.folder), known) if isinstance(fact, UpstreamFact)]
    return [payload for payload in found if isinstance(payload, RecipeChanged)]


def test_a_repository_tells_commit_parent_and_instant(clone: Clone) -> None:
    first, second = history(clone)
    commits = clone.git("log", "--format=%H", "--reverse").split()
    assert (first.base_ref, first.head_ref, first.added_at, first.dated_by) == (*commits[:2], "2026-01-01T08:00:00Z", "commit")
    assert (second.base_ref, second.head_ref, second.description) == (commits[2], commits[3], ("B",))


def test_what_a_commit_touched_is_told_beside_its_words(tmp_path: Path) -> None:
    """An image bump that edits a launch script is more than it says; one that names a fix and edits nothing else is an image."""
    made = Clone(tmp_path / "InferenceX")
    config = "a-b-c-d:\n  image: x/y:v{}\n  scenarios:\n  - {{ tp: 8, conc-start: 4, conc-end: {} }}\n"
    (made.folder / ".github" / "configs").mkdir(parents=True)
    (made.folder / "benchmarks").mkdir()
    master, script = ".github/configs/nvidia-master.yaml", "benchmarks/a.sh"
    (made.folder / script).write_text("serve --flag 1\n")
    made.commit(config.format(1, 64), "2025-12-30T00:00:00Z", master)
    log = ""
    for number, (version, conc, flag, line) in enumerate(
        [
            (2, 64, 1, "Update image to v2; brings a fix of the kernel"),
            (3, 128, 1, "Update image to v3.0"),
            (4, 128, 2, "Update image to v4.0"),
            (4, 128, 2, "Run it once more"),
        ],
        start=1,
    ):
        (made.folder / master).write_text(config.format(version, conc))
        (made.folder / script).write_text(f"serve --flag {flag}\n")
        log += entry(number, line)
        made.commit(log, f"2026-01-0{number}T00:00:00Z")
    found = history(made)
    assert [each.touched for each in found] == ["image", "image", "more", None]
    assert [judged(each.description, each.touched) for each in found] == [
        ("image", False),
        ("image", False),
        ("recipe", True),
        ("recipe", True),
    ]


def test_a_log_that_was_removed_and_put_back_tells_nothing_new(tmp_path: Path) -> None:
    made = Clone(tmp_path / "InferenceX")
    made.commit("x", "2025-12-30T00:00:00Z", "README")
    first = made.commit(entry(1), "2026-01-01T00:00:00Z")
    made.commit(None, "2026-01-02T00:00:00Z")
    made.commit(entry(1), "2026-01-03T00:00:00Z")
    assert [each.head_ref for each in history(made)] == [first]


def test_a_repository_without_a_log_is_refused(tmp_path: Path) -> None:
    made = Clone(tmp_path / "InferenceX")
    with pytest.raises(UpstreamError, match=r"has no perf-changelog.yaml; it is not the repository of InferenceX"):
        history(made)
    made.commit("x", "2025-12-30T00:00:00Z", "README")
    with pytest.raises(UpstreamError, match=r"has no perf-changelog.yaml"):
        history(made)


def test_a_clone_is_read_for_its_log(clone: Clone, log: EventLog, tmp_path: Path) -> None:
    def read() -> dict[str, int]:
        done = ingest(log, (str(clone.folder),), Declared(), recorded_at=START, mirrors=tmp_path, announce=lambda _name: None)
        assert done.failed == []
        return dict(done.new)

    assert read() == {"RecipeChanged": 2}
    assert read() == {}, "read again, it tells nothing new"


# The table.


def rows(*payloads: RecipeChanged) -> list[dict[str, object]]:
    events = [event_of(p, occurred_at=START, recorded_at=START, source=Source(name="t")) for p in payloads]
    raw = [{"recorded_at": e.recorded_at, "payload": e.payload} for e in events]
    return fold(pl.DataFrame(raw, schema={"recorded_at": pl.Datetime("us", "UTC"), "payload": pl.String()}), RECIPES).to_dicts()


RUN = RunKey(run_source="SemiAnalysisAI/InferenceX", run_id="7")


def of_run(number: int | None, *lines: str, keys: tuple[str, ...] = ("dsr1-fp4-b200-sglang",), **more: object) -> RecipeChanged:
    link = f"{OLD}/{number}" if number else None
    values = {"append_only": False, "evals_only": False, "scenario_types": (), **more}
    return RecipeChanged(run=RUN, base_ref="b", head_ref="c", config_keys=keys, description=lines, pr_link=link, **values)  # type: ignore[arg-type]


def of_log(number: int | str, *lines: str, keys: tuple[str, ...] = ("dsr1-fp4-b200-sglang",), **more: object) -> RecipeChanged:
    return LogEntry(keys, lines, f"{NEW}/{number}", False, False, ()).told(**more)


def seen(row: dict[str, object]) -> tuple[object, ...]:
    at = row["added_at"]
    return (row["run_id"], at.isoformat()[:10] if isinstance(at, datetime) else at, row["dated_by"])


def test_an_entry_told_by_its_run_and_by_the_log_is_one() -> None:
    (row,) = rows(
        of_run(7, "Set --a", "Set  --b", keys=("x", "Y")),
        of_log(7, "Set --b", "Set --a", keys=("y", "x ")),
        *dated((f"{OLD}/7", "a", "2026-01-05T00:00:00Z")),
    )
    assert seen(row) == ("7", "2026-01-05", "commit") and row["added_in"] == "a" * 40 and row["head_ref"] == "c"


def test_what_a_run_s_source_left_out_the_log_tells() -> None:
    part = of_run(None, "Set --a", append_only=None, evals_only=None, scenario_types=None)
    (row,) = rows(part, of_log(7, "Set --a"))
    assert (row["pr_link"], row["append_only"], row["scenario_types"]) == (f"{NEW}/7", False, [])


def test_an_entry_that_was_edited_since_its_run_is_one() -> None:
    assert len(rows(of_run(7, "Set --a"), of_log(7, "Set --a and --b"))) == 1
    assert len(rows(of_run(7, "Set --a"), of_log(8, "Set --a"))) == 2, "another pull request is another entry"
    both = (of_log(7, "Set --b"), of_log(7, "Set --c"))
    assert len(rows(of_run(7, "Set --a"), *both)) == 3, "which of two was edited cannot be told"


def test_two_runs_of_one_entry_are_two_rows_with_one_date() -> None:
    again = of_run(7, "Set --a").model_copy(update={"run": RUN.model_copy(update={"run_id": "8"})})
    told_by = rows(of_run(7, "Set --a"), again, *dated((f"{NEW}/7", "a", "2026-01-05T00:00:00Z")))
    assert [seen(row) for row in told_by] == [("7", "2026-01-05", "commit"), ("8", "2026-01-05", "commit")]


def test_the_entry_s_own_commit_counts_before_the_list_and_the_earliest_before_the_others() -> None:
    own = of_log(7, "Set --a", base_ref="p" * 40, head_ref="d" * 40, added_at="2026-01-06T00:00:00Z", dated_by="commit")
    (row,) = rows(own, *dated((f"{NEW}/7", "a", "2026-01-05T00:00:00Z")))
    assert seen(row) == (None, "2026-01-06", "commit") and row["added_in"] == "d" * 40
    bulk = own.model_copy(update={"dated_by": "bulk"})
    (row,) = rows(bulk, *dated((f"{NEW}/7", "a", "2026-01-05T00:00:00Z")))
    assert seen(row) == (None, "2026-01-05", "commit")
    (row,) = rows(bulk, *dated((f"{NEW}/7", "a", "2026-01-07T00:00:00Z")))
    assert seen(row) == (None, "2026-01-06", "bulk"), "it was there before the commit that the list names"


def test_a_date_alone_is_no_row() -> None:
    assert rows(*dated((f"{NEW}/7", "a", "2026-01-05T00:00:00Z"))) == []


SOURCES = {
    "file": [of_log(1, "Set --a"), of_log(2, "Update image to v0.90.1"), of_log(3, "Set --c", keys=("gptoss*",))],
    "dates": dated((f"{OLD}/1", "a", "2026-01-05T00:00:00Z"), (f"{NEW}/3", "b", "2026-01-04T00:00:00Z")),
    "git": [
        of_log("XXX", "Set --a", base_ref="e" * 40, head_ref="f" * 40, added_at="2026-01-02T00:00:00Z", dated_by="commit"),
        of_log(3, "Set --b", keys=("gptoss*",), head_ref="f" * 40, added_at="2026-01-03T00:00:00Z", dated_by="bulk"),
    ],
    "run": [
        of_run(2, "Update image to v0.90.1"),
        of_run(None, "Set --a", append_only=None, evals_only=None, scenario_types=None),
    ],
}


@given(st.randoms(use_true_random=False), st.sets(st.sampled_from(sorted(SOURCES)), min_size=1))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_table_is_the_same_in_whatever_order_the_sources_are_read(shuffled: random.Random, names: set[str]) -> None:
    ordered = [payload for name in sorted(names) for payload in SOURCES[name]]
    mixed = [*ordered]
    shuffled.shuffle(mixed)
    assert rows(*ordered) == rows(*mixed)


def test_all_sources_together_make_one_row_an_entry() -> None:
    found = {str(row["pr_link"]).rsplit("/", 1)[-1]: row for row in rows(*(p for told_by in SOURCES.values() for p in told_by))}
    assert sorted(found) == ["1", "2", "3"]
    assert seen(found["1"]) == ("7", "2026-01-02", "commit") and found["1"]["append_only"] is False
    assert seen(found["3"]) == (None, "2026-01-03", "bulk") and found["3"]["description"] == ["Set --c"]
    assert found["2"]["kind"] == "image" and seen(found["2"]) == ("7", None, None)


@given(st.permutations(["a b", "c", " a  b "]), st.permutations(["K", "k ", "x"]))
def test_what_an_entry_says_has_no_order(lines: list[str], keys: list[str]) -> None:
    assert text_of(keys, lines) == (("k", "x"), ("a b", "c"))


# Kinds and words.


@pytest.mark.parametrize(
    ("lines", "kind", "cause"),
    [
        (("Bump the image to May 26", "Add conc 128/256 new sweep point"), "image", False),
        (["Update vLLM image from v0.18.0 to v0.20.2"], "image", False),
        (["Update vLLM image to v0.20.2", "Add conc 512"], "image", False),
        (["Bump image to x/y:v0.20.2", "TP=4 shows +3.2% to +16.3% throughput improvement"], "image", False),
        (["Update vLLM image to v0.20.2", "Set --kv-cache-dtype fp8_e4m3"], "recipe", True),
        (["Extend concurrency to 128 for b200 configurations"], "search_space", False),
        (["Set conc-end=64 and --max-num-seqs 512"], "recipe", True),
        (["Add DeepSeek-R1 FP8 H100 benchmark", "Set --block-size 32"], "configuration", True),
        (["Add DeepSeek-R1 FP8 H100 SGLang configurations"], "configuration", False),
        (["Add VLLM_SOME_FLAG=1 to the B200 benchmark"], "recipe", True),
        (["Switch to the acme/Llama-9-FP4 checkpoint"], "checkpoint", True),
        (["Trigger evals after the timeout fix"], "measurement", True),
        (["Trigger evals", "Set --exclusive"], "recipe", True),
        (["Clean up"], "recipe", True),
        ([], "recipe", True),
        (["  ", "5% faster"], "recipe", True),
    ],
)
def test_kinds(lines: list[str], kind: str, cause: bool) -> None:
    assert (kind_of(lines), is_cause(lines)) == (kind, cause)


@pytest.mark.parametrize(
    ("line", "reference", "named"),
    [
        ("Update image from v0.90.0 to v0.91.0", "vllm/vllm-openai:v0.91.0", True),
        ("Update image from v0.90.0 to v0.91.0", "vllm/vllm-openai:v0.90.0", False),
        ("Update image from v0.90.0 to v0.91.0", "lmsysorg/sglang:v0.91.0-cu129", True),
        ("Update image from v0.9 to v0.9.1", "lmsysorg/sglang:v0.9.10", False),
        ("Bump image to 'nvcr.io#a/b:1.2.0rc2',", "nvcr.io/a/b:1.2.0rc2", True),
        ("Bump image to a/b:1.2.0rc2", "a/c:1.2.0rc2", False),
        ("Update Image to the latest v0.91.0.post1", "x/y:v0.91.0.post1-rocm700", True),
        ("Image: a/b:v1.2.0", "a/b:v1.2.0", False),
        ("Extend concurrency to 128", "a/b:128", False),
    ],
)
def test_the_image_that_an_entry_moves_to(line: str, reference: str, named: bool) -> None:
    assert is_named(reference, images_named([line])) is named


@pytest.mark.parametrize(
    ("line", "accelerators"),
    [
        ("Set FLAG_A=1 on H100  and H200", ("h100", "h200")),
        ("Set FLAG_A=1 in the mi300 script", ()),
        ("Set FLAG_A=1", ()),
        ("Set FLAG_A=1 for h100/b200, and h200", ()),
    ],
)
def test_accelerators_that_a_line_confines_itself_to(line: str, accelerators: tuple[str, ...]) -> None:
    keys = ("m-fp4-b200-vllm", "m-fp4-h100-vllm", "m-fp4-h200-vllm")
    assert confined_to(keys, ["Update image to v0.91.0", line]) == accelerators
    assert confined_to(("m-fp4-*-vllm", *keys), [line]) == ()


# Real data.


@pytest.fixture(scope="module")
def real() -> Iterator[Path]:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "inferencex"
    if not folder.is_dir():
        pytest.skip("real data (../shared/data) absent")
    yield folder


def test_the_published_log_and_its_dates(real: Path) -> None:
    entries, faults = told((real / "perf-changelog.yaml").read_text())
    dates = [f.payload for f in date_facts((real / "recipe_dates.json").read_text()) if isinstance(f, UpstreamFact)]
    assert (len(entries), faults, len(dates)) == (772, [], 868), "873 dates, of which five are of no pull request"
    table = rows(*entries, *(d for d in dates if isinstance(d, RecipeChanged)))
    first = next(row for row in table if row["pr_link"] == f"{NEW}/95")
    assert seen(first) == (None, "2025-12-17", "bulk")
    marlin = next(row for row in table if row["pr_link"] == f"{NEW}/327")
    assert marlin["added_at"] == datetime(2026, 1, 2, 22, 24, 6, tzinfo=UTC) and marlin["dated_by"] == "commit"


def test_an_entry_that_only_evaluates_is_of_measurement_whatever_it_says() -> None:
    (row,) = rows(of_run(1000, "Add multi-node accuracy runs", "Set --max-conc to the median", evals_only=True))
    assert row["kind"] == "measurement"

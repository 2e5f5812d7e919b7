"""The deployment in an llm-d benchmark report: its engines by role, their sizes and GPUs, as identity of a measurement.

Facts: llm-d-benchmark `analysis/benchmark_report` (schema_v0_1, schema_v0_2_components, native_to_br0_1, native_to_br0_2,
Apache-2.0). `accelerator.count` is of one pod, whatever the schema says; -1 and 0 stand for "not known"; a stack without prefill
replicas calls its engines `decode`. Where count and parallelism contradict each other the GPUs are asked for, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.ingest.tools.labels import accelerator
from pipelines.ingest.tools.llmd_fields import MAX_SIZE, listed, mapping, object_at, size, told
from pipelines.ingest.tools.llmd_kept import argument
from warehouse import image as images
from warehouse import vocabulary
from warehouse.errors import InputError

REPLICA, PREFILL, DECODE = "replica", "prefill", "decode"
_LLMD_ENGINE = re.compile(r"llm-d(-(cuda|rocm|xpu|hpu|cpu|aws|gke))?(-dev)?")
"""Last parts of llm-d's own engine images, which hold vLLM; `llm-d-inference-sim` and others are none."""
_ROUTER = re.compile(r"scheduler|router|endpoint.?picker")


@dataclass(frozen=True)
class Sizes:
    """Parallel sizes of one engine; None: not told."""

    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None


@dataclass(frozen=True)
class Engine:
    """The engines of one entry of a report: `replicas` alike ones of a role. `gpus` are of all of them; None: not told."""

    role: str
    replicas: int
    sizes: Sizes
    gpus: int | None
    accelerator: str | None
    name: str | None
    version: str | None
    image: str | None
    llmd: bool
    model: str | None = None
    recipe: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stack:
    """A deployment: its engines and its router."""

    engines: tuple[Engine, ...] = ()
    router: str | None = None

    @property
    def disaggregated(self) -> bool:
        return any(engine.role == PREFILL for engine in self.engines)

    def of_role(self, role: str) -> tuple[Engine, ...]:
        """Return the engines of a role."""
        return tuple(engine for engine in self.engines if engine.role == role)


def stack_v01(scenario: Mapping[str, Any]) -> Stack:
    """Return the deployment of a report of version 0.1: lists that go together, one entry a replica."""
    host, platform = mapping(scenario, "host", "scenario"), mapping(scenario, "platform", "scenario")
    accelerators, roles = listed(host, "accelerator", "scenario.host"), listed(host, "type", "scenario.host")
    engines = listed(platform, "engine", "scenario.platform")
    number = len(accelerators) or len(engines)
    for name, found in (("scenario.host.type", roles), ("scenario.platform.engine", engines)):
        if found and len(found) != number:
            raise InputError(f"{name}: {len(found)} entries, but there are {number} accelerators")
    return _checked(
        tuple(
            _engine_v01(index, *(row[index] if row else None for row in (accelerators, roles, engines)))
            for index in range(number)
        )
    )


def _engine_v01(index: int, host: Any, role: Any, engine: Any) -> Engine:
    where = f"scenario.host.accelerator.{index}"
    card, engine = object_at(host, where), object_at(engine, f"scenario.platform.engine.{index}")
    sizes, local = _sizes(card, where)
    name, version, image, llmd = software(engine.get("name"), engine.get("version"))
    return Engine(
        role=_role(role),
        replicas=1,
        sizes=sizes,
        gpus=_gpus(size(card, "count", where), 1, sizes, local),
        accelerator=_accelerator(card.get("model")),
        name=name,
        version=version,
        image=image,
        llmd=llmd,
        arguments=_arguments(engine.get("args")),
    )


def stack_v02(scenario: Mapping[str, Any]) -> Stack:
    """Return the deployment of a report of version 0.2: components, of which some are engines and one may be a router."""
    engines, routers = [], []
    for index, entry in enumerate(listed(scenario, "stack", "scenario")):
        where = f"scenario.stack.{index}"
        component = object_at(entry, where)
        standardized = mapping(component, "standardized", where)
        if standardized.get("kind") == "inference_engine":
            engines.append(_engine_v02(component, standardized, where))
        elif _ROUTER.search(str(standardized.get("tool")).lower()):
            parts = (told(standardized.get("tool")), told(standardized.get("tool_version")))
            routers.append(" ".join(part for part in parts if part))
    return _checked(tuple(engines), "+".join(sorted(set(routers))) or None)


def _engine_v02(component: Mapping[str, Any], standardized: Mapping[str, Any], where: str) -> Engine:
    below = f"{where}.standardized"
    card = mapping(standardized, "accelerator", below)
    replicas = size(standardized, "replicas", below) or 1
    sizes, local = _sizes(card, f"{below}.accelerator")
    count = size(card, "count", f"{below}.accelerator")
    name, version, image, llmd = software(standardized.get("tool"), standardized.get("tool_version"))
    return Engine(
        role=_role(standardized.get("role")),
        replicas=replicas,
        sizes=sizes if count else Sizes(),
        gpus=_gpus(count, replicas, sizes, local),
        accelerator=_accelerator(card.get("model")),
        name=name,
        version=version,
        image=image,
        llmd=llmd,
        model=told(mapping(standardized, "model", below).get("name")),
        recipe=told(mapping(component, "metadata", where).get("cfg_id")) if count else None,
        arguments=_arguments(mapping(component, "native", where).get("args")),
    )


def _checked(engines: tuple[Engine, ...], router: str | None = None) -> Stack:
    roles = {engine.role for engine in engines}
    if REPLICA in roles and len(roles) > 1:
        raise InputError(f"role: {', '.join(sorted(roles))} in one deployment; either all are replicas, or prefill and decode")
    if roles == {PREFILL}:
        raise InputError("role: engines that prefill, and none that decodes")
    return Stack(engines, router)


def software(tool: Any, version: Any) -> tuple[str | None, str | None, str | None, bool]:
    """Return engine, version, image, and whether llm-d is named, of a tool and its version; either may be an image reference."""
    stated = told(version)
    texts = [text for text in (stated, told(tool)) if text]
    image = next((text for text in texts if "/" in text and _reference(text)), None)
    plain = stated if stated and stated != image and re.match(r"v?\d", stated) else None
    parsed = _reference(image) if image else None
    last = parsed.repo.rsplit("/", 1)[-1] if parsed else ""
    own = bool(_LLMD_ENGINE.fullmatch(last))
    known = [name.value for name in (vocabulary.engine(text) for text in texts) if name.known]
    engine = next(iter(known), None) or (parsed.engine if parsed else None) or ("vllm" if own else None)
    return engine, plain, image, own or str(tool).strip().lower() == "llm-d"


def _reference(text: str | None) -> images.ImageReference | None:
    try:
        return images.parse(text) if text else None
    except InputError:
        return None


def _accelerator(value: Any) -> str | None:
    """Return the product name; a resource's name (`nvidia.com/gpu`) names no product."""
    text = told(value)
    return None if text is None or "/" in text.rsplit(":", 1)[-1] else text


def hardware_of(engines: Iterable[Engine]) -> str | None:
    """Return the accelerator of engines, `a+b` where they run on several; None where none is told."""
    labels = (engine.accelerator for engine in engines if engine.accelerator)
    return joined(accelerator(label.rsplit(":", 1)[-1])[1] for label in labels)


def joined(values: Iterable[str | None]) -> str | None:
    """Return the one value that all share, several as `a+b`, None where none is told."""
    return "+".join(sorted({value for value in values if value})) or None


def same(values: Iterable[Any]) -> Any:
    """Return the value that all share, or None."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else None


def total_gpus(engines: Iterable[Engine]) -> int | None:
    """Return the GPUs of engines together; None where those of one are not told."""
    counts = [engine.gpus for engine in engines]
    return sum(counts) if counts and None not in counts else None  # type: ignore[arg-type]


def identity(stack: Stack) -> dict[str, Any]:
    """Return the identity columns that follow from roles: sizes and workers of each, GPUs, router, how the cache moves."""
    found: dict[str, Any] = {"router": stack.router, "system": _system(stack)}
    if not stack.disaggregated:
        return found
    main = hardware_of(stack.of_role(DECODE))
    for role in (PREFILL, DECODE):
        engines = stack.of_role(role)
        sizes: Sizes = same(engine.sizes for engine in engines) or Sizes()
        label = hardware_of(engines)
        found |= {
            f"{role}_tp": sizes.tp,
            f"{role}_pp": sizes.pp,
            f"{role}_ep": sizes.ep,
            f"{role}_dp_attention": None if sizes.dp is None else sizes.dp > 1,
            f"{role}_num_workers": sum(engine.replicas for engine in engines),
            f"num_{role}_gpus": total_gpus(engines),
            f"{role}_hardware": vocabulary.hardware(label).value if label and label != main else None,
        }
    connectors = [engine.arguments.get("kv-transfer-config", {}) for engine in stack.engines]
    return found | {"kv_transfer": joined(told(part.get("kv_connector")) for part in connectors if isinstance(part, Mapping))}


def single_sizes(stack: Stack) -> Sizes:
    """Return the sizes of an aggregated deployment; those by role, and of engines that differ, are none."""
    if stack.disaggregated:
        return Sizes()
    sizes: Sizes | None = same(engine.sizes for engine in stack.engines)
    return sizes or Sizes()


def _system(stack: Stack) -> str | None:
    """Return in words what no size column tells: replicas and data-parallel ranks, or engines that differ within a role.

    One engine and four behind a router are two systems, and so are four ranks and one.
    """
    parts = []
    for role in (PREFILL, DECODE) if stack.disaggregated else (None,):
        engines = stack.of_role(role) if role else stack.engines
        words = [part for part in _size_words(engines, single=role is None) if part]
        parts += [f"{role}: {', '.join(words)}" if role else ", ".join(words)] if words else []
    return "; ".join(parts) or None


def _size_words(engines: tuple[Engine, ...], single: bool) -> list[str]:
    if len({engine.sizes for engine in engines}) > 1:
        return sorted(f"{engine.replicas} x {_words(engine.sizes)}" for engine in engines)
    replicas = sum(engine.replicas for engine in engines)
    dp = engines[0].sizes.dp if engines else None
    return [f"{replicas} replicas" if single and replicas > 1 else "", f"dp {dp}" if single and dp and dp > 1 else ""]


def _words(sizes: Sizes) -> str:
    return " ".join(f"{name}{value}" for name, value in vars(sizes).items() if value) or "unknown"


def _sizes(card: Mapping[str, Any], where: str) -> tuple[Sizes, tuple[int, int] | None]:
    """Return the sizes of an engine, and its local data-parallel ranks and workers; None where parallelism is not told."""
    given = mapping(card, "parallelism", where)
    below = f"{where}.parallelism"
    ranks = {name: size(given, name, below) for name in ("tp", "pp", "ep", "dp", "dp_local", "dpLocal", "workers")}
    if not ranks["tp"]:
        return Sizes(), None
    sizes = Sizes(ranks["tp"], ranks["pp"] or 1, ranks["ep"] if "ep" in given else None, ranks["dp"] or 1)
    return sizes, (ranks["dp_local"] or ranks["dpLocal"] or sizes.dp or 1, ranks["workers"] or 1)


def _gpus(count: int | None, replicas: int, sizes: Sizes, local: tuple[int, int] | None) -> int | None:
    """Return the GPUs of all replicas: *count* is of a pod, of a replica or of all, whichever its parallelism fits."""
    if not count:
        return None
    if local is None:
        return count if replicas == 1 else None
    ranks, (dp_local, workers) = (sizes.tp or 1) * (sizes.pp or 1), local
    dp = sizes.dp or 1
    if count == ranks * dp_local and workers * dp_local == dp:
        found = count * workers * replicas
    elif count == ranks * dp:
        found = count * replicas
    elif count == ranks * dp * replicas:
        found = count
    else:
        return None
    if found > MAX_SIZE:
        raise InputError(f"accelerator.count: {found} GPUs in one deployment; at most {MAX_SIZE} are believed")
    return found


def _role(value: Any) -> str:
    text = str(value or REPLICA).strip().lower()
    if text not in (REPLICA, PREFILL, DECODE, "aggregate"):
        raise InputError(f"role: {text[:60]!r} is none of replica, prefill and decode")
    return REPLICA if text == "aggregate" else text


def _arguments(value: Any) -> dict[str, Any]:
    return {argument(name): given for name, given in value.items()} if isinstance(value, Mapping) else {}

"""What a run notes about itself: the `settings` of its result, typed."""

from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetadata:
    """Facts about a run, each None until it is known; `to_dict` gives those that are.

    Nothing is decided by these facts: they are written for the result and its readers.

    Attributes:
        method: name of the method.
        samples: draws per side for the whole audit.
        confidence: with which the bound holds.
        seed: of all random streams.
        jobs: worker processes.
        jobs_asked: worker processes that were asked for, if fewer can help.
        engine: where they ran.
        options: settings of the method, as text.
        suppress: health checks that were switched off, sorted.
        silenced: those of them that would have remarked on the draws.
        constant: "leak" if the caller said that constant answers have no noise.
        constant_test: how constant answers were tested, if they had to be.
        max_seconds: the time limit.
        representation: how outputs were looked at, unless by their values.
        distance: neighbouring steps between the inputs, unless 1.
        recipe: how a function can be had again elsewhere.
        features: name, digest and place of the features of outputs.
        on_error: "outcome" if failed runs count as outcomes.
        statuses: exit statuses of a program that mean success, unless 0 alone.
        columns: columns of a recording that were looked at, unless all.
        params: parameters of the function that the caller fixed.
        answer: the part of a service's answers that was looked at, unless all.
        dataset_format: how datasets were written for a program, unless as JSON.
        failed: left and right runs that failed and counted as outcomes.
        retried: left and right requests that were sent again.
        redrawn: left and right draws that were lost and drawn again.
        recorded_to: the file that keeps the draws.
        recording: which rows of a recording chose and which proved.
        kind: "recorded" for two recorded samples instead of a mechanism.
        mechanism: name of the mechanism.
        seeded_mechanism: whether all its randomness comes from a seed.
        pairs: how many pairs of inputs there were.
        finder: settings of the finder.
        replay_of: the result that was replayed.
        note: a remark on how the outputs were read.
    """

    method: str | None = None
    samples: int | None = None
    confidence: float | None = None
    seed: int | None = None
    jobs: int | None = None
    jobs_asked: int | None = None
    engine: str | None = None
    options: str | None = None
    suppress: list[str] | None = None
    silenced: list[str] | None = None
    constant: str | None = None
    constant_test: str | None = None
    max_seconds: float | None = None
    representation: str | None = None
    distance: int | None = None
    recipe: dict[str, Any] | None = None
    features: dict[str, Any] | None = None
    on_error: str | None = None
    statuses: list[int] | None = None
    columns: list[str] | None = None
    params: dict[str, Any] | None = None
    answer: str | None = None
    dataset_format: str | None = None
    failed: list[int] | None = None
    retried: list[int] | None = None
    redrawn: list[int] | None = None
    recorded_to: str | None = None
    recording: dict[str, Any] | None = None
    kind: str | None = None
    mechanism: str | None = None
    seeded_mechanism: bool | None = None
    pairs: int | None = None
    finder: dict[str, Any] | None = None
    replay_of: dict[str, Any] | None = None
    note: str | None = None

    def with_facts(self, **facts: Any) -> "RunMetadata":
        """The same metadata with further facts; a misspelt name is a TypeError."""
        return replace(self, **facts)

    def to_dict(self) -> dict[str, Any]:
        """The facts that are known, as plain data for the result."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in known.items() if value is not None}

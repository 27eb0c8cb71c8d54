"""Each group of origin left out in turn: fitted on the others, judged on it. Pure.

The verdict: a candidate is taken if the mean over the sets, each left out of its fitting with all
sets of its origin, gains half a point of recall@5 and no set loses more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.bootstrap import Difference, paired, paired_sets
from benchmarks.generalization.candidates import Candidate
from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import QueryFigures, judge
from gateway.errors import ConfigError

MIN_GAIN = 0.005
"""Of the mean over the sets, in shares of recall@5."""
MAX_LOSS = 0.01
"""Of any one set."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """One candidate on one set."""

    name: str
    origin: str
    plain: QueryFigures
    """The product's ranking."""
    left_out: QueryFigures
    """Fitted without all sets of this origin."""
    in_sample: QueryFigures
    """Fitted on all sets, this one too."""
    difference: Difference
    """Recall@5 left out less that of the product."""
    parameters: object
    """What was fitted without this origin, as a JSON value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateResult:
    """One candidate on all sets, which have equal weights."""

    name: str
    sets: tuple[SetResult, ...]
    difference: Difference
    """Mean recall@5 left out less that of the product."""
    parameters: object
    """What was fitted on all sets, as a JSON value."""

    @property
    def worst(self) -> SetResult:
        """The set that loses most."""
        return min(self.sets, key=lambda each: each.difference.mean)

    @property
    def line(self) -> str:
        """The gain and the worst set in points, and the verdict."""
        worst = f"worst {self.worst.name} {100 * self.worst.difference.mean:+.2f}"
        verdict = "taken" if self.is_taken else "not taken"
        return f"{self.name}: {100 * self.difference.mean:+.2f}, {worst}, {verdict}"

    @property
    def is_taken(self) -> bool:
        """Whether it gains enough in the mean and loses too much nowhere."""
        loss = -self.worst.difference.mean
        return self.difference.mean >= MIN_GAIN - _ROUNDING and loss <= MAX_LOSS + _ROUNDING


def check_sets(sets: Sequence[Evidence]) -> None:
    """Check that groups can be left out.

    Raises:
        ConfigError: There are fewer than two groups, or two sets of one name.
    """
    if len({evidence.origin for evidence in sets}) < 2:
        raise ConfigError("sets of two groups of origin are needed: one is left out")
    if len({evidence.name for evidence in sets}) < len(sets):
        raise ConfigError("two sets have the same name")


def evaluate(
    sets: Sequence[Evidence], candidates: Iterable[Candidate], log: Callable[[str], None]
) -> list[CandidateResult]:
    """Judge each of *candidates* on each of *sets*, with its origin left out and in sample.

    Args:
        sets: As `check_sets` wants them.
        candidates: In the order of the results.
        log: Called with one line a candidate, as soon as it is judged.
    """
    plain = {evidence.name: judge(evidence, evidence.product) for evidence in sets}
    results = []
    for candidate in candidates:
        result = _evaluate(candidate, sets, [plain[evidence.name] for evidence in sets])
        log(result.line)
        results.append(result)
    return results


def _evaluate(
    candidate: Candidate, sets: Sequence[Evidence], plain: Sequence[QueryFigures]
) -> CandidateResult:
    everywhere = candidate.fit(sets)
    fitted = {
        origin: candidate.fit([evidence for evidence in sets if evidence.origin != origin])
        for origin in dict.fromkeys(evidence.origin for evidence in sets)
    }
    results = []
    for evidence, before in zip(sets, plain, strict=True):
        parameters = fitted[evidence.origin]
        left_out = judge(evidence, candidate.score(evidence, parameters))
        in_sample = left_out
        if parameters is not everywhere:
            in_sample = judge(evidence, candidate.score(evidence, everywhere))
        results.append(
            SetResult(
                name=evidence.name,
                origin=evidence.origin,
                plain=before,
                left_out=left_out,
                in_sample=in_sample,
                difference=paired(left_out.recalls, before.recalls),
                parameters=candidate.describe(parameters),
            )
        )
    return CandidateResult(
        name=candidate.name,
        sets=tuple(results),
        difference=paired_sets(
            [each.left_out.recalls for each in results], [each.plain.recalls for each in results]
        ),
        parameters=candidate.describe(everywhere),
    )

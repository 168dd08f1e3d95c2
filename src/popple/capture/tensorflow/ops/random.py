"""Ops that draw random numbers; shapes and seeds are not data."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known

# The machine draws uniform and normal numbers; other distributions get the nearest in
# cost.
_KINDS = {
    "RandomUniform": "uniform",
    "RandomStandardNormal": "normal",
    "TruncatedNormal": "normal",
    "ParameterizedTruncatedNormal": "normal",
    "RandomUniformInt": "random_integers",
    "RandomGamma": "normal",
    "RandomPoisson": "normal",
    "RandomPoissonV2": "normal",
    "StatefulUniform": "uniform",
    "StatefulStandardNormal": "normal",
    "StatefulStandardNormalV2": "normal",
    "StatefulTruncatedNormal": "normal",
    "StatefulUniformInt": "random_integers",
    "StatefulUniformFullInt": "random_integers",
    "StatelessRandomUniform": "uniform",
    "StatelessRandomUniformV2": "uniform",
    "StatelessRandomNormal": "normal",
    "StatelessRandomNormalV2": "normal",
    "StatelessTruncatedNormal": "normal",
    "StatelessTruncatedNormalV2": "normal",
    "StatelessRandomUniformInt": "random_integers",
    "StatelessRandomUniformIntV2": "random_integers",
    "StatelessRandomUniformFullInt": "random_integers",
    "StatelessRandomUniformFullIntV2": "random_integers",
    "StatelessRandomBinomial": "bernoulli",
    "StatefulRandomBinomial": "bernoulli",
    "Multinomial": "random_integers",
    "StatelessMultinomial": "random_integers",
}
_SEEDS = (
    "StatelessRandomGetKeyCounter",
    "StatelessRandomGetKeyCounterAlg",
    "StatelessRandomGetAlg",
    "RngReadAndSkip",
    "RngSkip",
    "NonDeterministicInts",
    "AnonymousRandomSeedGenerator",
)


def _draw(kind: str) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        return [context.emit_one(kind, [], context.result_type())]

    return lower


def lower_seed(context: OpContext) -> Sequence[Known]:
    """Seeds are set once; what follows from them is counted on the tiles."""
    return [
        None if kind is None else context.emit_one("fill", [], kind, suffix=".seed")
        for kind in context.found_types
    ]


def lower_shuffle(context: OpContext) -> Sequence[Known]:
    """Rows in a random order."""
    result = context.result_type()
    return [context.emit_one("roll", [context.name(0)], result)]


RULES: dict[str, Rule] = {
    **{name: _draw(kind) for name, kind in _KINDS.items()},
    **dict.fromkeys(_SEEDS, lower_seed),
    "RandomShuffle": lower_shuffle,
    "StatelessShuffle": lower_shuffle,
}

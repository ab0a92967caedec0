"""The registry: every pattern that is measured, and on which graphs.

A *workload* is a pattern (see `pattern.py`) with its *cases*: a graph, what its relations are, and where needed a
range filter that keeps the answer countable by every engine. The benchmark runs the cases; the tests run
`Workload.tiny` against a plain evaluator. A pair (pattern, graph) that is not here is in `LEFT_OUT` with the reason;
a rival that needs more than the time limit stays in the table as "> limit".

All patterns count bindings of all variables. On a graph listed with u < v an arc pattern sees each undirected shape
once, which is why the 4-cycle is written with two paths from its smallest to its largest corner instead of as a
directed cycle (of which u < v has none). Answers of tens of millions of rows are counted only: storing them would
measure memory, not joins.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench import graphs
from bench.pattern import Pattern


@dataclass(frozen=True)
class Case:
    """A workload on one dataset. `extra` is added to the pattern; `materialise`: the answer is stored, too."""

    graph: str
    extra: str = ""
    materialise: bool = False


@dataclass(frozen=True)
class Workload:
    """One pattern. `relation` names the one relation its atoms read; `cyclic` says whether the pattern has a cycle."""

    name: str
    text: str
    cases: tuple[Case, ...]
    relation: str = "e"
    cyclic: bool = True
    tiny: Case = field(default_factory=lambda: Case("tiny"))

    def pattern(self, case: Case) -> Pattern:
        """The pattern with the case's extra comparison."""
        return Pattern.parse(f"{self.text}, {case.extra}" if case.extra else self.text)

    def case(self, graph: str) -> Case:
        """The case on `graph`."""
        return next(c for c in (*self.cases, self.tiny) if c.graph == graph)

    def relations(self, case: Case) -> dict[str, graphs.Dataset]:
        """The datasets that the pattern reads, by relation."""
        return {self.relation: graphs.load(case.graph)}


WORKLOADS = (
    Workload(
        "triangle",
        "e(x,y), e(y,z), e(x,z)",
        (
            Case("ego-Facebook", materialise=True),
            Case("wiki-Vote", materialise=True),
            Case("email-Enron", materialise=True),
            Case("pl200k", materialise=True),
            Case("pl1m", materialise=True),
            Case("pl1m_skew", materialise=True),
        ),
    ),
    Workload(
        "4-clique",
        "e(a,b), e(a,c), e(a,d), e(b,c), e(b,d), e(c,d)",
        (
            Case("ego-Facebook"),
            Case("wiki-Vote", materialise=True),
            Case("email-Enron", materialise=True),
            Case("pl200k"),
            Case("pl1m"),
        ),
    ),
    Workload(
        "4-cycle",
        "e(a,b), e(b,c), e(a,d), e(d,c), b < d",
        (
            Case("ego-Facebook"),
            Case("wiki-Vote", materialise=True),
            Case("email-Enron", materialise=True),
            Case("pl200k", materialise=True),
            Case("pl1m", materialise=True),
        ),
    ),
    Workload(
        "bowtie",
        "e(x,a), e(a,b), e(x,b), e(x,c), e(c,d), e(x,d), a < c",
        (
            Case("ego-Facebook", "x < 50"),
            Case("email-Enron", "x < 50"),
            Case("pl200k", materialise=True),
            Case("pl1m"),
        ),
    ),
    Workload(
        "star",
        "e(x,a), e(x,b), e(x,c), a < b, b < c",
        (
            Case("ego-Facebook", "x < 50"),
            Case("email-Enron", "x < 50"),
            Case("pl200k", "x < 5000"),
            Case("pl1m", "x < 5000"),
        ),
        cyclic=False,
    ),
    Workload(
        "filtered path",
        "e(a,b), e(b,c), e(c,d)",
        (
            Case("ego-Facebook", "a < 1000, d < 1000", materialise=True),
            Case("wiki-Vote", "a < 1000, d < 1000", materialise=True),
            Case("email-Enron", "a < 1000, d < 1000"),
            Case("pl200k", "a < 5000, d < 5000"),
            Case("pl1m", "a < 10000, d < 10000"),
            Case("pl1m_skew", "a < 2000, d < 2000"),
        ),
        cyclic=False,
        tiny=Case("tiny", "a < 12, d < 12"),
    ),
    Workload(
        "labelled triangle",
        "t(x,p,y), t(y,p,z), t(x,p,z)",
        (Case("wiki-labelled", materialise=True), Case("pl200k-labelled", materialise=True)),
        relation="t",
        tiny=Case("tiny-labelled"),
    ),
    Workload(
        "Loomis-Whitney",
        "t(x,y,z), t(y,z,w), t(x,z,w), t(x,y,w)",
        (Case("ternary200k", materialise=True),),
        relation="t",
        tiny=Case("tiny-ternary"),
    ),
)

LEFT_OUT = {
    (
        "4-clique",
        "pl1m_skew",
    ): "pairwise plans enumerate its 481M wedges several times over: minutes each, for 18.9M rows",
    ("4-cycle", "pl1m_skew"): "172M rows out of 481M wedges: measures enumeration, not the join",
    (
        "bowtie",
        "wiki-Vote",
    ): "1.6 billion rows, 122M of them under the first 50 vertices: no range of vertices gives a small answer",
    ("bowtie", "pl1m_skew"): "17 billion rows",
    ("star", "wiki-Vote"): "793M rows, 84M of them under the first 50 vertices",
    ("star", "pl1m_skew"): "564 billion rows",
}


def by_name(name: str) -> Workload:
    """The workload called `name`."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise KeyError(f"no workload {name!r}; there are: {', '.join(w.name for w in WORKLOADS)}")

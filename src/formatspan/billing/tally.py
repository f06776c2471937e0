"""Counts what a study would ask, without asking: requests, tokens and what a run has already.

A request that several points share is counted once, copies of deterministic replies not at all.
No id is hashed: points that a run's store holds are looked up by their place in the grid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from formatspan.billing.tokens import TokenCount
from formatspan.contracts import constraint
from formatspan.grid import Budgets, OpenModel, TaskGrid
from formatspan.records import Constraint, Mode, Prompt
from formatspan.store import Store
from formatspan.study import Budget, Study
from formatspan.tasks.task import TaskData, space_of

Place = tuple[str, str, str, str, str, int]
"""Model, task, example id, wrapper, mode and seed of a point."""


class Typical(NamedTuple):
    """What is known of a data set that is not at hand; lengths in characters, shell included."""

    rows: int
    mean: float
    """Mean prompt over rows and wrappers."""
    mean_longest: float
    """Mean over rows of the longest wrapper's prompt."""
    longest: int


TYPICAL: Mapping[str, Typical] = {
    "arc_challenge": Typical(1172, 426, 499, 1156),
    "boolq": Typical(3270, 749, 826, 3578),
    "commonsense_qa": Typical(1221, 306, 378, 588),
    "gsm8k": Typical(1319, 365, 429, 806),
    "hellaswag": Typical(10042, 594, 667, 1747),
    "piqa": Typical(1838, 389, 466, 2371),
    "winogrande": Typical(1267, 283, 359, 437),
}
"""Measured on 1,000 rows of each under the five families."""


@dataclass
class Tally:
    """What one model would be asked."""

    points: int = 0
    copies: int = 0
    shared: int = 0
    """Points whose request another point asks already."""
    requests: int = 0
    answered: int = 0
    """Requests among them whose reply the run has."""
    pending: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Requests still to be asked, by wrapper."""
    prompt_tokens: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Of the requests still to be asked, by wrapper."""


@dataclass
class Count:
    """Goes through the grid of a study, task by task.

    Args:
        study: What is planned.
        models: Its models.
        counters: Token counter of each model, by label.
        answered: Places whose reply the run has.
    """

    study: Study
    models: Sequence[OpenModel]
    counters: Mapping[str, TokenCount]
    answered: frozenset[Place] = frozenset()
    tallies: dict[str, Tally] = field(default_factory=dict)
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tallies = {m.entry.name: Tally() for m in self.models}
        self._identity = {m.entry.name: hash(self._addressed(m)) for m in self.models}

    def _addressed(self, model: OpenModel) -> tuple[object, ...]:
        """Everything but prompt, seed and constraint that decides a reply."""
        entry, study = model.entry, self.study
        return (entry.model, model.endpoint, study.system(entry), study.sampling(entry))

    def add(self, data: TaskData, budgets: Budgets) -> int:
        """Count a task whose rows are at hand; returns its examples.

        Raises:
            StudyError: A prompt does not fit a budget in force.
        """
        grid = TaskGrid(self.study, data, self.models, budgets)
        for example, wrapper, prompts in grid.prompts():
            contract = wrapper.contract.asking(data.task.answers)
            space = space_of(data.task, example)
            held = {
                mode: constraint(contract, space) if mode == "constrained" else None
                for mode in self.study.decoding
            }
            marks = {name: hash(prompt.messages) for name, prompt in prompts.items()}
            for model in self.models:
                prompt = prompts[model.tokenizer_name]
                self._add_prompt(model, prompt, marks[model.tokenizer_name], held)
        return len(grid.examples)

    def _add_prompt(
        self, model: OpenModel, prompt: Prompt, mark: int, held: Mapping[Mode, Constraint | None]
    ) -> None:
        label = model.entry.name
        tally, identity = self.tallies[label], self._identity[label]
        draws = self._draws(model)
        new = 0
        for mode, limit in held.items():
            tally.points += self.study.seeds
            tally.copies += self.study.seeds - draws
            for seed in range(draws):
                key = (identity, mark, limit, seed)
                if key in self._seen:
                    tally.shared += 1
                    continue
                self._seen.add(key)
                tally.requests += 1
                place = (label, prompt.task, prompt.example_id, prompt.wrapper, mode, seed)
                if place in self.answered:
                    tally.answered += 1
                else:
                    new += 1
        if new:
            tokens = self.counters[label].of_prompt(prompt, self.study.system(model.entry))
            tally.pending[prompt.wrapper] += new
            tally.prompt_tokens[prompt.wrapper] += new * tokens

    def add_typical(self, task: str, known: Typical) -> int:
        """Count a task whose rows are not at hand; returns its examples."""
        study = self.study
        examples = min(study.examples, known.rows)
        text, pad = known.mean, _padding(study, known)
        for model in self.models:
            tally, draws = self.tallies[model.entry.name], self._draws(model)
            system = sum(len(m.content) for m in study.system(model.entry))
            tokens = self.counters[model.entry.name].of_chars(text + system, pad)
            done = self._answered_of(model.entry.name, task)
            for wrapper in study.wrappers:
                asked = examples * len(study.decoding) * draws
                tally.points += examples * len(study.decoding) * study.seeds
                tally.copies += examples * len(study.decoding) * (study.seeds - draws)
                tally.requests += asked
                have = min(asked, done[wrapper.name])
                tally.answered += have
                tally.pending[wrapper.name] += asked - have
                tally.prompt_tokens[wrapper.name] += (asked - have) * tokens
        return examples

    def _answered_of(self, model: str, task: str) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for place in self.answered:
            if place[:2] == (model, task):
                found[place[3]] += 1
        return found

    def _draws(self, model: OpenModel) -> int:
        """Seeds that are asked: copies are not."""
        return 1 if model.copies and self.study.temperature == 0 else self.study.seeds


def _padding(study: Study, known: Typical) -> float:
    """Mean padding of a prompt, as far as it can be told without the rows."""
    budget = study.budget
    if isinstance(budget, Budget):
        target = float(budget.chars or known.mean_longest)
    else:
        target = {"none": 0.0, "example": known.mean_longest, "task": float(known.longest)}[budget]
    return max(0.0, target - known.mean)


def answered_places(store: Store) -> frozenset[Place]:
    """Places of a run's grid whose reply is there; copies are left out."""
    return frozenset(_places(store))


def _places(store: Store) -> Iterator[Place]:
    rows = store.connection.execute(
        "SELECT p.model, p.task, p.example_id, p.wrapper, p.mode, p.seed FROM points p "
        "JOIN generations g USING (request) WHERE p.copy_of IS NULL"
    )
    yield from (tuple(row) for row in rows)

"""The tour: each stop asks a question of a graph as a rule, evaluates it, and shows what came out and how long it took.

Everything printed fits 80 columns. Nothing is computed beforehand: the figures are those of this run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files

import numpy as np

import lftj
from lftj.demo.window import DAYS, TimedCommit, Window
from lftj.progress import wants_colour

FRIENDS = """
.decl friend(a:number, b:number)
triangle(x, y, z) :- friend(x, y), friend(y, z), friend(x, z).
knows(x, y) :- friend(x, y).
knows(x, y) :- friend(y, x).
pair(x, z) :- knows(x, y), knows(y, z), x < z.
"""
CLIQUE = """\
friend(x, y), friend(x, z), friend(x, w),
friend(y, z), friend(y, w), friend(z, w)"""
PATHS = "knows(x, y), knows(y, z), x < z"
MESSAGE = """
.decl message(sender:number, receiver:number, time:number)
"""
MESSAGES = f"""{MESSAGE}\
passed(a, b, c, t, u) :- message(a, b, t), message(b, c, u),
                         t < u, u < t + 3600, a != c.
wrote(x, y) :- message(x, y, _), x < y.
wrote(x, y) :- message(y, x, _), x < y.
circle(x, y, z) :- wrote(x, y), wrote(y, z), wrote(x, z).
"""
ACTIVITY = """\
sent[x] = count : { message(x, _, _) }.
busiest(x, n) :- sent[x] = n, n = max m : { sent(_, m) }.
reader(y) :- message(_, y, _), !message(y, _, _).
"""
# The message at which the stream begins: the window is full from then on. Messages, and commits by evaluation.
BEGIN, ARRIVING, QUICK, BY_EVALUATION = 30_000, 4_000, 200, 100
NEXT = """\
In Python, with your own data:

  import lftj
  db = lftj.Database('''
    .decl edge(src:number, dst:number)
    tri(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).
  ''')
  db.load("edge", "edges.csv")    # or .parquet, a DataFrame, Arrow, numpy ...
  print(db["tri"])
  print(db.query("tri(1, y, z), y < z").count())

From the shell, with Souffle's flags and files:

  lftj check tri.dl                    every mistake of a program at once
  lftj explain tri.dl -F facts         how it would be evaluated
  lftj run tri.dl -F facts -D out      facts/edge.facts in, out/tri.csv out

With `--updates FILE` it follows changes (`+edge 1 2`, `-edge 3 4`, a blank
line commits) and prints what each commit changed. `lftj functors` lists the
operators and functors; docs/ shows aggregates, negation and scans."""


class Tour:
    """One walk through the demonstration, printed as it goes."""

    def __init__(self) -> None:
        bold = ("\x1b[1m", "\x1b[0m") if wants_colour(sys.stdout) else ("", "")
        self._bold, self._plain = bold
        self._stop = 0

    def walk(self, *, quick: bool) -> None:
        """All stops; `quick` leaves out the slow ones."""
        start = time.perf_counter()
        self._title(f"lftj {lftj.__version__}: Datalog over two real graphs, evaluated by leapfrog triejoin")
        friends = lftj.Database(FRIENDS)
        with self._timed("kernels ready"):
            friends.prepare()
        self._friends(friends, quick)
        messages = lftj.Database(MESSAGES)
        self._messages(messages)
        arriving = ARRIVING if not quick else QUICK
        self._circles(messages, arriving)
        self._activity(messages, arriving)
        self._title('How the first rule was evaluated: db.explain("triangle")')
        self._say(str(friends.explain("triangle")), "  ")
        self._title("What to try next")
        self._say(NEXT, "  ")
        self._say(f"\nAll of this took {time.perf_counter() - start:.1f} s.")

    def _friends(self, db: lftj.Database, quick: bool) -> None:
        self._data(
            db,
            "friend",
            "ego-Facebook.tsv.zst",
            "ego-Facebook: 4,039 people and who is a friend of whom",
            "SNAP; McAuley and Leskovec, NIPS 2012",
        )
        self._question("Triangles: three people who all know each other", self._rules(FRIENDS, "triangle"))
        with self._timed("rows", lambda: len(db["triangle"])):
            db.evaluate("triangle")
        if quick:
            return
        self._question("4-cliques, by a query: they are counted, not kept", CLIQUE)
        query = db.query(CLIQUE)
        answer = 0
        with self._timed("answers", lambda: answer):
            answer = query.count()
        self._question(
            "Pairs with a common friend: paths of two steps, filtered, each pair once",
            self._rules(FRIENDS, "knows", "pair"),
        )
        with self._timed("rows", lambda: len(db["pair"])):
            db.evaluate("pair")
        paths = 0
        with self._timed("paths they come from, counted by a query,", lambda: paths):
            paths = db.query(PATHS).count()

    def _messages(self, db: lftj.Database) -> None:
        self._data(
            db,
            "message",
            "CollegeMsg.tsv.zst",
            "CollegeMsg: 1,899 students, who wrote whom and when (in seconds)",
            "SNAP; Panzarasa, Opsahl and Carley, JASIST 60(5), 2009",
        )
        self._question("b hears from a, and writes to c within the hour", self._rules(MESSAGES, "passed"))
        with self._timed("rows", lambda: len(db["passed"])):
            db.evaluate("passed")
        self._say("\n".join(repr(db["passed"]).splitlines()[1:5]), "  ")
        self._question(
            "Circles: three students, each two in touch, whoever wrote to whom",
            self._rules(MESSAGES, "wrote", "circle"),
        )
        with self._timed("rows", lambda: len(db["circle"])):
            db.evaluate("circle")

    def _circles(self, db: lftj.Database, arriving: int) -> None:
        rules = self._rules(MESSAGES, "wrote", "circle")
        self._question(f"The circles of the last {DAYS} days, live: every message is a commit", rules)
        window, commits = self._live(db, rules, ("wrote", "circle"), arriving)
        came, gone = sum(len(c.came) for c in commits), sum(len(c.gone) for c in commits)
        kept = len(window.db["circle"])
        self._say(
            f"     {sum(c.left for c in commits):,} left; {came:,} circles came, {gone:,} went, {kept:,} are there"
        )
        self._compare(window, rules, ("wrote", "circle"), commits)
        self._say("\n     the last ones that changed circles")
        for commit in [c for c in commits if c.came or c.gone][-4:]:
            self._say(f"       {commit}")

    def _activity(self, db: lftj.Database, arriving: int) -> None:
        heads = ("sent", "busiest", "reader")
        self._question("In the same window: messages per student, and who only reads", ACTIVITY)
        window, commits = self._live(db, ACTIVITY, heads, arriving)
        came, gone = sum(len(c.came) for c in commits), sum(len(c.gone) for c in commits)
        (student, count), *_ = window.db["busiest"]
        sent, readers = len(window.db["sent"]), len(window.db["reader"])
        who = f"{sent:,} wrote, student {student} most ({count:,}); {readers:,} only read"
        self._say(f"     {who}: {came:,} came, {gone:,} went")
        self._compare(window, ACTIVITY, heads, commits)

    def _live(
        self, db: lftj.Database, rules: str, heads: tuple[str, ...], arriving: int
    ) -> tuple[Window, list[TimedCommit]]:
        """The messages of the stream arrive in a window over which `rules` derive `heads`."""
        with self._timed("messages in the window, rules evaluated and traced", lambda: len(window.db["message"])):
            window = Window(f"{MESSAGE}{rules}", db["message"].numpy(), BEGIN, heads, maintain="trace")
            window.arrive()  # the first commit records the traces
        with self._timed("more arrive, and old ones leave, in as many commits,", lambda: arriving):
            commits = list(window.stream(arriving))
        return window, commits

    def _compare(self, window: Window, rules: str, heads: tuple[str, ...], commits: list[TimedCommit]) -> None:
        """What these commits took, beside those of a database that evaluates the rules again; both say the same."""
        again = Window(f"{MESSAGE}{rules}", window.messages, window.next, heads, maintain="recompute")
        assert all(again.db[head] == window.db[head] for head in heads)
        again.arrive()
        compared = [again.arrive() for _ in range(BY_EVALUATION)]
        self._say("\n     a commit, in milliseconds     median       p99")
        for how, taken in (("maintaining them", commits), ("evaluating the rules again", compared)):
            median, high = np.percentile([c.seconds * 1e3 for c in taken], (50, 99))
            self._say(f"       {how:26}  {self._bold}{median:8.2f}{self._plain}  {high:8.2f}")

    # -- what stops are made of ---------------------------------------------------------------------------------------

    def _data(self, db: lftj.Database, relation: str, file: str, what: str, source: str) -> None:
        self._title(what)
        self._say(f"  {source}")
        shipped = files("lftj.demo").joinpath("data", file)
        with as_file(shipped) as path, self._timed("rows loaded", lambda: len(db[relation])):
            db.load(relation, path)

    def _question(self, what: str, rules: str) -> None:
        self._stop += 1
        self._title(f"{self._stop}. {what}", "  ")
        self._say(rules, "     ")

    @staticmethod
    def _rules(program: str, *heads: str) -> str:
        """The lines of `program` with the rules of `heads`."""
        kept, lines = False, []
        for line in program.splitlines():
            if not line.startswith(" "):
                kept = line.startswith(tuple(f"{head}(" for head in heads))
            if kept:
                lines.append(line)
        return "\n".join(lines)

    @contextmanager
    def _timed(self, what: str, count: Callable[[], int] | None = None) -> Iterator[None]:
        """Run the block; then a line with `count()`, what it counts, and the seconds the block took."""
        sys.stdout.flush()
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        number = f"{count():,} " if count is not None else ""
        self._say(f"  -> {self._bold}{number}{self._plain}{what} in {seconds:.2f} s")

    def _title(self, text: str, indent: str = "") -> None:
        self._say(f"\n{indent}{self._bold}{text}{self._plain}")

    @staticmethod
    def _say(text: str, indent: str = "") -> None:
        for line in text.splitlines():
            print(f"{indent}{line}".rstrip())

"""Shortest ways under road closures: how long from the nearest fire station to every crossing of a town.

Crossings are the squares of a grid, numbered by row and column; a river with three bridges runs through it. Closures
come and go, and a commit reports only the crossings whose time differs. Prints:

       0   1   4   6   7  10  12  13
       1   2   5   6   7  10  12  13
       1   0   3   5   6   9  11  12
       |~~~~~~~~   |~~~~~~~~~~~~   |
       2   3   6   6   7  10  12  13
       3   4   7   7   8  11  13  14

    19 to 27 is closed: 10 times differ, 1 more late, 0 fewer, 0 cut off
       .   .   .   .   .   .   .   .
       .   .   .   .   .   .   .   .
       .   .   .   .   .   .   .   .
       |~~~~~~~~   |~~~~~~~~~~~~   |
       .   .   .   8   9  12  14  15
       .   .   .   9  10  13  15  16

    so are the other bridges: 16 times differ, 0 more late, 7 fewer, 16 cut off
       .   .   .   .   .   .   .   .
       .   .   .   .   .   .   .   .
       .   .   .   .   .   .   .   .
       |~~~~~~~~   |~~~~~~~~~~~~   |
       -   -   -   -   -   -   -   -
       -   -   -   -   -   -   -   -

    23 to 31 opens again: 16 times differ, 16 more late, 0 fewer, 0 cut off
       .   .   .   .   .   .   .   .
       .   .   .   .   .   .   .   .
       .   .   .   .   .   .   .   .
       |~~~~~~~~   |~~~~~~~~~~~~   |
      28  27  24  22  21  18  16  15
      29  28  25  23  22  19  17  18
"""

import lftj

RULES = """
    .decl road(a:number, b:number) -> minutes:number      // both directions
    .decl closed(a:number, b:number)                      // each once, for both directions
    .decl station(a:number)

    open[a, b] = m :- road(a, b, m), !closed(a, b), !closed(b, a).

    // The least of what is derived from it: 0 at a station, else by a neighbour.
    .decl time(a:number) -> minutes:number
    time[b] = min t : { station(b), t = 0 ; time[a] = s, open(a, b, m), t = s + m }.

    crossing(a)  :- road(a, _, _).
    cut_off(a)   :- crossing(a), !time(a, _).
    late(a)      :- time[a] > 9.
"""
ROWS, COLUMNS, RIVER, BRIDGES = 5, 8, 3, (0, 3, 7)
STATIONS = [(0,), (17,)]


def roads():
    """The roads of the town: squares differ in their minutes, and only bridges lead into the row `RIVER`."""
    for row in range(ROWS):
        for column in range(COLUMNS):
            here, minutes = row * COLUMNS + column, 1 + 2 * column % 3
            if column + 1 < COLUMNS:
                yield from ((here, here + 1, minutes), (here + 1, here, minutes))
            if row + 1 < ROWS and (row + 1 != RIVER or column in BRIDGES):
                yield from ((here, here + COLUMNS, minutes), (here + COLUMNS, here, minutes))


def show(minutes):
    """Print a plan of the town with the minutes to some of its crossings."""
    for row in range(ROWS):
        if row == RIVER:
            print("".join("   |" if column in BRIDGES else "~~~~" for column in range(COLUMNS)))
        print("".join(f"{minutes.get(row * COLUMNS + column, '.'):>4}" for column in range(COLUMNS)))


def follow(what, *, close=(), reopen=()):
    """Close and reopen roads, and print what that changes: the crossings with another time, and those without one."""
    with db.transaction() as tx:
        tx.erase("closed", list(reopen))
        tx.insert("closed", list(close))
    changed = dict.fromkeys((a for a, _ in tx.delta["time"].erased), "-") | dict(tx.delta["time"].inserted)
    came, went = len(tx.delta["late"].inserted), len(tx.delta["late"].erased)
    print(f"\n{what}: {len(changed)} times differ, {came} more late, {went} fewer, {len(db['cut_off'])} cut off")
    show(changed)


db = lftj.Database(RULES)
db.load("road", list(roads()))
db.load("station", STATIONS)
show(dict(db["time"]))
follow("19 to 27 is closed", close=[(19, 27)])
follow("so are the other bridges", close=[(16, 24), (23, 31)])
follow("23 to 31 opens again", reopen=[(23, 31)])

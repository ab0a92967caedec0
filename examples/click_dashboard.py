"""A dashboard over a stream of clicks: pages by minute, the pages in front, visitors, and sessions.

The clicks come as batches of an Arrow stream, some of them late. Each step gives what changes on the dashboard, which
is all that a screen has to be sent. Prints:

    step 1
      +1 front(0, 'home', 3, 3, 1)
      +1 front(0, 'shop', 1, 1, 2)
      +1 visitors(3,)
    step 2
      -1 front(0, 'shop', 1, 1, 2)
      +1 front(0, 'shop', 3, 2, 2)
      +1 front(60, 'home', 1, 1, 1)
      +1 front(60, 'pay', 1, 1, 2)
      +1 long(1, 3)
      +1 long(2, 3)
    step 3
      -1 front(60, 'home', 1, 1, 1)
      +1 front(60, 'home', 2, 2, 1)
      +1 front(120, 'help', 1, 1, 1)
      -1 visitors(3,)
      +1 visitors(4,)
    late: {'click.at': 1}
"""

import pyarrow as pa

from lftj import streams

circuit = streams.Circuit("dashboard")
click = circuit.input("click", user=int, page=str, at=int)
visit = click.watermark("at", lateness=30)
minutes = visit.tumbling("at", 60, start="minute", end="until").group_by("minute", "page")
pages = minutes.aggregate(clicks=streams.count(), visitors=streams.count_distinct("user"))
circuit.output("front", pages.group_by("minute").top(2, ["-clicks", "page"], number="place"))
circuit.output("visitors", visit.group_by().aggregate(users=streams.count_distinct("user")))
sessions = visit.group_by("user").sessions("at", gap=45)
lengths = sessions.group_by("user", "session_start", "session_end").aggregate(clicks=streams.count())
circuit.output("long", lengths.filter("clicks >= 3").select("user", "clicks"))

CLICKS = pa.table(
    {
        "user": [1, 2, 1, 3, 2, 1, 3, 2, 4, 1, 1],
        "page": ["home", "home", "shop", "home", "shop", "pay", "home", "shop", "home", "help", "home"],
        "at": [3, 10, 20, 41, 58, 62, 65, 50, 100, 130, 20],
    }
)

dashboard = circuit.incremental()
for step, deltas in enumerate(dashboard.run({"click": CLICKS}, rows=4), 1):
    print(f"step {step}")
    for name, delta in deltas.items():
        for row, weight in delta:
            print(f"  {weight:+d} {name}{row}")
print(f"late: {dashboard.late}")

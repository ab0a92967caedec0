"""A database in a file: one SQLite file, through the standard library's `sqlite3`.

What is committed is written before it is published, so nothing that returned is ever lost; what was derived comes back
evaluated. The file holds

    log            every transaction, load and change of rules, numbered (`seq`), with the net changes of facts
    checkpoints    the pages of all relations at some `seq`; pages that did not change are not written again
    symbols        texts, in the order of their codes
    deltas         the changes of derived relations, where history is kept

    container.py        the SQLite file: its tables, and what is refused
    log_writing.py      entries of the log and the texts that they name, in transactions of SQLite
    writer_lock.py      the lock of its one writer
    write_ahead_log.py  what a crash left, and whether all that was committed is there
    left_log.py         whether that is looked at before SQLite reads it; log_mark.py the mark by which a file knows it
    meta.py, hashes.py  what holds of a file as a whole, and the hashes of all rows
    ends.py             the last row of each table: what is missing there
    entry.py            an entry of the log as bytes, and back
    packed_rows.py      rows as bytes, and back
    segments.py         which pages of a version are in the file, and writing those that are not
    checkpoint.py       a checkpoint: writing it, and a state made of it
    chunks.py           arrays in chunks: what is no pages
    followed.py         what heads are followed by, where a checkpoint keeps it
    followed_lists.py   the parts of that which are lists of their own, written and read
    kept_maps.py        of them the maps of triggers
    kept_sums.py        the accumulators of aggregates
    kept_traces.py      and traces
    program_log.py      the rules of a database as the steps that made them
    gone_steps.py       those that made only what is gone, which a checkpoint leaves out
    kept_ast.py         the syntax tree of a program as data
    database_file.py    a database's file: what it writes when
    opening.py          a database from a file, and the entries after its last checkpoint
    refreshing.py       what other processes have committed since
    history.py          what was: changes since, the database at a moment, branches and their differences
    magic.py            what a file is, by its first bytes
    checking.py         whether a file is intact
    care.py             compact, backup, the log in words
    in_file.py          the methods of a database that are about its file

Nothing in a file is executed, and nothing damaged is answered from: every row of it has a hash,
and is missed if it is not there.
"""

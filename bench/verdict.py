"""Compares libraries that were measured in turns. In each turn every library runs once, so that other load of the machine affects all of
them alike. A row is judged by the ratios of its turns, not by the best of separate runs.

A row is `ahead` (Fishplate is faster) or `behind` if the median of the turns' ratios differs from 1 by more than the spread, and a sign
test over the turns rejects chance (p < 0.05). Otherwise the row is `equal`. The spread is measured by rows that do not use the MPI library
(plain pwrite and pread): it is the largest difference between the runs of the two libraries in these rows."""
# SPDX-License-Identifier: Apache-2.0
import math
import statistics

CHANCE = 0.05
TURNS_MIN = 6  # with fewer turns the sign test cannot reject chance


def turn_ratios(turns, row, one, other, better):
    """Returns for each turn the time of `one` divided by that of `other` (for rates the inverse): below 1.0 `one` is faster."""
    both = [(turn[one][row], turn[other][row]) for turn in turns if row in turn.get(one, {}) and row in turn.get(other, {})]
    return [b / a if better is max else a / b for a, b in both]


def median_of(turns, row, library):
    values = [turn[library][row] for turn in turns if row in turn.get(library, {})]
    return statistics.median(values) if values else None


def turns_to_reject_chance(turns):
    """Returns the smallest number of turns with the same sign, among `turns` turns, that rejects chance."""
    tail, need = 0.0, turns + 1
    while need > 0 and 2 * (tail + math.comb(turns, need - 1) / 2**turns) <= CHANCE:
        need -= 1
        tail += math.comb(turns, need) / 2**turns
    return need


def measure_spread(turns, rows, one, other, better):
    """Returns the largest difference, as a factor, between two libraries in rows that do not use the library; None without such rows."""
    found = [turn_ratios(turns, row, one, other, better) for row in rows]
    medians = [abs(math.log(statistics.median(each))) for each in found if each]
    return math.exp(max(medians)) if medians else None


def judge_row(found, limit):
    """Returns the verdict of a row from the ratios of its turns."""
    if len(found) < TURNS_MIN or limit is None:
        return "unknown"
    middle, need = statistics.median(found), turns_to_reject_chance(len(found))
    if middle > limit and sum(r > 1 for r in found) >= need:
        return "behind"
    if middle < 1 / limit and sum(r < 1 for r in found) >= need:
        return "ahead"
    return "equal"


def judge_rows(turns, better, is_plain, kind):
    """Returns (rows with medians, the better peer, the ratio to it and a verdict; spread of each kind of rows and peer). The first library
    of a turn is Fishplate. The better peer of a row has the better median, since the order within a single turn is often chance."""
    libraries = list(dict.fromkeys(library for turn in turns for library in turn))
    ours, peers = libraries[0], libraries[1:]
    rows = list(dict.fromkeys(row for turn in turns for row in turn.get(ours, {})))
    limits = {(k, peer): measure_spread(turns, [row for row in rows if is_plain(row) and kind(row) == k], ours, peer, better)
              for k in dict.fromkeys(map(kind, rows)) for peer in peers}
    out = []
    for row in rows:
        medians = {library: median_of(turns, row, library) for library in libraries}
        entry = {"row": row, "median": {library: m for library, m in medians.items() if m is not None}}
        there = [peer for peer in peers if medians[peer] is not None]
        if there:
            peer = better(there, key=medians.get)
            found = turn_ratios(turns, row, ours, peer, better)
            entry.update(peer=peer, turns=len(found), ratio=statistics.median(found), behind_in=sum(r > 1 for r in found),
                         verdict="plain" if is_plain(row) else judge_row(found, limits[kind(row), peer]))
        out.append(entry)
    return out, limits


def summarise(rows):
    judged = [row for row in rows if row.get("verdict", "plain") != "plain"]
    counts = {verdict: sum(row["verdict"] == verdict for row in judged) for verdict in ("ahead", "equal", "behind", "unknown")}
    mean = math.exp(sum(math.log(row["ratio"]) for row in judged) / len(judged)) if judged else None
    return {"rows": len(judged), **counts, "mean": mean}

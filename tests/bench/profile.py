"""Shows in which functions the instructions of a pair are executed: lists the functions of a callgrind file
by their own cost, without that of their callees.

usage: profile.py FILE PAIRS
"""
import collections
import os
import re
import sys

FUNCTIONS = 30


def own_costs(lines):
    """Returns (function, object) -> instructions. The line after calls= has the cost of the callee, which is
    counted where the file lists the callee itself."""
    costs = collections.Counter()
    names = {"fn": {}, "ob": {}}
    current = {"fn": "", "ob": ""}
    of_callee = False
    for line in lines:
        # "fn=(12) name", later "fn=(12)"; cfn= and cob= also give names, and change nothing else.
        named = re.match(r"(c?)(fn|ob)=\((\d+)\)(?: (.*))?$", line)
        if named:
            callee, kind, number, name = named.groups()
            if name is not None:
                names[kind][number] = name
            if not callee:
                current[kind] = names[kind][number]
        elif line.startswith("calls="):
            of_callee = True
        elif re.match(r"[-+*\d]", line):
            if not of_callee:
                costs[current["fn"], os.path.basename(current["ob"])] += int(line.split()[1])
            of_callee = False
    return costs


def main():
    path, pairs = sys.argv[1], int(sys.argv[2])
    with open(path, encoding="utf-8") as file:
        costs = own_costs(line.rstrip("\n") for line in file)
    total = sum(costs.values())
    objects = collections.Counter()
    for (_, where), cost in costs.items():
        objects[where] += cost

    def tell(what, cost):
        print(f"{cost / pairs:8.0f}  {100 * cost / total:4.1f} %  {what}")

    print("instructions of a pair, by what they are in:")
    for where, cost in objects.most_common(8):
        tell(where, cost)
    print("by function:")
    for (function, where), cost in costs.most_common(FUNCTIONS):
        tell(f"{function}  [{where}]", cost)


main()

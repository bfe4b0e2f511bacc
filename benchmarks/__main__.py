"""Run every benchmark into one table: `make bench`. Names on the command line choose among them."""

import importlib
import sys

ALL = (
    "accelerator", "annealing", "bounds", "causal", "collapsed_gibbs", "families", "first_call", "gibbs", "glm",
    "graphical", "lasso", "loop", "messages", "online_l1", "projections", "relational", "sdca", "sequences",
)  # fmt: skip


def main(names: list[str]) -> int:
    unknown = set(names) - set(ALL)
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(ALL)}")
        return 2
    rows = [row for name in names or ALL for row in importlib.import_module(f"benchmarks.{name}").run()]
    missed = [row for row in rows if not row.reached]
    print(
        f"\n{len(rows)} rows, {len(missed)} below their bar"
        + "".join(f"\n  {row.name} against {row.peer}" for row in missed)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

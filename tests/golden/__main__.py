"""Writes the contracts and the power table anew: `make golden`, or some with ARGS="output-vector zoo svt3"."""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import contract_cases
import power_cases

# Places of a changed contract that are printed; the diff of the commit has them all.
MOST_PLACES = 10


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write_contract(name: str) -> None:
    """Runs a case, and stores it if it changed."""
    target = contract_cases.STORED / f"{name}.json"
    with tempfile.TemporaryDirectory() as folder:
        found = contract_cases.run(contract_cases.CASES[name], Path(folder))
    known = json.loads(target.read_text(encoding="utf-8")) if target.exists() else None
    places = [] if known is None else contract_cases.differences(known, found)
    if known is None or places:
        text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False)
        target.write_text(text + "\n", encoding="utf-8")
        tell(f"golden: contract {name} {'is new' if known is None else 'changed'}")
    for place in places[:MOST_PLACES]:
        tell(f"    {place}")
    if len(places) > MOST_PLACES:
        tell(f"    and at {len(places) - MOST_PLACES} more places")


def write_contracts(names: list[str]) -> None:
    contract_cases.STORED.mkdir(exist_ok=True)
    for path in contract_cases.STORED.glob("*.json"):
        if path.stem not in contract_cases.CASES:
            path.unlink()
            tell(f"golden: contract {path.stem} is gone")
    for name in names:
        write_contract(name)


def write_power(names: list[str]) -> None:
    """Measures rows, prints them as before -> after, and stores the table."""
    before = power_cases.read()
    after = {name: power_cases.measured(power_cases.ROWS[name]) for name in names}
    if after:
        tell("golden: power, as a share of what could be certified, before -> after")
    for line in power_cases.comparison(before, after):
        tell(f"    {line}")
    rest = {name: share for name, share in before.items() if name in power_cases.ROWS}
    power_cases.STORED.write_text(power_cases.as_text(rest | after), encoding="utf-8")


def main(words: list[str]) -> None:
    """Writes what is named: whole names, or the beginnings of several; all of it if nothing is."""
    chosen = tuple(words) or ("",)
    known = (*contract_cases.CASES, *power_cases.ROWS)
    unknown = [word for word in words if not any(name.startswith(word) for name in known)]
    if unknown:
        sys.exit(f"golden: no contract and no row begins with {', '.join(unknown)}")
    write_contracts([name for name in contract_cases.CASES if name.startswith(chosen)])
    write_power([name for name in power_cases.ROWS if name.startswith(chosen)])


if __name__ == "__main__":
    main(sys.argv[1:])

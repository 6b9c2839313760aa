"""Writes the stored results anew: `make golden`, with ARGS="kind-vector notion-renyi" only some of them."""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import golden_cases as cases

KEPT = Path(__file__).parent / "results"


def main(names: list[str]) -> None:
    """Runs the named cases, or all, and says which results changed."""
    KEPT.mkdir(exist_ok=True)
    for path in KEPT.glob("*.json"):
        if path.stem not in cases.CASES:
            path.unlink()
    for name in names or cases.CASES:
        target = KEPT / f"{name}.json"
        known = json.loads(target.read_text(encoding="utf-8")) if target.exists() else None
        with tempfile.TemporaryDirectory() as folder:
            found = cases.run(name, Path(folder))
        if known is None or any(cases.differences(known, found)):
            target.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            sys.stdout.write(f"golden: {'new' if known is None else 'changed'}: {name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

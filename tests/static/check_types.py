"""Type-checks code as a user would: `mypy --strict`, with the installed package and no settings.

Checked are the Python blocks of the README and of all pages, the tutorial notebook, the examples,
and `public_face.py`, in one run of mypy. A step of `make check`.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
FILES = [
    ROOT / "tests" / "static" / "public_face.py",
    *sorted((ROOT / "examples").rglob("*.py")),
]


def code_of_page(text: str) -> str:
    """The Python blocks of a page, at the lines where the page has them."""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines():
        if line == "```":
            is_code = False
        lines.append(line if is_code else "")
        if line == "```python":
            is_code = True
    return "\n".join(lines) + "\n"


def code_of_notebook(text: str) -> str:
    """The cells of a notebook that hold code."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return "\n".join("".join(cell["source"]) + "\n" for cell in cells)


def main() -> int:
    """Checks everything; what mypy says names the pages."""
    with tempfile.TemporaryDirectory() as folder:
        page_of: dict[str, str] = {}
        for page in [*PAGES, *NOTEBOOKS]:
            text = page.read_text(encoding="utf-8")
            code = code_of_page(text) if page.suffix == ".md" else code_of_notebook(text)
            if not code.strip():
                continue
            name = page.relative_to(ROOT).as_posix()
            script = Path(folder) / (re.sub(r"\W", "_", name) + ".py")
            script.write_text(code, encoding="utf-8")
            page_of[str(script)] = name
        done = subprocess.run(
            [
                *(sys.executable, "-m", "mypy", "--strict", "--config-file="),
                *("--cache-dir", str(ROOT / ".mypy_cache" / "static")),
                *("--python-executable", sys.executable),
                *page_of,
                *map(str, FILES),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    said = done.stdout + done.stderr
    for script, name in page_of.items():
        said = said.replace(Path(script).name, name)
    sys.stdout.write(said)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

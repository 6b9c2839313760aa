"""`make sound`: what a sceptic would run. docs/reference/soundness.md says how to read its table.

| file | content |
|---|---|
| `cases.py` | what a row of the table is; the list of all of them |
| `outputs.py` | kinds of outputs: one line each |
| `boundaries.py` | claims whose truth is known exactly, and the coins that sit on their edge: one line each |
| `entries.py` | ways to audit: one function each |
| `rates.py` | every entry × claim × kind of output, at 50 and 80 % |
| `enumerations.py` | bounds on counts, added up over all counts |
| `seams.py` | where parts meet: recordings, retries, resumptions, published procedures, other libraries |
| `tampering.py` | honest results hold, forged ones do not |
| `running.py` | runs rows in processes, with limits |
| `table.py` | the table as lines, JSON and Markdown |
"""

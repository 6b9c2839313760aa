"""What people look at: a result in plain text, in the terminal, and as one page of HTML.

`wording` says everything once; `text` and `html` only lay it out. Plot data are computed in
`plot_data` and `panels`, separately from drawing.
"""

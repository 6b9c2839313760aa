"""What people look at: a result as text, in a terminal, a notebook or a browser, and in files.

`formatting` writes values and numbers, `reservations` and `wording` say everything once, in
sentences. `text`, `notebook` and `html` only lay it out, `junit`, `markdown` and `regression_tests`
write it for other programs. What pictures show is computed in `bars`, `panels` and `loss_panel`,
apart from drawing, which is done in `figures`, `outputs_svg` and `profile_figure`.
"""

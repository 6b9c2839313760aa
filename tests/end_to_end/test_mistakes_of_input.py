"""Mistakes of input that people make: none is taken for something else, each is answered in one line with a remedy."""

import functools
import html
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import polars as pl
import pytest

import epsilometer as em
from epsilometer.cli import main
from epsilometer.engine.runners import helpful_jobs

FUNCTIONS = """
import numpy as np
def noisy(x, rng): return float(np.sum(x)) + rng.laplace()
def scaled(x, epsilon, rng): return x + rng.laplace(scale=1 / epsilon)
def batch(x, n, rng): return x + rng.laplace(size=n)
def scaled_batch(x, n, epsilon, rng): return x + rng.laplace(size=n, scale=1 / epsilon)
def nothing(): return 1
def count(rows, rng): return len(rows) + rng.laplace()
"""
namespace: dict = {}
exec(FUNCTIONS, namespace)
noisy, scaled, batch, nothing = (
    namespace[name] for name in ("noisy", "scaled", "batch", "nothing")
)


async def later(x):
    return 1.0


FRAME = pd.DataFrame({"user": [1, 1, 2], "amount": [0.5, 1.5, 123.75]})
ROWS = FRAME.to_dict("records")
FEW = {"samples": 50, "seed": 0}


def audit(inputs, function=noisy, claim="eps=1", **settings):
    return lambda: em.audit(function, inputs, claim, **{**FEW, **settings})


class WrongFinder:
    """Proposes lists instead of pairs."""

    trials, samples, stop_at_refutation = 1, 50, True

    def ask(self):
        return [[3, 2], [3, 0]]

    def tell(self, score):
        pass

    def state(self):
        return {}

    def restore(self, state):
        pass

    def describe(self):
        return {}


# What is called, and what its message must contain: the remedy.
BY_API = {
    "two datasets in a list": (audit([[3, 2], [3, 0]]), "em.Pair([3, 2], [3, 0])"),
    "two datasets in a list, of which two pairs would be equal": (
        audit([[1, 1], [1, 0]]),
        "em.Pair([1, 1], [1, 0])",
    ),
    "two numbers in a list": (audit([0, 1]), "em.Pair(0, 1)"),
    "two data frames in a list": (audit([FRAME, FRAME]), "em.Pair(<DataFrame"),
    "two rows in a list": (audit([{"a": 1}, {"a": 2}]), "em.Pair({'a': 1}, {'a': 2})"),
    "two arrays in a list": (audit([np.zeros(2), np.ones(2)]), "em.Pair("),
    "a data frame of pandas": (audit(FRAME), "em.around(df), or give one with em.Pair(df, other)"),
    "a data frame of polars": (audit(pl.DataFrame({"a": [1]})), "em.Pair(df, other)"),
    "a series": (audit(FRAME["amount"]), "em.around(df)"),
    "an array": (audit(np.zeros((3, 2))), "em.around(data)"),
    "a dict": (audit({"left": 0, "right": 1}), "em.Pair(data, other)"),
    "three datasets in a tuple": (audit(([1], [2], [3])), "em.Pair(left, right)"),
    "pairs as lists": (audit([[0, 1], [1, 2], [2, 3]]), "tuples (left, right)"),
    "a text": (audit("01"), "em.Pair(left, right)"),
    "a domain's class": (audit(em.domains.Number), "Number(…)"),
    "a claim in the place of inputs": (audit(em.PureDP(1.0)), "em.Pair(left, right)"),
    "lists for measure": (
        lambda: em.measure(noisy, [[3, 2], [3, 0]], **FEW),
        "em.Pair([3, 2], [3, 0])",
    ),
    "lists for profile": (
        lambda: em.profile(noisy, [[3, 2], [3, 0]], **FEW),
        "em.Pair([3, 2], [3, 0])",
    ),
    "lists for stopping early": (
        audit([[3, 2], [3, 0]], stop_early=True),
        "em.Pair([3, 2], [3, 0])",
    ),
    "lists for mpl": (lambda: em.local.mpl(noisy, [[3, 2], [3, 0]]), "em.Pair([3, 2], [3, 0])"),
    "a list for dpl": (lambda: em.local.dpl(noisy, [0, 1], n=100), "em.Pair(0, 1)"),
    "a list for ldp": (
        lambda: em.ldp.estimate(
            noisy, [0, 1], domain=(0, 1), lipschitz=0.5, precision=0.5, confidence=0.9
        ),
        "em.Pair(0, 1)",
    ),
    "a dataset in the place of neighbours": (
        lambda: em.local.data_centric(noisy, [3, 2], [3, 0]),
        "[other, …]",
    ),
    "a finder that proposes lists": (audit(WrongFinder()), "em.Pair([3, 2], [3, 0])"),
    "a user column and another relation": (
        lambda: em.around(FRAME, "replace", user="user"),
        "leave out one of the two",
    ),
    "the relation user without a column": (lambda: em.around(FRAME, "user"), "user='COLUMN'"),
    "a misspelt user column": (lambda: em.around(FRAME, user="usr"), "'user', 'amount'"),
    "a list of user columns": (lambda: em.around(FRAME, user=["user"]), "'user', 'amount'"),
    "a user of values": (lambda: em.around([1.0, 2.0], user="user"), "single values"),
    "a table with users and another relation": (
        lambda: em.finders.Random(
            em.domains.Table({"u": em.domains.Integer(0, 3)}, user="u"), "add-remove"
        ),
        "leave out one of the two",
    ),
    "a missing parameter": (audit((0, 1), scaled), "functools.partial(scaled, epsilon=…)"),
    "a missing parameter that failures would hide": (
        lambda: em.from_callable(scaled, on_error="outcome"),
        "functools.partial(scaled, epsilon=…)",
    ),
    "a missing parameter of a batch": (
        lambda: em.from_batch(namespace["scaled_batch"]),
        "functools.partial(scaled_batch, epsilon=…)",
    ),
    "a batch function as it is": (audit((0, 1), batch), "from_batch(f)"),
    "a function of nothing": (audit((0, 1), nothing), "f(dataset)"),
    "a program without its input": (lambda: em.from_command(["prog"]), "{file}"),
    "a program with a misspelt place": (
        lambda: em.from_command(["prog", "{dateset}"]),
        "{dataset}",
    ),
    "a misspelt format": (
        lambda: em.from_command(["prog", "{file}"], dataset_format="jsnl"),
        "did you mean 'jsonl'",
    ),
    "a format without a file": (
        lambda: em.from_command(["prog", "{dataset}"], dataset_format="csv"),
        "{file}",
    ),
    "a number as csv": (
        lambda: em.audit(
            em.from_command(["prog", "{file}"], dataset_format="csv"), (0, 1), "eps=1"
        ),
        "choose the format json",
    ),
    "inputs that are the same arguments": (
        lambda: em.audit(em.from_command(["prog", "{dataset}"]), (1, "1"), "eps=1"),
        "give inputs that do",
    ),
    "inputs that are the same requests": (
        lambda: em.audit(em.from_http("http://localhost:1/"), ([1], (1,)), "eps=1"),
        "give inputs that do",
    ),
    "a service without its input": (
        lambda: em.from_http("http://localhost:1/", body='{"records": 1}'),
        "write {dataset}",
    ),
    "a GET without its input": (
        lambda: em.from_http("http://localhost:1/", method="GET"),
        "{dataset}",
    ),
    "a place in quotes": (
        lambda: em.from_http("http://localhost:1/", body='{"records": "{dataset}"}'),
        "without quotes",
    ),
    "a body that is a dict": (
        lambda: em.from_http("http://localhost:1/", body={"records": "{dataset}"}),
        "must be a text",
    ),
    "a batch that is not counted": (
        lambda: em.from_http("http://localhost:1/", batch=True, body='{"records": {dataset}}'),
        "write {n}",
    ),
    "an unknown method of HTTP": (
        lambda: em.from_http("http://localhost:1/", method="FETCH"),
        "POST, GET",
    ),
    "an empty step in a path": (
        lambda: em.from_http("http://localhost:1/", answer="a..b"),
        "'result.values.0'",
    ),
    "a header from a variable that is not set": (
        lambda: em.from_http("http://localhost:1/", headers={"X": "env:NO_SUCH_VARIABLE"}),
        "'NO_SUCH_VARIABLE' is not set",
    ),
    "a header that is a number": (
        lambda: em.from_http("http://localhost:1/", headers={"X-Tenant": 1}),
        "of type int must be a text: write it in quotes",
    ),
    "an address of another kind": (
        lambda: em.from_http("ftp://localhost/"),
        "an address like http://localhost:8000/path",
    ),
    "a file in the place of a result": (
        lambda: em.replay("result.json", noisy),
        "em.AuditResult.from_json",
    ),
    "a word for whether blind audits fail": (
        lambda: em.audit(noisy, (0, 1), "eps=9", **FEW).raise_if_refuted(fail_blind="no"),
        "must be True or False",
    ),
    "a coroutine": (audit((0, 1), later), "asyncio.run"),
    "inputs in the place of the mechanism": (
        lambda: em.audit(em.Pair(0, 1), noisy, "eps=1"),
        "em.audit(mechanism, inputs, claim)",
    ),
    "a target of the command line": (audit((0, 1), "functions:noisy"), "import the function"),
    "an output in the place of the function": (audit((0, 1), 0.7), "and not what it returns, f(x)"),
    "a path that is a number": (
        lambda: em.from_http("http://localhost:1/", answer=0),
        "'result.values.0'",
    ),
    "a relation in capitals": (lambda: em.around(FRAME, "Add-Remove"), "did you mean 'add-remove'"),
    "the name of a file for its data": (lambda: em.around("u.csv"), "pandas.read_csv"),
    "columns in a dict for a data frame": (
        lambda: em.around({"a": [1, 2]}),
        "pandas.DataFrame",
    ),
}


# Words for a flag: "no" is true to Python.
for _name, _call in {
    "stop_early": lambda word: em.audit(noisy, (0, 1), "eps=1", stop_early=word, **FEW),
    "beyond": lambda word: em.finders.Search(em.domains.Number(0, 1), beyond=word),
    "uniform": lambda word: em.finders.Random(em.domains.Number(0, 1), uniform=word),
    "shuffled": lambda word: em.finders.Grid(em.domains.Number(0, 1), shuffled=word),
    "stop_at_refutation": lambda word: em.finders.Search(
        em.domains.Number(0, 1), stop_at_refutation=word
    ),
    "whole": lambda word: em.domains.Vector(4, 0, 1, whole=word),
    "equal": lambda word: em.Pair(0, 1, equal=word),
    "batch": lambda word: em.from_http("http://localhost:1/", batch=word),
    "stdin": lambda word: em.from_command(["prog", "{dataset}"], stdin=word),
}.items():
    for _word in ("no", 0):
        BY_API[f"{_word!r} for {_name}"] = (
            functools.partial(_call, _word),
            f"{_name}={_word!r} must be True or False",
        )
BY_API |= {
    "True for a number of steps": (audit((0, 1), distance=True), "distance=True must be a whole"),
    "a flag for checks": (audit((0, 1), suppress=True), "such as ['drift']"),
    "a misspelt check": (audit((0, 1), suppress=["drfit"]), "did you mean 'drift'"),
    "a flag for a file": (audit((0, 1), checkpoint=True), "checkpoint=True must be the path"),
    "a flag for the file of a record": (audit((0, 1), record=True), "record=True must be the path"),
    "the number of a claim beside the inputs": (
        lambda: em.audit(noisy, (0, 1), epsilon=1.0),
        "em.PureDP(1.0)",
    ),
    "a relation of a pair": (audit((0, 1), relation="replace"), "em.finders.Search(domain"),
    "a user of a pair": (audit((0, 1), user="u"), "em.around(data"),
    "whether a blind audit fails": (
        audit((0, 1), fail_blind=True),
        "result.raise_if_refuted(fail_blind=True)",
    ),
    "the number that is measured": (
        lambda: em.measure(noisy, (0, 1), em.PureDP, epsilon=1.0, **FEW),
        "leave epsilon=1.0 out",
    ),
    "a delta of another notion": (
        lambda: em.measure(noisy, (0, 1), em.GaussianDP, delta=1e-5, **FEW),
        "takes no 'delta'; it belongs to ApproxDP",
    ),
    "a notion without its order": (
        lambda: em.measure(noisy, (0, 1), em.RenyiDP, **FEW),
        "needs order",
    ),
    "a misspelt setting of measure": (
        lambda: em.measure(noisy, (0, 1), em.PureDP, sample=50),
        "did you mean 'samples'",
    ),
    "an engine without an address": (audit((0, 1), engine="dask"), "dask://host:8786"),
    "an engine in capitals": (audit((0, 1), engine="LOCAL"), "known are local"),
}


def check_message(text, remedy):
    assert remedy in text
    assert "\n" not in text.strip()
    assert "123.75" not in text  # no message prints the data


@pytest.mark.parametrize("mistake", BY_API)
def test_by_api(mistake):
    call, remedy = BY_API[mistake]
    with pytest.raises(em.EpsilometerError) as error:
        call()
    check_message(str(error.value), remedy)


TWO = ["--left", "0", "--right", "1", "--epsilon", "1", "--samples", "50"]
CLAIM = ["--epsilon", "1", "--samples", "50"]
# The arguments after "audit", and the remedy.
BY_COMMAND_LINE = {
    "a user column and another relation": (
        ["functions:count", "--around", "u.csv", "--user", "user", "--relation", "replace", *CLAIM],
        "leave out one of the two",
    ),
    "the relation user without a column": (
        ["functions:count", "--around", "u.csv", "--relation", "user", *CLAIM],
        "--user COLUMN",
    ),
    "a misspelt user column": (
        ["functions:count", "--around", "u.csv", "--user", "usr", *CLAIM],
        "'user', 'amount'",
    ),
    "a user without data": (["functions:count", "--user", "user", *TWO], "--around"),
    "a user of a domain": (
        ["functions:count", "--domain", "records:number:0:1", "--user", "u", *CLAIM],
        "--around",
    ),
    "a file without the @": (
        ["functions:count", "--left", "u.csv", "--right", "0", *CLAIM],
        "@u.csv",
    ),
    "an input without its neighbour": (["functions:noisy", "--left", "0", *CLAIM], "--right"),
    "no inputs": (["functions:noisy", *CLAIM], "--left and --right"),
    "a missing parameter": (["functions:scaled", *TWO], "--param epsilon=…"),
    "a misspelt parameter": (
        ["functions:scaled", *TWO, "--param", "epsilom=1"],
        "did you mean 'epsilon'",
    ),
    "a parameter without value": (["functions:scaled", *TWO, "--param", "epsilon"], "NAME=VALUE"),
    "a parameter twice": (
        ["functions:scaled", *TWO, "--param", "epsilon=1", "--param", "epsilon=2"],
        "given twice",
    ),
    "a parameter that the audit passes": (
        ["functions:scaled", *TWO, "--param", "epsilon=1", "--param", "rng=1"],
        "leave it out of --param",
    ),
    "a parameter of the zoo": (["zoo:laplace", "--param", "epsilon=1"], "zoo:NAME?epsilon=.7"),
    "a parameter of a program": (
        ["command:prog {dataset}", *TWO, "--param", "a=1"],
        "--param is for functions",
    ),
    "a batch function as it is": (["functions:batch", *TWO], "--batch"),
    "a program without its input": (["command:prog", *TWO], "{file}"),
    "a misspelt format": (
        ["command:prog {file}", *TWO, "--dataset-format", "cvs"],
        "did you mean 'csv'",
    ),
    "a format of a function": (
        ["functions:noisy", *TWO, "--dataset-format", "csv"],
        "is for programs",
    ),
    "a number as csv": (
        ["command:prog {file}", *TWO, "--dataset-format", "csv"],
        "choose the format json",
    ),
    "a header of a function": (
        ["functions:noisy", *TWO, "--http-header", "A=b"],
        "is for services",
    ),
    "a header without value": (
        ["http://localhost:1/", *TWO, "--http-header", "Token"],
        "NAME=VALUE",
    ),
    "a header from a variable that is not set": (
        ["http://localhost:1/", *TWO, "--http-header", "X=env:NO_SUCH_VARIABLE"],
        "'NO_SUCH_VARIABLE' is not set",
    ),
    "a service without its input": (
        ["http://localhost:1/", *TWO, "--http-body", '{"records": {data}}'],
        "write {dataset}",
    ),
    "a place in quotes": (
        ["http://localhost:1/", *TWO, "--http-body", '{"records": "{dataset}"}'],
        "without quotes",
    ),
    "a GET without its input": (["http://localhost:1/", *TWO, "--http-method", "GET"], "{dataset}"),
    "a dot for the colon": (["functions.noisy", *TWO], "did you mean 'functions:noisy'"),
    "a program without its kind": (
        ["./prog {dataset}", *TWO],
        "did you mean 'command:./prog {dataset}'",
    ),
    "an address without its kind": (
        ["localhost:8000/count", *TWO],
        "did you mean 'http://localhost:8000/count'",
    ),
    "a module that is not there": (["nowhere:noisy", *TWO], "path/to/file.py:function"),
    "a misspelt mechanism of the zoo": (["zoo:lapalce"], "All of them: epsilometer zoo"),
    "no claim": (["functions:noisy", "--left", "0", "--right", "1"], "there is no claim: give"),
    "a delta alone": (
        ["functions:noisy", "--left", "0", "--right", "1", "--delta", "1e-5"],
        "give epsilon (alone, with delta, or with order)",
    ),
    "data to search and an input": (
        ["functions:count", "--around", "u.csv", "--left", "0", *CLAIM],
        "leave out one of the two",
    ),
    "a page to standard output": (["functions:noisy", *TWO, "--html", "-"], "name a file"),
    "an input twice": (["functions:noisy", *TWO, "--left", "5"], "--left is given twice"),
    "a claim twice": (["functions:noisy", *TWO, "--epsilon", "2"], "--epsilon is given twice"),
    "a list of Python": (
        ["functions:noisy", "--left", "['a', None]", "--right", "[]", *CLAIM],
        "write '[\"a\", null]'",
    ),
    "a truth of Python": (
        ["functions:noisy", "--left", "True", "--right", "false", *CLAIM],
        "write true",
    ),
    "a list without its end": (
        ["functions:noisy", "--left", "[1, 2", "--right", "[1, 3]", *CLAIM],
        "Expecting ',' delimiter",
    ),
    "a domain without its end": (
        ["functions:noisy", "--domain", "number:0", *CLAIM],
        "write number:LOW:HIGH",
    ),
    "a recording of one side": (["recording:u.csv", *TWO], "recording:LEFT,RIGHT"),
    "a misspelt check": (["functions:noisy", *TWO, "--suppress", "drfit"], "did you mean 'drift'"),
    "a time limit of nothing": (
        ["http://localhost:1/", *TWO, "--http-timeout", "0"],
        "timeout=0.0 must be",
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    FRAME.to_csv(tmp_path / "u.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("mistake", BY_COMMAND_LINE)
def test_by_command_line(mistake, folder, capsys):
    arguments, remedy = BY_COMMAND_LINE[mistake]
    assert main(["audit", *arguments]) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    check_message(answer.err, remedy)


# The lines of a file, and the remedy.
BY_FILE = {
    "a user column and another relation": (
        'mechanism = "functions:count"\naround = "u.csv"\nuser = "user"\nrelation = "add-remove"',
        "leave out one of the two",
    ),
    "the relation user without a column": (
        'mechanism = "functions:count"\naround = "u.csv"\nrelation = "user"',
        "user='COLUMN'",
    ),
    "a user that is no name": (
        'mechanism = "functions:count"\naround = "u.csv"\nuser = 3',
        "user = 3 must be a text",
    ),
    "one pair as pairs": (
        'mechanism = "functions:noisy"\npairs = [3, 2]',
        "pairs = [[left, right]]",
    ),
    "pairs of three": ('mechanism = "functions:noisy"\npairs = [[1, 2, 3]]', "[left, right]"),
    "inputs": ('mechanism = "functions:noisy"\ninputs = [[3, 2], [3, 0]]', "pairs"),
    "a missing parameter": ('mechanism = "functions:scaled"\nleft = 0\nright = 1', "epsilon=…"),
    "a misspelt parameter": (
        'mechanism = "functions:scaled"\nleft = 0\nright = 1\n[params]\nepsilom = 1',
        "did you mean 'epsilon'",
    ),
    "parameters that are no table": (
        'mechanism = "functions:scaled"\nleft = 0\nright = 1\nparams = 1',
        "must be a table: [params], then NAME = VALUE",
    ),
    "a misspelt format": (
        'mechanism = "command:prog {file}"\ndataset_format = "npz"\nleft = 0\nright = 1',
        "did you mean 'npy'",
    ),
    "a misspelt key of a service": (
        'mechanism = "http://localhost:1/"\nleft = 0\nright = 1\n[http]\nheader = {A = "b"}',
        "did you mean 'headers'",
    ),
    "headers that are no table": (
        'mechanism = "http://localhost:1/"\nleft = 0\nright = 1\n[http]\nheaders = "A=b"',
        "table of texts",
    ),
    "a header from a variable that is not set": (
        'mechanism = "http://localhost:1/"\nleft = 0\nright = 1\n'
        '[http.headers]\nX = "env:NO_SUCH_VARIABLE"',
        "'NO_SUCH_VARIABLE' is not set",
    ),
    "a number in quotes": (
        'mechanism = "zoo:laplace"\nseed = "0"',
        "seed = '0' must be a whole number, without quotes",
    ),
    "true for a number of steps": (
        'mechanism = "zoo:laplace"\ndistance = true',
        "distance = true must be a whole number",
    ),
    "true for a number of seconds": (
        'mechanism = "zoo:laplace"\nmax_seconds = true',
        "max_seconds = true must be a number",
    ),
    "a text for checks": (
        'mechanism = "zoo:laplace"\nsuppress = "drift"',
        'suppress = ["drift"]',
    ),
    "a truth in quotes": (
        'mechanism = "zoo:laplace"\nstop_early = "false"',
        "must be true or false, without quotes",
    ),
    "a pair as a table": (
        'mechanism = "functions:noisy"\npairs = {left = 0, right = 1}',
        "pairs = [[left, right]]",
    ),
    "a header outside of its table": (
        'mechanism = "http://localhost:1/"\nleft = 0\nright = 1\nhttp_header = "A=b"',
        'headers = {NAME = "VALUE"} in the table [http]',
    ),
    "a timeout outside of its table": (
        'mechanism = "http://localhost:1/"\nleft = 0\nright = 1\ntimeout = 5',
        "timeout = … in the table [http]",
    ),
    "a claim as a text": ('mechanism = "zoo:laplace"\nclaim = "eps=1"', "a claim is epsilon"),
    "a misspelt domain of a finder": (
        'mechanism = "functions:noisy"\n[finder]\nname = "random"\ndomian = "number:0:1"',
        "is 'domian' the domain?",
    ),
    "a misspelt key of a finder": (
        'mechanism = "functions:noisy"\n[finder]\nname = "random"\ndomain = "number:0:1"\n'
        "trails = 5",
        "did you mean 'trials'",
    ),
    "http of a function": (
        'mechanism = "functions:noisy"\nleft = 0\nright = 1\n[http]\nmethod = "GET"',
        "is for services",
    ),
}


@pytest.mark.parametrize("mistake", BY_FILE)
@pytest.mark.parametrize("command", ["audit", "run"])
def test_by_file(mistake, command, folder, capsys):
    text, remedy = BY_FILE[mistake]
    (folder / "audit.toml").write_text(f"epsilon = 1.0\nsamples = 50\n{text}\n")
    assert main([command, "audit.toml"]) == 2
    answer = capsys.readouterr()
    index = folder / "epsilometer-report" / "index.html"
    if index.exists():  # a suite goes on with its other audits, and its report tells of this one
        assert command == "run"
        assert remedy in html.unescape(index.read_text())
    else:
        check_message(answer.err, remedy)


AUDIT = '[[audit]]\nmechanism = "zoo:laplace"\n'
# The lines of a suite, and the remedy.
BY_SUITE = {
    "an expectation of what is measured": (
        f'{AUDIT}notion = "pure"\nexpect = "refuted"\n',
        "leave out one of the two",
    ),
    "a misspelt notion": (f'{AUDIT}notion = "purr"\n', "did you mean 'pure'"),
    "a list of notions": (f'{AUDIT}notion = ["pure"]\n', "must be one of 'pure'"),
    "an expectation in capitals": (f'{AUDIT}expect = "REFUTED"\n', "did you mean 'refuted'"),
    "a title of an audit": (f'title = "t"\n{AUDIT}title = "a"\n', "above the first [[audit]]"),
    "a night": (f"night = 3\n{AUDIT}", "epsilometer run --night K"),
    "audits in capitals": ('[[Audit]]\nmechanism = "zoo:laplace"\n', "under a line [[audit]]"),
    "audits in the plural": ('[[audits]]\nmechanism = "zoo:laplace"\n', "under a line [[audit]]"),
    "a default that nobody uses": (f"{AUDIT}[http]\nmetod = 3\n", "did you mean 'method'"),
    "a list of defaults": (f"{AUDIT}[[http]]\nmethod = 3\n", "must be a table: [http]"),
    "a word for a default": (f'fail_blind = "no"\n{AUDIT}', "must be true or false"),
}


@pytest.mark.parametrize("mistake", BY_SUITE)
def test_by_suite(mistake, folder, capsys):
    text, remedy = BY_SUITE[mistake]
    (folder / "suite.toml").write_text(text)
    assert main(["run", "suite.toml"]) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    check_message(answer.err, remedy)


def test_a_message_about_headers_or_parameters_has_no_values(folder, capsys):
    for text in (
        '[[http]]\nheaders = {A = "TOPSECRET"}',
        'http = "A=TOPSECRET"',
        'params = ["api_key=TOPSECRET"]',
    ):
        (folder / "audit.toml").write_text(f'mechanism = "http://localhost:1/"\n{text}\n')
        assert main(["audit", "audit.toml"]) == 2
        assert "TOPSECRET" not in capsys.readouterr().err


def test_a_claim_of_all_is_none_of_what_is_measured(folder, capsys):
    (folder / "suite.toml").write_text(f'epsilon = 1.0\nsamples = 50\n{AUDIT}notion = "pure"\n')
    assert main(["run", "suite.toml"]) == 0
    assert "measured" in capsys.readouterr().out


def test_counts_in_files_are_written_as_on_the_command_line(folder, capsys):
    (folder / "audit.toml").write_text(
        'mechanism = "functions:noisy"\ndomain = "number:0:1"\nepsilon = 1.0\nsamples = "1k"\n'
        'trial_samples = "1k"\ntrials = 2\njson = "r.json"\n'
    )
    assert main(["audit", "audit.toml"]) == 0
    capsys.readouterr()
    result = em.AuditResult.from_json((folder / "r.json").read_text())
    assert result.settings["finder"]["samples"] == 1000


def test_a_replay_needs_the_mechanism_itself(folder, capsys):
    main(["audit", "zoo:svt5", "--samples", "2000", "--json", "r.json"])
    capsys.readouterr()
    assert main(["replay", "r.json", "audit.toml"]) == 2
    check_message(capsys.readouterr().err, "name the mechanism itself")


def test_there_are_more_than_forty():
    assert min(len(BY_API), len(BY_COMMAND_LINE) + len(BY_FILE)) >= 40


# --- and what is taken as it is meant


def test_a_tuple_is_one_pair_and_lists_are_data():
    result = em.audit(noisy, ((0, 1), (1, 1)), "eps=1", **FEW)
    assert (result.witness.pair.left, result.witness.pair.right) == ((0, 1), (1, 1))
    result = em.audit(noisy, ([3, 2], [3, 0]), "eps=1", **FEW)
    assert (result.witness.pair.left, result.witness.pair.right) == ([3, 2], [3, 0])
    several = em.audit(noisy, [([3, 2], [3, 0]), em.Pair([0], [5])], "eps=1", samples=2000, seed=0)
    assert several.settings["pairs"] == 2


def test_lists_in_files_are_data(folder, capsys):
    text = 'mechanism = "functions:noisy"\nepsilon = 1.0\nsamples = 900\njson = "r.json"\n'
    for inputs in ("left = [3, 2]\nright = [3, 0]\n", "pairs = [[[3, 2], [3, 0]]]\n"):
        (folder / "audit.toml").write_text(text + inputs)
        main(["audit", "audit.toml"])
        result = em.AuditResult.from_json((folder / "r.json").read_text())
        assert (result.witness.pair.left, result.witness.pair.right) == ([3, 2], [3, 0])
        capsys.readouterr()


def test_parameters(folder, capsys):
    call = ["audit", "functions:scaled", *TWO, "--seed", "0", "--json", "r.json", "--param"]
    assert main([*call, "epsilon=.5"]) == 0
    plain = em.AuditResult.from_json((folder / "r.json").read_text())
    assert plain.settings["params"] == {"epsilon": 0.5}
    assert "functions:scaled(epsilon=0.5)" in capsys.readouterr().out
    (folder / "audit.toml").write_text(
        'mechanism = "functions:scaled"\nleft = 0\nright = 1\nepsilon = 1.0\nsamples = 50\nseed = 0\n'
        'json = "r.json"\n[params]\nepsilon = 0.5\n'
    )
    assert main(["audit", "audit.toml"]) == 0
    from_file = em.AuditResult.from_json((folder / "r.json").read_text())
    assert from_file.witness.counts == plain.witness.counts
    assert main(["audit", "audit.toml", "--param", "epsilon=50"]) == 1
    other = em.AuditResult.from_json((folder / "r.json").read_text())
    assert other.settings["params"] == {"epsilon": 50}
    # The code is the same, whatever it is called with.
    assert plain.identity["code_digest"] == other.identity["code_digest"]
    capsys.readouterr()


def test_the_code_with_parameters_is_the_code_without(folder, capsys):
    (folder / "optional.py").write_text(
        "def f(x, rng, scale=1.0): return x + scale * rng.laplace()\n"
    )
    digests = set()
    for more in ([], ["--param", "scale=2"], ["--param", "scale=3", "--seed", "1"]):
        main(["audit", "optional:f", *TWO, "--json", "r.json", *more])
        result = em.AuditResult.from_json((folder / "r.json").read_text())
        digests.add(result.identity["code_digest"])
    assert len(digests) == 1
    capsys.readouterr()


def test_secret_parameters_are_not_shown(folder, capsys):
    (folder / "keyed.py").write_text("def f(x, rng, api_key): return x + rng.laplace()\n")
    call = ["audit", "keyed:f", *TWO, "--json", "r.json", "--html", "r.html"]
    assert main([*call, "--param", "api_key=TOPSECRET"]) in (0, 1)
    answer = capsys.readouterr()
    for text in (
        answer.out,
        answer.err,
        *((folder / name).read_text() for name in ("r.json", "r.html")),
    ):
        assert "TOPSECRET" not in text


class Schema(BaseHTTPRequestHandler):
    """A service with its own form of requests and answers; what is wrong is answered with a body."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        match = re.fullmatch(r"/count/([0-9.]+)\?unit=1", self.path)
        self.answer({"result": {"values": [float(match[1]) + self.noise()]}})

    def do_PUT(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            request = json.loads(text)
            assert self.headers["Authorization"] == "Bearer TOPSECRET-1"
            values = [
                sum(request["records"]) + self.noise() for _ in range(request.get("count", 1))
            ]
        except (KeyError, AssertionError, ValueError) as error:
            told = {"error": f"wanted records: {error!r}", "sent": self.headers["Authorization"]}
            self.answer(told, status=422)
            return
        self.answer({"result": {"values": values, "took": 0.1}})

    def noise(self):
        return float(self.server.rng.laplace(scale=0.1))

    def answer(self, value, status=200):
        body = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Schema)
    server.rng = np.random.default_rng(0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


RECORDS = ["--left", "[1, 2]", "--right", "[1, 3]", "--epsilon", "1"]
SERVICE = [
    *("--http-method", "PUT"),
    *("--http-header", "Authorization=env:SERVICE_TOKEN"),
    *("--http-timeout", "20"),
]


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_service_with_its_own_schema(url, folder, monkeypatch, capfd, is_batch):
    monkeypatch.setenv("SERVICE_TOKEN", "Bearer TOPSECRET-1")
    if is_batch:
        form = ["--batch", "--http-body", '{"records": {dataset}, "count": {n}}']
        form += ["--http-answer", "result.values", "--samples", "400"]
    else:
        form = ["--http-body", '{"records": {dataset}}', "--http-answer", "result.values.0"]
        form += ["--samples", "60"]
    files = ["--json", "r.json", "--html", "r.html", "--checkpoint", "c.checkpoint"]
    assert main(["audit", url, *RECORDS, *SERVICE, *form, *files]) == 1
    result = em.AuditResult.from_json((folder / "r.json").read_text())
    assert result.witness.pair.right == [1, 3]
    assert result.settings["http"]["method"] == "PUT"
    assert result.settings["http_headers"] == ["Authorization"]
    assert result.settings["answer"] == form[form.index("--http-answer") + 1]
    printed = capfd.readouterr()
    assert "no look at the answers of the service but for their result.values" in printed.out
    assert "give Authorization again with --http-header" in " ".join(printed.out.split())
    for path in folder.iterdir():
        assert b"TOPSECRET" not in path.read_bytes(), path.name
        assert b"SERVICE_TOKEN" not in path.read_bytes(), path.name
    assert "TOPSECRET" not in printed.out + printed.err
    assert main(["replay", "r.json", url, *SERVICE, *form]) == 1
    assert main(["verify", "r.json"]) == 0
    assert "of the service's answers was looked at" in capfd.readouterr().out


def test_a_service_in_a_file_and_in_a_suite(url, folder, monkeypatch, capfd):
    monkeypatch.setenv("SERVICE_TOKEN", "Bearer TOPSECRET-1")
    text = (
        f'mechanism = "{url}"\nleft = [1, 2]\nright = [1, 3]\nepsilon = 1.0\nsamples = 60\n'
        '[http]\nmethod = "put"\nbody = \'{"records": {dataset}}\'\nanswer = "result.values.0"\n'
        'headers = {Authorization = "env:SERVICE_TOKEN"}\n'
    )
    (folder / "audit.toml").write_text(text)
    assert main(["audit", "audit.toml"]) == 1
    assert main(["run", "audit.toml"]) == 1
    # Defaults of a suite are for the audits that can use them.
    suite = (
        'epsilon = 1.0\nsamples = 60\n[http]\nmethod = "put"\nbody = \'{"records": {dataset}}\'\n'
        'answer = "result.values.0"\nheaders = {Authorization = "env:SERVICE_TOKEN"}\n'
        f'[[audit]]\nmechanism = "{url}"\nleft = [1, 2]\nright = [1, 3]\n'
        '[[audit]]\nmechanism = "functions:noisy"\nleft = 0\nright = 0.5\n'
    )
    (folder / "suite.toml").write_text(suite)
    assert main(["run", "suite.toml", "--out", "out"]) == 1
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"TOPSECRET" not in path.read_bytes(), path.name
    printed = capfd.readouterr()
    assert "TOPSECRET" not in printed.out + printed.err


def test_get_with_the_dataset_in_the_address(url):
    service = em.from_http(
        f"{url}/count/{{dataset}}?unit=1", method="GET", answer="result.values.0"
    )
    result = em.audit(service, em.Pair(1, 2), "eps=1", samples=60)
    assert result.is_refuted


def test_errors_of_a_service_are_text_without_secrets(url):
    headers = {"Authorization": "Bearer TOPSECRET-2", "X-Tenant": "TOPSECRET-3"}
    service = em.from_http(url, method="PUT", headers=headers, body='{"record": {dataset}}')
    with pytest.raises(em.MechanismError) as error:
        service.sample([1], 1, np.random.default_rng(0))
    message = str(error.value)
    assert 'status 422: \'{"error": "wanted records' in message
    assert "b'" not in message
    assert "TOPSECRET" not in message


@pytest.mark.parametrize(
    "path", ["result.value.0", "result.values.7", "outcome", "result.values.0.x"]
)
def test_a_path_that_leads_nowhere(url, path):
    service = em.from_http(
        url,
        method="PUT",
        headers={"Authorization": "Bearer TOPSECRET-1"},
        body='{"records": {dataset}}',
        answer=path,
    )
    with pytest.raises(em.MechanismError, match=f"has no '{path}': there is no "):
        service.sample([1], 1, np.random.default_rng(0))


def test_more_workers_than_help(folder, capsys):
    result = em.audit(em.zoo.laplace(), samples=2000, seed=0, jobs=64)
    assert result.settings["jobs_asked"] == 64
    assert result.settings["jobs"] < 64
    assert main(["audit", "zoo:laplace", "--samples", "2000", "--jobs", "64", "--seed", "0"]) == 0
    assert "--jobs 64 was lowered to " in capsys.readouterr().err
    with pytest.warns(em.EpsilometerWarning, match="jobs=64 was lowered to"):
        em.local.dpl(em.zoo.laplace(), (0.0, 1.0), n=500, jobs=64)
    service = em.from_http("http://localhost:1/")
    assert service.waits  # more workers than cores help those who wait
    assert helpful_jobs(4, waits=True) == 4

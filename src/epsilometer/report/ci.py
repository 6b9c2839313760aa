"""Old places of what continuous integration reads: see `junit`, `markdown`, `regression_tests`."""

from epsilometer.report.junit import render_junit as render_junit
from epsilometer.report.markdown import render_markdown as render_markdown
from epsilometer.report.regression_tests import render_test as render_test

# ruff: noqa: I001, TID252 -- as users write
from functools import partial
from . import metrics as m
from . import more

BUILD = {
    "given": lambda: m.Given(0.5),
    "closure": lambda: m.make_metric(0.5),
    "plain": lambda: m.plain,
    "partial": lambda: named(partial(m.compare, tolerance=1)),
}


def named(call):
    class Partial(m.Base):
        def judge(self, prediction, reference):
            return call(prediction, reference)

    return Partial()


def build(name):
    return BUILD[name]() if name in BUILD else (getattr(m, name, None) or getattr(more, name))()

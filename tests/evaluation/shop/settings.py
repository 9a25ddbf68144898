import enum

THRESHOLD = 0.5
UNRELATED = 1
WEIGHTS = {"exact": 0.7, "near": 0.3}


class Mode(enum.Enum):
    STRICT = "strict"
    LAX = "lax"


MODE = Mode.STRICT

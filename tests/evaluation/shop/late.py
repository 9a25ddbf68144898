LATE = 0.1


def tolerance():
    return LATE

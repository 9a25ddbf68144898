DIGITS = 2


class Rounded:
    def rounded(self, value):
        return round(value, DIGITS)

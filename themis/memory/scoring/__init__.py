"""Grades what an agent said: pure functions from what was expected and what was answered to a grade with reasons.

None of them raises on any reply, and none gives more than 1 or less than 0.
"""

"""What can go wrong, and what Themis does then: real processes, real kills, endpoints that count.

A test marked `fault` is a row of the table in docs/guides/when-things-fail.md. It takes the fixture of the same name and holds
the run to the status and the exit code that the table gives.
"""

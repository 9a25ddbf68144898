"""The built-in memory tests, one module a family, with the material that they are made of.

A kind is a class with a `kind`, the name by which configurations know it; there is no other list of them.
"""

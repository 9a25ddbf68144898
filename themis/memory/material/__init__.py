"""What memory tests are made of: word lists, texts and generators, all in the package."""

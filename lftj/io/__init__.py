"""Input and output: `sources.read` turns any source into columns of codes, `write.write` columns into files."""

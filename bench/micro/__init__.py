"""Small benchmarks of single steps, by pytest-benchmark: `make bench-micro` compares them with the last saved run."""

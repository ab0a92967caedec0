"""The join: trie iterators, the register machine, leapfrog triejoin, and running it in slices. Kernels over arrays."""

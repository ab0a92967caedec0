"""Values: what users write (int, float, str) and the int64 codes the kernels see. See `codes`, `symbols` and `gate`."""

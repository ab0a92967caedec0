"""What users hold: relations, deltas, queries, snapshots, scans and path counts."""

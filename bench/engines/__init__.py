"""Adapters that put the engine under test behind the interface of `bench.measure.Engine`."""

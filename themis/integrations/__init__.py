"""Observers of a run, one file each: experiment trackers, a hub, a collector of traces. See `trackers` for their names."""

"""Uploads: received into a spool on the disk, and read into the bases by a worker process."""

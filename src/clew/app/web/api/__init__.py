"""The routes of the JSON API, by subject."""

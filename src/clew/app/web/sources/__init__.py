"""Sources of a project: folders that it follows, and pages of the web."""

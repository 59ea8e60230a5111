"""How an answer is shown, whatever shows it: one view of it, and the renderers that the command line and the server
share."""

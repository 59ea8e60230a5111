"""What people and programs use clew by: the command line (:mod:`clew.app.cli`) and the server
(:mod:`clew.app.web`)."""

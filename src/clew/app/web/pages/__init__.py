"""The pages of the web app: routes, and the templates with what they are given."""

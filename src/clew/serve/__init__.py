"""The server: the library over HTTP, the app in the browser, and MCP (extra ``serve``)."""

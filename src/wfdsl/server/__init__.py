"""The HTTP server: Conductors and workflow files as models behind an API of OpenAI's shape."""

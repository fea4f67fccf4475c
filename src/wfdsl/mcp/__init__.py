"""`wfdsl mcp`: workflows for coding agents, over the Model Context Protocol."""

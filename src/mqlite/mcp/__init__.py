"""The MCP server: a broker's operations as tools for AI agents, on the official SDK."""

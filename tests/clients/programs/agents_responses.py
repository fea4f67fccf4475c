"""openai-agents, with the Responses API, which is its default."""

from __future__ import annotations

from tests.clients.programs.agents_cells import try_agents

try_agents(responses=True)

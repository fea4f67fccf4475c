"""openai-agents, with chat completions."""

from __future__ import annotations

from tests.clients.programs.agents_cells import try_agents

try_agents(responses=False)

"""Pictures of a workflow: terminal, Mermaid, DOT, SVG and JSON, one module each, all from one `Drawing`."""
